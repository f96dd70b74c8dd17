"""Texts from a file that was read and edited."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from perturbations import FromFile
from refadv_ablate.errors import UserError
from refadv_ablate.types import Example
from tests.scripted import example

E0, E1 = example(0).saying("red cup"), example(1).saying("blue cup")


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return str(path)


def line(e: Example, expression: str, **more: Any) -> dict[str, Any]:
    return {"id": e.id, "original": e.expression, "expression": expression, "status": "changed", **more}


def test_texts_are_taken_as_they_stand_and_their_status_is_worked_out_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", line(E0, "cup 🎩"), line(E1, "blue cup", status="changed"))
    a, b = FromFile(path).perturb_many([(E0, random.Random(0)), (E1, random.Random(0))])
    assert (a.example.expression, a.status) == ("cup 🎩", "changed")
    assert b.status == "unchanged"


def test_not_perturbable_stays_out_until_someone_writes_a_text(tmp_path: Path) -> None:
    out = write(tmp_path / "t.jsonl", line(E0, "red cup", status="not_perturbable", reason="no descriptor"))
    p = FromFile(out).perturb(E0, random.Random(0))
    assert (p.status, p.reason) == ("not_perturbable", "no descriptor")
    written = write(tmp_path / "u.jsonl", line(E0, "cup", status="not_perturbable"))
    assert FromFile(written).perturb(E0, random.Random(0)).status == "changed"


def test_several_lines_are_draws(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", line(E0, "a"), line(E0, "b"), line(E1, "c"), line(E1, "d"))
    operator = FromFile(path)
    stream = [(e, random.Random(0)) for e in (E1, E1, E0, E0)]
    assert operator.draws == 2
    assert [p.example.expression for p in operator.perturb_many(stream)] == ["c", "d", "a", "b"]


def test_the_identity_follows_the_texts_and_not_the_file(tmp_path: Path) -> None:
    first = FromFile(write(tmp_path / "a.jsonl", line(E0, "x"))).identity()
    assert FromFile(write(tmp_path / "b.jsonl", line(E0, "x", trace={"k": 1}))).identity() == first
    edited = FromFile(write(tmp_path / "a.jsonl", line(E0, "longer y"))).identity()
    assert edited != first, "an edited file is read again"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([line(E1, "x")], "no text for example 'e0'"),
        ([line(E0.saying("green cup"), "x")], "made for 'green cup', but the data say 'red cup'"),
        ([line(E0, "a"), line(E0, "b"), line(E1, "c")], "same number of draws"),
        ([line(E0, " ")], "t.jsonl:1 has an empty 'expression'"),
        ([{"id": "e0"}], "t.jsonl:1 needs the key 'original'"),
        ([line(E0, "a", label="bow"), line(E1, "b", label="fixed")], r"several operators \(bow, fixed\)"),
        ([], "no lines"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence(
    tmp_path: Path, rows: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        FromFile(write(tmp_path / "t.jsonl", *rows)).perturb(E0, random.Random(0))


def test_a_missing_or_broken_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"can't be read"):
        FromFile(str(tmp_path / "no.jsonl")).perturb(E0, random.Random(0))
    (tmp_path / "t.jsonl").write_text("{}\nnot json\n")
    with pytest.raises(UserError, match=r"t\.jsonl:1 needs"):
        FromFile(str(tmp_path / "t.jsonl")).identity()
    (tmp_path / "t.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="UTF-8"):
        FromFile(str(tmp_path / "t.jsonl")).identity()


def test_one_operators_lines_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", line(E0, "a", label="bow"), line(E0, "b", label="fixed"))
    assert FromFile(path, label="fixed").perturb(E0, random.Random(0)).example.expression == "b"
