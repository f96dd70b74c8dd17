"""Scores of changed questions, by hand on a few answers, and against plain loops on many."""

from __future__ import annotations

import random

import pytest

from refadv_ablate.boxes import Box, BoxMap, iou
from refadv_ablate.statistics.understanding import Answers, score_of
from refadv_ablate.types import Record, Score

OLD, NEW, AWAY = Box(10, 10, 50, 50), Box(60, 10, 100, 50), Box(200, 200, 240, 240)


def record(name: str, condition: str, target: Box, answer: Box | str | None, **more) -> Record:
    box = answer if isinstance(answer, Box) else None
    outcome = answer if isinstance(answer, str) else "box" if box else "unparsable"
    score = None if outcome in ("missing", "not_perturbable") else iou(box, target) if box else 0.0
    fields = {"draw": 0, "status": "changed", "expression": "x", "original_expression": "y", **more}
    return Record(
        name,
        f"image of {name}",
        condition,
        target=target,
        outcome=outcome,
        predicted=box,
        iou=score,
        **fields,
    )


def scores(*records: Record) -> tuple[Score, ...]:
    answers = Answers()
    for each in records:
        answers.add(each)
    shuffled = Answers()
    for each in random.Random(1).sample(records, len(records)):
        shuffled.add(each)
    if len({r.part for r in records}) < 3:  # parts come in the order in which they were first seen
        assert shuffled.scores() == answers.scores(), "the order of the answers doesn't matter"
    return answers.scores()


def value(found: tuple[Score, ...], name: str, part: str = "") -> float | None:
    score = score_of(found, name, part)
    return None if score is None else score.estimate.value


def test_directional_counts_pairs_and_what_stays_on_the_old_object() -> None:
    told = {"expectation": "directional", "original_target": OLD, "distractors": 3}
    found = scores(
        *(
            record(name, "original", OLD, box, distractors=3)
            for name, box in zip("abcd", (OLD, OLD, OLD, AWAY), strict=True)
        ),
        record("a", "op", NEW, NEW, **told),
        record("b", "op", NEW, OLD, **told),
        record("c", "op", NEW, None, **told),
        record("d", "op", NEW, NEW, **told),
    )
    assert value(found, "hit") == 0.5
    assert value(found, "pair") == 0.25, "right in both: a alone"
    assert score_of(found, "pair").chance == pytest.approx(1 / 16)
    assert value(found, "sticks") == pytest.approx(1 / 3), "of a, b, c, which were right, b stays"
    assert score_of(found, "sticks").estimate.n == 3
    assert value(found, "excess") == pytest.approx(0.5 - 0.25)
    assert score_of(found, "consistent") is None


def test_without_a_second_box_a_directional_question_is_scored_by_sticking_alone() -> None:
    found = scores(
        record("a", "original", OLD, OLD),
        record("a", "op", OLD, OLD, expectation="directional"),
    )
    assert value(found, "sticks") == 1.0
    for name in ("hit", "pair", "excess"):
        assert score_of(found, name).estimate.n == 0
        assert "no example" in score_of(found, name).estimate.note


def test_consistency_maps_the_models_own_answer_and_needs_no_gold() -> None:
    frame = BoxMap.mirror(640)
    told = {"expectation": "invariant", "frame": frame}
    found = scores(
        record("a", "original", OLD, AWAY),
        record("a", "op", frame(OLD), frame(AWAY), **told),  # wrong both times, and consistent
        record("b", "original", OLD, OLD),
        record("b", "op", frame(OLD), OLD, **told),
        record("c", "original", OLD, None),
        record("c", "op", frame(OLD), frame(OLD), **told),  # no box before: nothing to be consistent with
        record("d", "original", OLD, OLD),
        record("d", "op", frame(OLD), None, **told),
    )
    assert value(found, "consistent") == pytest.approx(1 / 3)
    assert value(found, "hit") == 0.25


def test_worst_of_several_parts_counts_examples_that_pass_all() -> None:
    told = {"expectation": "invariant"}
    found = scores(
        *(record(name, "original", OLD, OLD) for name in "ab"),
        record("a", "op", OLD, OLD, part="one", **told),
        record("a", "op", OLD, OLD, part="two", draw=1, **told),
        record("b", "op", OLD, OLD, part="one", **told),
        record("b", "op", OLD, AWAY, part="two", draw=1, **told),
    )
    assert value(found, "consistent") == 0.75
    assert value(found, "worst") == 0.5
    assert value(found, "consistent", "two") == 0.5
    assert score_of(found, "worst", "two") is None


