"""The table of answers that MLflow shows: right and wrong by what each question expects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from refadv_ablate.boxes import Box
from refadv_ablate.storage import records
from refadv_ablate.tracking.uploads import prediction_table
from refadv_ablate.types import Record

TARGET = Box(10, 10, 30, 30)
ORIGINAL = Record(
    example_id="a",
    image_key="i",
    condition="original",
    draw=0,
    status="unchanged",
    expression="the red cup",
    original_expression="the red cup",
    target=TARGET,
    outcome="box",
    predicted=TARGET,
    iou=1.0,
)


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ({"iou": 0.9}, "right"),
        ({"iou": 0.1}, "wrong"),
        ({"iou": 0.9, "expectation": "reject"}, "wrong"),
        ({"iou": 0.0, "outcome": "none", "predicted": None, "expectation": "reject"}, "none"),
        ({"iou": 0.9, "expectation": "directional"}, "wrong"),
        ({"iou": 0.1, "expectation": "directional"}, "a box"),
        ({"iou": 0.9, "expectation": "directional", "original_target": Box(0, 0, 5, 5)}, "right"),
        ({"iou": 0.0, "outcome": "unparsable", "predicted": None}, "unparsable"),
    ],
)
def test_an_answer_is_right_by_what_its_question_expects(tmp_path: Path, told: dict, verdict: str) -> None:
    asked = replace(ORIGINAL, condition="absent", status="changed", expression="the blue cup", **told)
    records.write_records(tmp_path / "p.jsonl", [ORIGINAL, asked])
    (row,) = prediction_table(tmp_path / "p.jsonl")["data"]
    assert row[1].startswith(f"right → {verdict} (IoU 1.00 → ")
