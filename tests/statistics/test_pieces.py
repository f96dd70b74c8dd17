"""Statistics of rows in pieces are those of all rows at once."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm, examples_of
from refadv_ablate.report.figures.curves import points_of
from refadv_ablate.report.loading.groups import to_overall
from refadv_ablate.statistics import comparison, inference, trends, understanding
from refadv_ablate.statistics.inference import Clusters
from refadv_ablate.statistics.landings import flow
from refadv_ablate.statistics.pairing import paired_values
from refadv_ablate.statistics.samples import Gathered, Sample
from refadv_ablate.statistics.understanding import Answers
from refadv_ablate.statistics.word_kinds import by_kind
from refadv_ablate.storage import columns
from refadv_ablate.types import Record

TARGET = Box(0, 0, 100, 100)
LANDED = ("referent", "same category", "elsewhere")


def records(seed: int, n: int = 90, draws: int = 2) -> tuple[list[Record], list[Record]]:
    """Original and perturbed answers: unequal images, lacking draws, misses, graded boxes, attributes."""
    rng = np.random.default_rng(seed)
    before, after = [], []
    for index in range(n):
        image = f"image {min(rng.integers(0, 25), rng.integers(0, 25))}"
        for draw in range(-1, draws):
            width = float(rng.choice([100, 80, 60, 30]))
            outcome = str(rng.choice(["box", "box", "box", "box", "unparsable", "missing"]))
            own = Record(
                example_id=f"example {index}",
                image_key=image,
                condition="original" if draw < 0 else "bow",
                draw=max(draw, 0),
                status="changed",
                expression="e",
                original_expression="the red cup " * int(rng.integers(1, 6)),
                target=TARGET,
                outcome=outcome,  # type: ignore[arg-type]
                predicted=Box(0, 0, width, 100) if outcome == "box" else None,
                distractors=int(rng.integers(0, 9)) if rng.random() < 0.8 else None,
                category=str(rng.choice(["cup", "dog", "car"])) if rng.random() < 0.9 else None,
                attributes={"depth": float(rng.random())},
                trace={"kind": str(rng.choice(["attribute", "relation"]))},
                landed=str(rng.choice(LANDED)),
            )
            (before if draw < 0 else after).append(own)
    return before, after


def everything(seed: int) -> dict[str, object]:
    """All that is computed of arms and answers."""
    before, after = records(seed)
    original, perturbed, answers = Arm(before), Arm(after), Answers()
    for one in (*before, *after):
        answers.add(one if one.iou is not None else dataclasses.replace(one, iou=_iou(one)))
    slices = ("distractors", "category", "depth")
    named = {"model": "m", "data": "d", "prompt": "p", "operator": "bow", "planned": 95}
    return {
        "comparison": comparison.compare(original, perturbed, slices=slices, n_boot=200, **named),  # type: ignore[arg-type]
        "accuracy": [
            comparison.accuracy(perturbed, m, parsed_only=p) for m in ("macc", "miou") for p in (False, True)
        ],
        "by": comparison.accuracy_by(original, "depth"),
        "trend": trends.noted(original, perturbed),
        "part": to_overall(original, lambda found: found.attributes("distractors") > 3),
        "curve": points_of(original, "distractors", (0, 2, 4)),
        "scores": answers.scores(),
        "flow": flow(original, perturbed),
        "kinds": by_kind(original, perturbed),
        "values": paired_values(original, perturbed, "macc"),
        "images": [original.images(), examples_of([original, perturbed])],
    }


def _iou(one: Record) -> float | None:
    if one.outcome == "missing":
        return None
    return one.predicted.x2 / 100 if one.predicted else 0.0


def flat(value: object) -> list[object]:
    """Every number and word in it, in order."""
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict) or hasattr(value, "items"):
        value = [part for item in value.items() for part in item]  # type: ignore[attr-defined]
    if isinstance(value, list | tuple):
        return [one for part in value for one in flat(part)]
    return [value]


@pytest.fixture
def whole():
    return {seed: everything(seed) for seed in (0, 1)}


def alike(one: object, two: object) -> None:
    ours, theirs = flat(one), flat(two)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, float) and isinstance(b, float):
            assert a == pytest.approx(b, abs=1e-12) or (math.isnan(a) and math.isnan(b))
        else:
            assert a == b


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_pieces_of_any_size_give_the_same_numbers(rows, whole, monkeypatch):
    monkeypatch.setattr(columns, "ROWS", rows)
    monkeypatch.setattr(understanding, "SIZE", rows)
    for seed, expected in whole.items():
        alike(everything(seed), expected)


def test_images_that_are_counted_by_kind_give_the_same_estimates(whole, monkeypatch):
    monkeypatch.setattr(columns, "ROWS", 7)
    monkeypatch.setattr(inference, "MOST", 3)
    found = everything(0)["comparison"]
    for name, delta in whole[0]["comparison"].deltas.items():
        ours = found.deltas[name]
        alike([ours.original, ours.perturbed, ours.delta], [delta.original, delta.perturbed, delta.delta])
        assert ours.p == pytest.approx(delta.p, abs=0.1)
        assert ours.bootstrap == pytest.approx(delta.bootstrap, abs=0.03)


@given(st.integers(0, 2**32), st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_joined_clusters_are_those_of_all_values(seed, parts):
    rng = np.random.default_rng(seed)
    values, images = rng.integers(0, 11, 200) / 10, rng.integers(0, 60, 200)
    gathered = Gathered()
    for part in range(parts):
        own = images % parts == part
        gathered.add(values[own], images[own])
    found, expected = gathered.sample(), Sample.of(values, images)
    assert (found.hits, found.some) == (expected.hits, expected.some)
    assert (found.squares, found.apart) == pytest.approx((expected.squares, expected.apart))
    assert expected.apart == pytest.approx(np.var(values, ddof=1) * 199)
    one, listed = found.clusters, expected.clusters
    assert (one.n, one.count) == (200, len(np.unique(images)))
    assert (one.mean, one.effective, one.standard_error()) == pytest.approx(
        (listed.mean, listed.effective, listed.standard_error())
    )


def test_the_sign_flips_of_kinds_are_those_of_images(monkeypatch):
    rng = np.random.default_rng(0)
    listed = Clusters(rng.integers(-2, 4, 400).astype(float), np.full(400, 5.0))
    sure = Clusters(np.abs(listed.sums) + 1, listed.sizes)
    monkeypatch.setattr(inference, "MOST", 3)
    counted = Clusters.joined([listed])
    assert len(counted.sums) == 6
    first, second = (inference.sign_flip_p(c, np.random.default_rng(1), 999) for c in (listed, counted))
    assert first == pytest.approx(second)
    bounds = [inference.bootstrap_interval(c, np.random.default_rng(1), 999) for c in (listed, counted)]
    assert bounds[0] == pytest.approx(bounds[1])
    tails = [inference.sign_flip_p(c, rng, 999) for c in (sure, Clusters.joined([sure]))]
    assert tails[0] == pytest.approx(tails[1], rel=1e-9, abs=0)


def test_an_answer_that_is_there_twice_is_found_in_pieces(monkeypatch):
    monkeypatch.setattr(columns, "ROWS", 7)
    before, after = records(3)
    with pytest.raises(UserError, match="1 answers are there twice"):
        comparison.compare(
            Arm(before),
            Arm([*after, after[4]]),
            model="m",
            data="d",
            prompt="p",
            operator="bow",
            planned=90,
        )
