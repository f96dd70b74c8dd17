"""Scores, metrics and the arm's columns."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.parsing import scoring
from refadv_ablate.parsing.position import positions
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.types import Record

TARGET = Box(10, 10, 30, 30)


def record(example: str = "a", **changes: object) -> Record:
    base = Record(
        example_id=example,
        image_key="image",
        condition="original",
        draw=0,
        status="changed",
        expression="one the",
        original_expression="the red cup",
        target=TARGET,
        outcome="box",
        predicted=TARGET,
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "predicted", "expected"),
    [
        ("box", TARGET, 1.0),
        ("box", Box(10, 10, 30, 20), 0.5),
        ("box", Box(50, 50, 60, 60), 0.0),
        ("empty", None, 0.0),
        ("unparsable", None, 0.0),
        ("refused", None, 0.0),
        ("truncated", None, 0.0),
        ("missing", None, None),
        ("not_perturbable", None, None),
    ],
)
def test_an_answer_without_a_box_is_a_miss_and_no_answer_is_no_score(outcome, predicted, expected):
    assert scoring.score(outcome, predicted, TARGET) == expected


@pytest.mark.parametrize(
    ("name", "iou", "expected"),
    [
        ("acc50", 0.5, 1.0),
        ("acc50", np.nextafter(0.5, 0), 0.0),
        ("acc90", 0.9, 1.0),
        ("acc95", 0.95, 1.0),
        ("macc", 1.0, 1.0),
        ("macc", 0.5, 0.1),
        ("macc", 11 / 20, 0.2),
        ("macc", 0.72, 0.5),
        ("macc", 0.49, 0.0),
        ("dig_avg", 0.8, 2 / 3),
        ("dig_avg", 0.72, 1 / 3),
        ("miou", 0.37, 0.37),
    ],
)
def test_metrics_at_and_between_their_thresholds(name, iou, expected):
    assert scoring.metric(name)(np.array([iou]))[0] == pytest.approx(expected, abs=1e-12)


def test_every_threshold_of_macc_is_met_by_boxes_that_tie_with_it_exactly():
    for percent in range(50, 100, 5):
        value = scoring.score("box", Box(0, 0, percent, 10), Box(0, 0, 100, 10))
        assert scoring.metric(f"acc{percent}")(np.array([value]))[0] == 1.0


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(UserError, match="did you mean 'macc'"):
        scoring.metric("mac")


def test_counts_tell_outcomes_statuses_and_notes_apart():
    arm = Arm(
        [
            record("a", notes=("clipped",), n_boxes=2),
            record("b", outcome="truncated", predicted=None, status="unchanged", attempts=3),
            record("c", outcome="missing", predicted=None),
            record("d", outcome="not_perturbable", status="not_perturbable", predicted=None),
        ]
    )
    assert arm.counts() == {
        "answers": 4,
        "box": 1,
        "changed": 2,
        "clipped": 1,
        "missing": 1,
        "not_perturbable": 1,
        "several_boxes": 1,
        "several_calls": 1,
        "truncated": 1,
        "unchanged": 1,
    }
    assert scoring.rates(arm.counts()) == {"parse_failure": 0.5, "truncated": 0.5, "missing": 1 / 3}


def test_rates_of_nothing_are_none():
    assert set(scoring.rates({}).values()) == {None}


def test_a_missing_answer_is_not_scored_even_with_an_iou_beside_it():
    assert math.isnan(Arm([record(outcome="missing", iou=0.0)]).columns().iou[0])


def test_the_iou_is_computed_where_a_record_has_none():
    assert Arm([record(predicted=Box(10, 10, 30, 20))]).columns().iou[0] == 0.5


def test_a_placebo_is_no_part_of_an_arm():
    arm = Arm([record("a"), record("a", draw=1, part="placebo", placebo=True)])
    assert len(arm) == 1
    assert arm.draws == {0}
    assert not arm.parted


def test_an_answer_that_is_there_twice_is_refused():
    with pytest.raises(UserError, match="1 answers are there twice"):
        Arm([record("a"), record("a")]).columns()


def test_attributes_become_columns_and_records_that_lack_one_are_known():
    arm = Arm(
        [
            record("a", distractors=3, negation=True, source="coco"),
            record("b", attributes={"human_authored": False, "depth": 2, "list": [1]}),
            record("c", attributes={"depth": "deep", "source": "ignored: the field counts"}),
        ]
    )
    assert list(arm.columns().attributes("length")) == [3, 3, 3]
    assert list(arm.columns().attributes("box_size")) == [20, 20, 20]
    assert arm.columns().attributes("distractors")[0] == 3
    assert np.isnan(arm.columns().attributes("distractors")[1:]).all()
    assert list(arm.columns().attributes("negation")) == ["yes", None, None]
    assert list(arm.columns().attributes("source")) == ["coco", None, None]
    assert list(arm.columns().attributes("human_authored")) == [None, "no", None]
    assert list(arm.columns().attributes("depth")) == [None, "2", "deep"]
    assert arm.columns().attributes("list") is None


def test_an_attribute_that_names_every_example_is_no_slice():
    arm = Arm(record(str(i), attributes={"file": f"{i}.jpg"}) for i in range(1100))
    with pytest.raises(UserError, match="more than 1000 values"):
        arm.columns().attributes("file")


def test_a_hundred_thousand_records_take_a_few_megabytes():
    arm = Arm()
    for i in range(2000):
        arm.add(record(f"example-{i}", image_key=f"{i % 500}", distractors=3, source="coco", split="val"))
    held = arm._rows.buffers.values()
    assert sum(sys.getsizeof(column) for column in held) / len(arm) * 100_000 < 8e6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_metrics_lie_in_0_to_1_and_fall_as_the_threshold_rises(ious):
    values = np.array(ious)
    hits = [scoring.metric(f"acc{t}")(values).mean() for t in range(50, 100, 5)]
    assert all(0 <= b <= a <= 1 for a, b in itertools.pairwise(hits))
    assert scoring.metric("macc")(values).mean() == pytest.approx(np.mean(hits))


def test_the_order_of_records_changes_no_column_once_sorted():
    records = [record(str(i), image_key=str(i % 3), predicted=Box(10, 10, 30, 12 + i)) for i in range(9)]
    shuffled = random.Random(1).sample(records, len(records))
    one, two = Arm(records).columns(), Arm(shuffled).columns()
    assert (one.iou[np.argsort(one.example)] == two.iou[np.argsort(two.example)]).all()


@pytest.mark.parametrize(
    ("box", "labels"),
    [
        (
            Box(0, 0, 20, 20),
            {"position": "off centre", "position_x": "left third", "position_y": "top third"},
        ),
        (
            Box(40, 40, 60, 60),
            {"position": "centre", "position_x": "middle third", "position_y": "middle third"},
        ),
        (
            Box(90, 40, 101, 60),
            {"position": "off centre", "position_x": "right third", "position_y": "middle third"},
        ),
        (
            Box(40, 99, 60, 102),
            {"position": "off centre", "position_x": "middle third", "position_y": "bottom third"},
        ),
    ],
)
def test_where_the_referent_lies_is_told_by_thirds_of_the_image(box, labels):
    assert dict(positions(box, (100, 100))) == labels
    assert dict(positions(box, (0, 0))) == {}


@pytest.mark.parametrize(
    ("told", "outcome", "iou", "right", "old"),
    [
        ({}, "box", 0.5, True, False),
        ({}, "box", 0.49, False, False),
        ({}, "none", 0.0, False, False),
        ({}, "missing", None, None, False),
        ({"expectation": "invariant"}, "box", 0.7, True, False),
        ({"expectation": "reject"}, "none", 0.0, True, True),
        ({"expectation": "reject"}, "box", 0.0, False, True),
        ({"expectation": "reject"}, "box", 1.0, False, True),
        ({"expectation": "reject"}, "unparsable", 0.0, False, True),
        ({"expectation": "reject"}, "missing", None, None, True),
        ({"expectation": "directional"}, "box", 0.9, False, True),
        ({"expectation": "directional"}, "box", 0.1, None, True),
        ({"expectation": "directional", "original_target": TARGET}, "box", 0.9, True, False),
        ({"expectation": "directional", "original_target": TARGET}, "box", 0.1, False, False),
    ],
)
def test_an_answer_is_right_by_what_its_question_expects(told, outcome, iou, right, old):
    answer = record(outcome=outcome, iou=iou, **told)
    assert scoring.right(answer) is right
    assert scoring.on_old_place(answer) is old
    assert Arm([answer]).counts().get(scoring.OLD_PLACE, 0) == (old and iou is not None)


@pytest.mark.parametrize("kind", ["empty", "unparsable", "refused", "truncated"])
def test_each_way_to_give_no_box_is_a_parse_failure_of_the_answers(kind):
    found = scoring.rates({"box": 6, kind: 2, "missing": 2})
    truncated = 0.25 if kind == "truncated" else 0.0
    assert found == {"parse_failure": 0.25, "truncated": truncated, "missing": 0.2}
    assert scoring.rates({"box": 4})["missing"] == 0.0
    assert scoring.rates({"missing": 3}) == {"parse_failure": None, "truncated": None, "missing": 1.0}


def test_answers_are_counted_by_the_engine_that_gave_them():
    answers = [record(str(i), engine="one 1.0") for i in range(3)] + [record("x", engine="two 2.0")]
    lost = [record("m", engine="one 1.0", outcome="missing", predicted=None), record("n")]
    assert Arm([*answers, *lost]).engines() == {"one 1.0": 3, "two 2.0": 1}


def test_an_arm_in_pieces_holds_what_it_holds_at_once():
    arm = Arm(record(str(i), image_key=str(i % 3), outcome="box" if i % 2 else "empty") for i in range(40))
    whole = arm.columns()
    found = list(arm.parts(4))
    assert len(found) == 4
    for name in ("example", "image", "draw", "outcome", "iou"):
        joined = np.concatenate([getattr(columns, name) for columns in found])
        order = np.argsort(np.concatenate([columns.example for columns in found]))
        assert (joined[order] == getattr(whole, name)[np.argsort(whole.example)]).all()
    assert not set(found[0].example) & set(np.concatenate([c.example for c in found[1:]]))


@pytest.mark.parametrize("number", [1, 3])
def test_answers_that_are_there_twice_are_refused_in_pieces_too(number):
    arm = Arm([*(record(str(i)) for i in range(9)), record("3")])
    with pytest.raises(UserError, match="1 answers are there twice"):
        list(arm.parts(number))
    list(Arm([*(record(str(i)) for i in range(9)), record("3", draw=1)]).parts(number))


def test_what_a_record_can_be_cut_by_is_kept_under_its_name():
    known = {"source": "COCO", "split": "val", "category": "cup", "trace": {"kind": "colour"}}
    wordy = {"attributes": {"short": "y" * 64, "long": "y" * 65, "split": "another"}}
    arm = Arm([record("first"), record("second", **known, **wordy)])
    columns = arm.columns()
    for name, value in {"source": "COCO", "split": "val", "category": "cup", "removed": "colour"}.items():
        column = columns.attributes(name)
        assert column is not None
        assert list(column) == [None, value]
    assert "short" in arm.attributes()
    assert "long" not in arm.attributes()


def test_several_boxes_and_calls_begin_with_the_second():
    assert not {"several_boxes", "several_calls"} & Arm([record(n_boxes=1, attempts=1)]).counts().keys()
    counts = Arm([record("a", n_boxes=2), record("b", attempts=2)]).counts()
    assert (counts["several_boxes"], counts["several_calls"]) == (1, 1)


def test_examples_in_parts_are_known_as_such_whatever_comes_after():
    assert Arm([record("a", part="left out"), record("b")]).parted
    assert Arm([record("a")]).parted is False


def test_ids_with_half_a_surrogate_pair_are_ids():
    assert len(set(Arm([record("\udcff"), record("\udcfe")]).columns().example)) == 2


@pytest.mark.parametrize(
    ("asked", "near"), [("acc5", "acc50"), ("acc075", "acc75"), ("acc95x", "acc95"), ("dig", "dig_avg")]
)
def test_an_unknown_metric_is_answered_with_the_nearest(asked, near):
    with pytest.raises(UserError, match=f"There is no metric '{asked}': .*{near}"):
        scoring.thresholds(asked)
