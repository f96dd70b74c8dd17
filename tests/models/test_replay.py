"""Replay: what the file says, missing where it says nothing, never a box in the wrong frame."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate.boxes import Box, Quad
from refadv_ablate.data.forms.files import records
from refadv_ablate.errors import UserError
from refadv_ablate.models.replay import Replay
from refadv_ablate.types import NoBox, Reply, Request, Seen
from tests.models.asking import AnyFrame, Drawn, ask, spec


class Thousandths(AnyFrame):
    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        return Box(*(v * 0.9 for v in quad)), ()


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def about(number: int, text: str, key: str = "") -> Request:
    """A request for the original of an example with these words, on the image of this name."""
    asked = ask(number)
    image = Drawn(key) if key else asked.image
    example = replace(asked.perturbed.example, expression=text, image=image)
    return replace(asked, perturbed=replace(asked.perturbed, example=example, original=example))


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
    got = replies(path, about(0, 'the "red” one'), about(1, "it"), ask(0, "bow"))
    assert json.loads(got[0].text) == {"bbox": [1.0, 2.0, 3.0, 4.5]}
    assert (got[1].text, got[1].finish, got[2].finish) == ("", "stop", "error")
    path.write_text("a\tb\n1\t2\n")
    with pytest.raises(UserError, match="no column among example_id"):
        replies(path, ask(0))


def test_the_published_predictions_replay_whole(shared: Path) -> None:
    path = shared / "data" / "ref_adv_s_predictions.tsv"
    captions = [row["normal_caption"] for _, row in records(path)]
    got = replies(path, *(about(n, text) for n, text in enumerate([*captions, "one more"])))
    assert [r.finish for r in got].count("error") == 1  # number 1142 is not in it
    assert sum(r.text == "" and r.finish == "stop" for r in got) == 6


# ── rows that answer something else, or nothing that is known ───────────────────────────────────

XYWH = [[300, 200, 60, 50], [10, 10, 80, 90], [200, 90, 40, 30]]
UNKNOWN = [
    ({"pred_bbox": [1, 2, 3, 4]}, "'pred_bbox' isn't known.*text, answer.*predicted"),
    ({"text": None, "boxes_2d": [1, 2, 3, 4]}, "'boxes_2d' isn't known"),
    ({"text": "", "out": "1, 2, 3, 4"}, "'out' isn't known"),
    ({"prediction": "the box [1, 2, 3, 4]"}, r"holds no answer.*it has id, prediction"),
    ({"bbox": [1, 2, 3, 4], "format": "xywh"}, "say order=xywh"),
]


@pytest.mark.parametrize(("row", "said"), UNKNOWN)
def test_a_row_whose_answer_is_in_no_known_column_is_refused(
    tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        replies(jsonl(tmp_path / "a.jsonl", {"id": 0, **row}), ask(0))


def test_answers_without_a_box_in_a_known_column_stay_answers(tmp_path: Path) -> None:
    gold = {"target": [1, 2, 3, 4], "gt_bbox_xyxy": [1, 2, 3, 4]}
    path = jsonl(tmp_path / "a.jsonl", {"id": 0, "bbox": None, **gold}, {"id": 1, "text": "", **gold})
    assert replies(path, ask(0), ask(1)) == [Reply(text="")] * 2


def test_boxes_of_width_and_height_are_refused_until_they_are_declared(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", *({"id": n, "bbox": box} for n, box in enumerate(XYWH)))
    with pytest.raises(UserError, match=r"2 of 3 boxes .* order=xywh"):
        replies(path, ask(0))
    model = Replay(spec=spec(), path=path, order="xywh")
    ((_, reply),) = model.answer([ask(0)])
    assert json.loads(reply.text) == {"bbox": [300.0, 200.0, 360.0, 250.0]}
    assert model.identity() != Replay(spec=spec(), path=path).identity()
    with pytest.raises(UserError, match="xyxy or xywh"):
        Replay(spec=spec(), path=path, order="cxcywh")  # type: ignore[arg-type]


def test_one_box_with_swapped_corners_among_many_is_the_models_own(tmp_path: Path) -> None:
    rows = [{"id": n, "bbox": [10, 10, 20, 20] if n else [300, 10, 20, 20]} for n in range(30)]
    assert len(replies(jsonl(tmp_path / "a.jsonl", *rows), ask(0))) == 1


SHIFTED = [
    ({"normal_caption": "the blue cup"}, "'the blue cup', not 'the red cup'"),
    ({"original_expression": "the blue cup", "image_key": "a.png"}, "'the blue cup'"),
    ({"expression": "the blue cup"}, "'the blue cup'"),
    ({"image_key": "b.png"}, "image 'b.png', not 'a.png'"),
    ({"file_name": "imgs/b.png"}, "image 'imgs/b.png'"),
]


@pytest.mark.parametrize(("row", "said"), SHIFTED)
def test_a_row_about_another_example_is_refused(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"row_idx": 0, "bbox": [1, 2, 3, 4], **row})
    with pytest.raises(UserError, match=rf"about another example .*{said}"):
        replies(path, about(0, "the red cup", "a.png"))


@pytest.mark.parametrize(
    "row",
    [
        {"normal_caption": " The red  cup"},
        {"expression": "the red cup", "condition": "original"},
        {"file_name": "imgs/a.png"},
        {"image_key": "9f86d081884c7d65"},
        {},
    ],
)
def test_a_row_about_the_example_answers_it(tmp_path: Path, row: dict[str, Any]) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"row_idx": 0, "bbox": [1, 2, 3, 4], **row})
    assert replies(path, about(0, "the red cup", "a.png"))[0].finish == "stop"


def test_rows_counted_from_zero_do_not_answer_ids_counted_from_one(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", *({"row_idx": n, "bbox": [1, 2, 3, 4]} for n in range(20)))
    with pytest.raises(UserError, match=r"from 0 to 19, and the ids of the data go from 1 to 20"):
        replies(path, *(ask(n) for n in range(1, 21)))
    assert len(replies(path, *(ask(n) for n in range(20)))) == 20


def test_a_quoted_tsv_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text('id\ttext\n0\t"{""bbox"": [1, 2, 3, 4]}"\n1\tnone\n')
    assert json.loads(replies(path, ask(0))[0].text) == {"bbox": [1, 2, 3, 4]}


def test_the_faulty_files_of_the_issue(shared: Path) -> None:
    (folder,) = (shared / "faults").glob("10*")
    for name, said in (("pl4.jsonl", "'pred_bbox' isn't known"), ("p.jsonl", "order=xywh")):
        with pytest.raises(UserError, match=said):
            replies(folder / name, ask(0))
