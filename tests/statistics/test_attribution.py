"""What descriptors are worth: games with a known value, and records of subsets."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from refadv_ablate.boxes import Box
from refadv_ablate.statistics.attribution import Subsets, shapley
from refadv_ablate.statistics.understanding import Answers, score_of
from refadv_ablate.types import Record, Score

HERE, AWAY = Box(0, 0, 10, 10), Box(50, 50, 60, 60)


def every(count: int) -> list[frozenset[int]]:
    return [frozenset(k) for size in range(count + 1) for k in combinations(range(count), size)]


def by_orders(worth: dict[frozenset[int], float], count: int, place: int) -> float:
    """The definition: the mean gain over all orders."""
    gains = []
    for order in permutations(range(count)):
        before = frozenset(order[: order.index(place)])
        gains.append(worth[before | {place}] - worth[before])
    return float(np.mean(gains))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_it_is_the_mean_gain_over_all_orders_and_sums_to_the_whole(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(20):
        worth = {kept: float(rng.integers(2)) for kept in every(count)}
        values = [shapley(worth, count, place) for place in range(count)]
        assert values == pytest.approx([by_orders(worth, count, place) for place in range(count)])
        assert sum(values) == pytest.approx(worth[frozenset(range(count))] - worth[frozenset()])


def told(name: str, kinds: list[str], hits: set[frozenset[int]]) -> list[Record]:
    """An original and its subsets; right where the kept descriptors are among `hits`."""
    common = {"draw": 0, "status": "changed", "original_expression": "x", "image_key": f"image of {name}"}
    found = []
    for kept in every(len(kinds)):
        whole = len(kept) == len(kinds)
        found.append(
            Record(
                example_id=name,
                condition="original" if whole else "subsets",
                expression=str(sorted(kept)),
                target=HERE,
                outcome="box",
                predicted=HERE if kept in hits else AWAY,
                iou=1.0 if kept in hits else 0.0,
                part="" if whole else f"keep:{sorted(kept)}",
                trace={} if whole else {"kinds": kinds, "kept": sorted(kept), "matching": None},
                **common,
            )
        )
    return found


def scores(*records: Record) -> tuple[Score, ...]:
    forwards, backwards = Answers(), Answers()
    for record in records:
        forwards.add(record)
    for record in reversed(records):
        backwards.add(record)
    named = {(s.name, s.part): s.estimate for s in forwards.scores()}
    assert named == {(s.name, s.part): s.estimate for s in backwards.scores()}
    return forwards.scores()


def test_each_kind_gets_what_its_descriptors_are_worth() -> None:
    colour, both = frozenset([0]), frozenset([0, 1])
    records = [
        *told("a", ["colour", "relation"], {colour, both}),  # the colour does it all
        *told("b", ["colour", "relation"], {both}),  # either is needed
        *told("c", ["size"], {frozenset(), colour}),  # the noun was enough
    ]
    found = scores(*records)

    def value(name: str, kind: str) -> float | None:
        score = score_of(found, name, kind)
        return None if score is None else score.estimate.value

    assert value("necessity", "colour") == 1.0
    assert value("necessity", "relation") == 0.5
    assert value("sufficiency", "colour") == 0.5
    assert value("sufficiency", "relation") == 0.0
    assert value("shapley", "colour") == 0.75
    assert value("shapley", "relation") == 0.25
    assert value("shapley", "size") == value("necessity", "size") == 0.0
    worth = score_of(found, "shapley", "colour")
    assert worth is not None
    assert (worth.estimate.n, worth.estimate.images) == (2, 2)


def test_several_descriptors_of_one_kind_are_averaged_first() -> None:
    found = scores(*told("a", ["colour", "colour"], {frozenset([0]), frozenset([0, 1])}))
    score = score_of(found, "necessity", "colour")
    assert score is not None
    assert (score.estimate.value, score.estimate.n) == (0.5, 1)


def test_what_was_not_asked_or_answered_is_not_made_up() -> None:
    records = told("a", ["colour", "relation"], {frozenset([0, 1])})
    without_head = [r for r in records if r.trace.get("kept") != []]
    names = {s.name for s in scores(*without_head) if s.part in ("colour", "relation")}
    assert names == {"necessity"}, "neither sufficiency nor Shapley without the head noun alone"
    assert not scores(*[r for r in records if r.condition != "original"]), "and nothing without the original"


def test_other_traces_say_nothing() -> None:
    subsets = Subsets()
    subsets.add(1, {"kind": "colour"}, True)
    subsets.add(2, {"kinds": "colour", "kept": None}, True)
    assert not subsets


def test_the_chance_of_a_subset_is_that_of_what_it_fits_and_unknown_where_nobody_counted() -> None:
    records = told("a", ["colour"], {frozenset([0])})
    counted = [
        r if r.condition == "original" else Record(**{**vars_of(r), "trace": {**r.trace, "matching": 4}})
        for r in records
    ]
    known = score_of(scores(*counted), "excess")
    assert known is not None
    assert known.estimate.value == pytest.approx(-0.25)
    unknown = score_of(scores(*(Record(**{**vars_of(r), "distractors": 3}) for r in records)), "excess")
    assert unknown is None or unknown.estimate.value is None, "1/4 would be the chance of the head noun alone"


def vars_of(record: Record) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
