"""The perturb command: texts written, read, edited and passed back."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from perturbations import BagOfWords, Fixed, FromFile
from refadv_ablate.cli import main
from refadv_ablate.commands import perturb
from refadv_ablate.errors import UserError
from refadv_ablate.running import perturbed_texts
from tests.scripted import Few


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_text_comes_once_in_order_and_equals_what_a_run_asks() -> None:
    operators = {"bow": BagOfWords(n_shuffles=2), "fixed": Fixed()}
    found = list(perturb.materialise(Few(3), operators, seed=7))
    assert [(label, draw, p.example.id) for label, draw, p in found] == [
        *(("bow", draw, key) for key in ("e0", "e1", "e2") for draw in (0, 1)),
        *(("fixed", 0, key) for key in ("e0", "e1", "e2")),
    ]
    asked = list(perturbed_texts.perturb_all(Few(3), "bow", operators["bow"], 7))
    assert [p for label, _, p in found if label == "bow"] == asked


def test_what_is_written_can_be_edited_and_passed_back(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    written = perturb.write(perturb.materialise(Few(4), {"bow": BagOfWords(2)}, 0), "bow", path, show=1)
    assert written.statuses == {"changed": 8}
    assert len(written.samples) == 1
    operator = FromFile(str(path))
    back = list(operator.perturb_many((e, random.Random(0)) for e in Few(4) for _ in range(operator.draws)))
    first = list(perturb.materialise(Few(4), {"bow": BagOfWords(2)}, 0))
    assert [p.example for p in back] == [p.example for _, _, p in first]
    lines = rows(path)
    assert list(lines[0])[:4] == ["id", "expression", "original", "status"], "what one edits comes first"
    lines[0]["expression"] = "edited"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert FromFile(str(path)).perturb(next(iter(Few(4))), random.Random(0)).example.expression == "edited"


def test_equal_texts_have_equal_hashes(tmp_path: Path) -> None:
    hashes = [
        perturb.write(
            perturb.materialise(Few(3), {"bow": BagOfWords()}, seed), "bow", tmp_path / f"{i}.jsonl"
        ).sha256
        for i, seed in enumerate((0, 0, 1))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_edited_file_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    draws = list(perturb.materialise(Few(2), {"fixed": Fixed()}, 0))
    perturb.write(draws, "fixed", path)
    perturb.write(draws, "fixed", path)
    path.write_text(path.read_text().replace("the one", "that one"))
    with pytest.raises(UserError, match="overwrite=true"):
        perturb.write(draws, "fixed", path)
    assert "that one" in path.read_text()
    perturb.write(draws, "fixed", path, overwrite=True)
    assert "that one" not in path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]


def test_no_examples_is_a_mistake_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no examples"):
        perturb.write([], "bow", tmp_path / "t.jsonl")


def test_the_command_writes_one_file_for_each_operator_and_they_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["perturb", "perturb=[bow,descriptor_deletion]", "data.n=6", "seed=3", "show=1"]) == 0
    said = capsys.readouterr().out
    assert "bow: 6 changed → texts-bow.jsonl" in said
    assert "perturb.file.path=texts-descriptor_deletion.jsonl" in said
    assert {p.name for p in tmp_path.glob("*.jsonl")} == {
        "texts-bow.jsonl",
        "texts-descriptor_deletion.jsonl",
    }
    words = ["perturb=file", "perturb.file.path=texts-bow.jsonl", "data.n=6", "to=again"]
    assert main(["perturb", *words]) == 0
    again, first = rows(tmp_path / "again.jsonl"), rows(tmp_path / "texts-bow.jsonl")
    assert [r["expression"] for r in again] == [r["expression"] for r in first]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["perturb=file"], "path"),
        (["perturb=file", "perturb.file.path=no.jsonl"], "no.jsonl can't be read"),
        (["perturb=bow", "perturb.bow.n_shuffles=0"], "n_shuffles"),
        (["perturb=bow", "show=many"], "show"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["perturb", *words]) == 2
    error = capsys.readouterr().err.strip()
    assert says in error
    assert "\n" not in error
    assert not list(tmp_path.glob("*.jsonl"))
