"""Replay: what the file says, missing where it says nothing, never a box in the wrong frame."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate.boxes import Box, Quad
from refadv_ablate.errors import UserError
from refadv_ablate.models.replay import Replay
from refadv_ablate.types import NoBox, Reply, Seen
from tests.models.asking import AnyFrame, ask, spec


class Thousandths(AnyFrame):
    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        return Box(*(v * 0.9 for v in quad)), ()


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def replies(path: Path, *requests: Any, **more: Any) -> list[Reply]:
    model = Replay(spec=spec(**more), path=path)
    out = [reply for _, reply in model.answer(requests)]
    model.close()
    return out


def test_rows_answer_by_example_condition_and_draw(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "a.jsonl",
        {"example_id": "0", "condition": "bow", "draw": 1, "text": "bow one"},
        {"example_id": "0", "condition": "original", "text": "as it was"},
        {"row_idx": 1, "text": "no condition", "reasoning": "hm"},
        {"row_idx": 2, "condition": "original", "text": "cut", "outcome": "truncated"},
    )
    got = replies(
        path,
        ask(0),
        ask(0, "bow", draw=1),
        ask(1),
        ask(2),
        ask(0, "bow", draw=0),
        ask(1, "bow"),
        ask(3),
    )
    assert [r.text for r in got[:4]] == ["as it was", "bow one", "no condition", "cut"]
    assert (got[2].reasoning, got[3].finish) == ("hm", "length")
    assert [r.finish for r in got[4:]] == ["error"] * 3
    assert "no row for example 1, condition 'bow'" in got[5].error


def test_a_text_that_is_as_it_was_has_the_answer_of_the_original(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"row_idx": 0, "text": "as it was"})
    asked = ask(0, "identity")
    same = replace(asked, perturbed=replace(asked.perturbed, status="unchanged"))
    changed = replace(asked, perturbed=replace(asked.perturbed, status="changed"))
    got = replies(path, same, changed, replace(same, repeat=1))
    assert [r.text for r in got] == ["as it was", "", ""]
    assert [r.finish for r in got] == ["stop", "error", "error"], "an answer counts once as noise floor"


def test_boxes_are_original_pixels_and_refused_by_a_model_that_reads_otherwise(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "b.jsonl", {"row_idx": 0, "box": [1, 2.5, 3, 4]}, {"row_idx": 1, "box": None})
    got = replies(path, ask(0), ask(1))
    assert json.loads(got[0].text) == {"bbox": [1.0, 2.5, 3.0, 4.0]}
    assert got[1] == Reply(text="")  # answered, without a box: not missing
    with pytest.raises(UserError, match="model=replay"):
        replies(path, ask(0), frame=Thousandths())


def test_our_own_records_replay_as_box_or_as_text(tmp_path: Path) -> None:
    row = {"example_id": "0", "condition": "original", "draw": 0, "outcome": "box"}
    lost = {"example_id": "1", "condition": "original", "draw": 0, "outcome": "missing", "reason": "HTTP 500"}
    jsonl(tmp_path / "predictions.jsonl", {**row, "text": "[[9,9,99,99]]", "predicted": [5, 6, 7, 8]}, lost)
    as_read, missing = replies(tmp_path, ask(0), ask(1))
    assert json.loads(as_read.text) == {"bbox": [5.0, 6.0, 7.0, 8.0]}
    assert (missing.finish, missing.error) == ("error", "HTTP 500")
    assert replies(tmp_path, ask(0), frame=Thousandths())[0].text == "[[9,9,99,99]]"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"row_idx": 0, "text": "a"}\n{broken\n', "line 2 is not JSON"),
        ('{"row_idx": 0, "text": "a"}\n[1]\n', "line 2 is not a JSON object"),
        ('{"text": "a"}\n', "line 1: the row has none of example_id"),
        ('{"row_idx": 0, "draw": "x"}\n', "draw='x'"),
        ('{"row_idx": 0, "box": [1, 2, 3]}\n', "not four numbers"),
        ('{"row_idx": 0, "text": "a"}\n{"row_idx": 0, "text": "b"}\n', "2 different rows"),
    ],
)
def test_a_bad_file_is_one_sentence_with_the_line(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=words):
        replies(path, ask(0))


def test_a_file_that_is_not_there_and_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no predictions file"):
        Replay(spec=spec(), path=tmp_path / "none.jsonl")
    assert replies(jsonl(tmp_path / "empty.jsonl"), ask(0))[0].finish == "error"


def test_identity_follows_the_content(tmp_path: Path) -> None:
    one, two = jsonl(tmp_path / "1.jsonl", {"row_idx": 0}), jsonl(tmp_path / "2.jsonl", {"row_idx": 0})
    same = [Replay(spec=spec(), path=p).identity() for p in (one, two)]
    assert same[0] == same[1] != Replay(spec=spec(), path=jsonl(one, {"row_idx": 5})).identity()


def test_a_tsv_in_the_layout_of_the_authors(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text(
        'row_idx\tpred_box_xyxy_first\tnormal_caption\n0\t1.0,2.0,3.0,4.5\tthe "red” one\n1\t\tit\n'
    )
    got = replies(path, ask(0), ask(1), ask(0, "bow"))
    assert json.loads(got[0].text) == {"bbox": [1.0, 2.0, 3.0, 4.5]}
    assert (got[1].text, got[1].finish, got[2].finish) == ("", "stop", "error")
    path.write_text("a\tb\n1\t2\n")
    with pytest.raises(UserError, match="no column among example_id"):
        replies(path, ask(0))


def test_the_published_predictions_replay_whole(shared: Path) -> None:
    path = shared / "data" / "ref_adv_s_predictions.tsv"
    got = replies(path, *(ask(n) for n in range(1143)))
    assert [r.finish for r in got].count("error") == 1  # number 1142 is not in it
    assert sum(r.text == "" and r.finish == "stop" for r in got) == 6