def test_rejection_is_youdens_j() -> None:
    told = {"expectation": "reject", "or_none": True}
    answers = {"a": ("none", OLD), "b": (OLD, OLD), "c": ("none", "none"), "d": (None, AWAY)}
    records = []
    for name, (changed, original) in answers.items():
        records += [
            record(name, "original", OLD, original, or_none=True),
            record(name, "op", OLD, changed, **told),
        ]
    found = scores(*records)
    assert value(found, "rejects") == 0.5
    assert value(found, "false_rejects") == 0.25
    assert value(found, "youden") == 0.25
    assert value(found, "prior") == 0.25, "b alone answers where the referent was"


def test_necessity_is_the_drop_beyond_that_of_the_placebo() -> None:
    found = scores(
        *(record(name, "original", OLD, OLD) for name in "abc"),
        record("a", "op", OLD, None, part="referent"),
        record("a", "op", OLD, OLD, part="placebo", draw=1, placebo=True),
        record("a", "op", OLD, AWAY, part="placebo", draw=2, placebo=True),
        record("b", "op", OLD, OLD, part="referent"),
        record("b", "op", OLD, OLD, part="placebo", draw=1, placebo=True),
        record("c", "op", OLD, AWAY, part="referent"),  # no room for a placebo
    )
    assert value(found, "necessity") == pytest.approx((0.5 + 0.0) / 2)
    assert value(found, "hit") == pytest.approx(1 / 3), "placebos are left out of the operator's own score"
    assert value(found, "hit", "placebo") == pytest.approx((0.5 + 1.0) / 2), "an example's draws are averaged"


def test_the_unanswered_are_left_out_and_refusals_are_counted_by_reason() -> None:
    answers = Answers()
    for each in (
        record("a", "original", OLD, OLD),
        record("a", "op", OLD, OLD),
        record("b", "original", OLD, "missing"),
        record("b", "op", OLD, OLD),
        record("c", "original", OLD, OLD),
        record("c", "op", OLD, "not_perturbable", reason="no side"),
        record("d", "op", OLD, "not_perturbable", reason="no side"),
        record("e", "op", OLD, "not_perturbable", reason="legible"),
    ):
        answers.add(each)
    assert value(answers.scores(), "hit") == 1.0
    assert score_of(answers.scores(), "hit").estimate.n == 1
    assert answers.refusals() == {"no side": 2, "legible": 1}
    assert Answers().scores() == ()


def test_the_chance_level_is_that_of_the_matching_candidates_where_they_are_counted() -> None:
    found = scores(
        record("a", "original", OLD, OLD, distractors=3),
        record("a", "op", OLD, OLD, distractors=3, trace={"matching": 2}),
    )
    assert score_of(found, "hit").chance == 0.5
    assert value(found, "excess") == 0.5


def test_many_random_answers_agree_with_plain_loops() -> None:
    rng = random.Random(5)
    frame = BoxMap(-1.0, 1.0, 300.0, 0.0)
    originals, changed = {}, []
    for i in range(60):
        originals[f"e{i}"] = record(f"e{i}", "original", OLD, rng.choice([OLD, NEW, AWAY, None]))
        for draw in range(rng.randint(1, 3)):
            answer = rng.choice([frame(OLD), frame(NEW), None])
            changed.append(
                record(f"e{i}", "op", frame(OLD), answer, draw=draw, expectation="invariant", frame=frame)
            )
    found = scores(*originals.values(), *changed)

    def mean(of) -> float:
        values: dict[str, list[float]] = {}
        for r in changed:
            number = of(originals[r.example_id], r)
            if number is not None:
                values.setdefault(r.example_id, []).append(number)
        means = [sum(v) / len(v) for v in values.values()]
        return sum(means) / len(means)

    def same(o: Record, r: Record) -> float | None:
        if o.predicted is None:
            return None
        return float(r.predicted is not None and iou(r.frame(o.predicted), r.predicted) >= 0.5)

    assert value(found, "hit") == pytest.approx(mean(lambda o, r: float(r.iou >= 0.5)))
    assert value(found, "consistent") == pytest.approx(mean(same))
    assert value(found, "sticks") == pytest.approx(
        mean(lambda o, r: float(r.iou >= 0.5) if o.iou >= 0.5 else None)
    )
