"""Differences of two results, against regressions with an interaction, by hand, and by simulation."""

from __future__ import annotations

import dataclasses
import io
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report import contrast as contrast_page
from refadv_ablate.report.console import contrast_lines
from refadv_ablate.report.loading import contrasting
from refadv_ablate.report.loading.sources import Cell, Names
from refadv_ablate.report.loading.study import study
from refadv_ablate.report.tables.contrasts import contrast_table
from refadv_ablate.statistics import contrasts, inference, pairing
from refadv_ablate.statistics.contrasts import Side, contrast
from refadv_ablate.statistics.simulation import Design, experiments
from refadv_ablate.tracking import metrics
from refadv_ablate.types import ORIGINAL, Record

TARGET = Box(0, 0, 100, 100)
HIT, MISS = TARGET, Box(500, 500, 600, 600)


def side(image, original, perturbed, name: str = "s", chance: float = 0.0) -> Side:
    example = np.arange(len(image), dtype=np.uint64)
    values = (np.asarray(v, np.float64) for v in (original, perturbed))
    return Side(name, example, np.asarray(image, np.uint64), *values, chance)


def drawn(seed: int, images: int, rates: tuple[float, float], first_image: int = 0) -> Side:
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(images), rng.integers(1, 5, images))
    shared = rng.normal(size=images)[image]
    hits = [
        0.6 * shared + 0.8 * rng.normal(size=len(image)) < inference.normal_quantile(rate) for rate in rates
    ]
    return side(image + first_image, *hits, name=f"s{seed}")


def long_form(a: Side, b: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits of both conditions of both sides in one column, the terms of the regression, and the images."""
    hits = np.concatenate([a.original, a.perturbed, b.original, b.perturbed])
    sizes = [len(a.image)] * 2 + [len(b.image)] * 2
    condition = np.repeat([0.0, 1.0, 0.0, 1.0], sizes)
    which = np.repeat([0.0, 0.0, 1.0, 1.0], sizes)
    terms = np.column_stack([np.ones(len(hits)), condition, which, condition * which])
    return hits, terms, np.concatenate([a.image, a.image, b.image, b.image])


# ── against regressions ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("overlap", [0, 40, 60], ids=["no image shared", "some shared", "all shared"])
def test_the_difference_of_two_deltas_is_the_interaction_of_a_regression(overlap):
    """Its standard error is the spread of the interaction over regressions without each image."""
    import statsmodels.api as sm

    a, b = drawn(1, 60, (0.8, 0.5)), drawn(2, 60, (0.9, 0.8), first_image=60 - overlap)
    hits, terms, images = long_form(a, b)
    found = contrast(a, b, paired=False)
    assert found.difference.value == pytest.approx(sm.OLS(hits, terms).fit().params[3])
    refits = []
    for image in np.unique(images):
        keep = images != image
        refits.append(sm.OLS(hits[keep], terms[keep]).fit().params[3])
    n = len(refits)
    error = math.sqrt((n - 1) / n * np.sum((np.array(refits) - found.difference.value) ** 2))
    half = (found.difference.high - found.difference.low) / 2
    assert half == pytest.approx(error * inference.t_quantile(found.difference.df))
    assert found.difference.images == n == 120 - overlap


@pytest.mark.parametrize("overlap", [0, 300])
def test_with_many_images_the_error_is_that_of_a_clustered_covariance(overlap):
    import statsmodels.api as sm

    a, b = drawn(3, 600, (0.8, 0.5)), drawn(4, 600, (0.9, 0.8), first_image=600 - overlap)
    hits, terms, images = long_form(a, b)
    fit = sm.OLS(hits, terms).fit(cov_type="cluster", cov_kwds={"groups": images.astype(int)})
    found = contrast(a, b, paired=False).difference
    assert (found.high - found.low) / 2 / inference.t_quantile(found.df) == pytest.approx(
        fit.bse[3], rel=0.01
    )
    assert contrast(a, b, paired=False).p == pytest.approx(fit.pvalues[3], rel=0.1, abs=1e-6)


def test_sides_on_the_same_examples_are_paired_example_by_example():
    a = drawn(5, 80, (0.8, 0.5))
    b = dataclasses.replace(
        a, name="b", perturbed=np.where(np.arange(len(a.image)) % 9, a.perturbed, a.original)
    )
    found = contrast(a, b, paired=True)
    change = (b.perturbed - b.original) - (a.perturbed - a.original)
    clusters = inference.Clusters.of(change, a.image.astype(int))
    low, high = inference.t_interval(clusters)
    assert found.difference.value == pytest.approx(change.mean())
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))
    fewer = b.where(np.arange(len(b.image)) % 2 == 0)
    assert contrast(a, fewer, paired=True).first.n == len(fewer.image)


def test_a_side_against_itself_is_exactly_0_without_an_interval():
    a = drawn(6, 30, (0.8, 0.5))
    found = contrast(a, dataclasses.replace(a, name="again"), paired=True)
    assert (found.difference.value, found.difference.low, found.p) == (0.0, None, 1.0)
    assert "exactly 0" in found.difference.note


# ── ratios ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("quantity", "floor"), [("relative", 0.0), ("above_chance", 0.25)])
def test_the_interval_of_a_relative_fall_holds_the_ratios_that_a_t_test_allows(quantity, floor):
    a = dataclasses.replace(drawn(7, 90, (0.7, 0.4)), chance=0.25)
    found = contrast(a, a, quantity, paired=True).first
    image = a.image.astype(int)

    def allowed(ratio: float) -> bool:
        values = (a.perturbed - a.original) - ratio * (a.original - floor)
        clusters = inference.Clusters.of(values, image)
        return abs(clusters.mean) <= inference.t_quantile(clusters.df) * clusters.standard_error()

    assert found.value == pytest.approx((a.perturbed - a.original).mean() / (a.original.mean() - floor))
    for bound, inward in ((found.low, 1e-6), (found.high, -1e-6)):
        assert allowed(bound + inward) and not allowed(bound - inward)


def test_a_ratio_whose_denominator_may_be_0_has_no_end():
    a = dataclasses.replace(drawn(8, 40, (0.27, 0.2)), chance=0.25)
    found = contrast(a, a, "above_chance", paired=True).first
    assert found.low is None and "no end" in found.note
    nothing = side([1, 2, 3], [0, 0, 0], [0, 1, 0])
    assert "denominator is 0" in contrast(nothing, nothing, "relative", paired=True).first.note


def test_a_difference_of_relative_falls_agrees_with_a_bootstrap_over_images():
    a, b = drawn(9, 150, (0.8, 0.5)), drawn(10, 150, (0.7, 0.6), first_image=1000)
    found = contrast(a, b, "relative", paired=False).difference
    rng = np.random.default_rng(0)

    def resampled(each: Side) -> np.ndarray:
        codes = np.unique(each.image, return_inverse=True)[1]
        sums = np.stack([np.bincount(codes, v) for v in (each.original, each.perturbed)])
        picks = rng.integers(0, sums.shape[1], (4000, sums.shape[1]))
        original, perturbed = (row[picks].sum(axis=1) for row in sums)
        return (perturbed - original) / original

    low, high = np.quantile(resampled(b) - resampled(a), [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.03)


# ── does it keep its word ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_of_contrasts_hold_and_p_is_a_false_alarm_once_in_twenty(paired):
    """A small part of what `selftest` measures with thousands of experiments."""
    times, delta = 500, -0.15
    first = experiments(Design(80, delta=delta), times, np.random.default_rng(1))
    second = experiments(Design(80, delta=delta), times, np.random.default_rng(2))
    held = rejected = 0
    for a, b in zip(first, second, strict=True):
        if paired:
            n = min(len(a.image), len(b.image))
            one, two = (
                side(a.image[:n], a.before[:n], a.after[:n]),
                side(a.image[:n], b.before[:n], b.after[:n]),
            )
        else:
            one, two = side(a.image, a.before, a.after), side(b.image + 1000, b.before, b.after)
        found = contrast(one, two, paired=paired)
        held += found.difference.low <= 0 <= found.difference.high
        rejected += found.p <= 0.05
    assert 0.92 <= held / times <= 0.98
    assert rejected == times - held


# ── families, ranks, studies ────────────────────────────────────────────────────────────────────


def test_holm_is_over_the_declared_family_and_equals_statsmodels():
    from statsmodels.stats.multitest import multipletests

    sides = [drawn(seed, 60, (0.8, 0.8 - 0.1 * seed)) for seed in range(1, 5)]
    found = contrasts.holm([contrast(a, b, paired=False) for a, b in itertools.combinations(sides, 2)])
    expected = multipletests([c.p for c in found], method="holm")[1]
    assert [c.p_holm for c in found] == pytest.approx(list(expected))


def test_ranks_that_the_data_cannot_tell_apart_overlap():
    rng = np.random.default_rng(0)
    image = np.arange(400)
    before = rng.random(400) < 0.9
    falls = [0.1, 0.1, 0.5]
    sides = [
        side(image, before, before & (rng.random(400) > fall), name=f"m{i}") for i, fall in enumerate(falls)
    ]
    within = [contrast(a, b, paired=True) for a, b in itertools.combinations(sides, 2)]
    found = {rank.name: (rank.place, rank.low, rank.high) for rank in contrasts.ranks(sides, within)}
    assert found["m2"] == (3, 3, 3)
    assert {found["m0"][1:], found["m1"][1:]} == {(1, 2)}


def records(condition: str, hits, prefix: str, image=lambda k: k // 3, engine: str = "") -> list[Record]:
    return [
        Record(
            f"{prefix}{k}",
            f"i{image(k)}",
            condition,
            0,
            "changed",
            "e",
            "the cup",
            TARGET,
            "box",
            HIT if hit else MISS,
            distractors=k % 9,
            engine=engine,
        )
        for k, hit in enumerate(hits)
    ]


def cell(model: str, data: str, before, engine: str = "", **conditions) -> Cell:
    arms = {ORIGINAL: Arm(records(ORIGINAL, before, data, engine=engine))}
    arms |= {name: Arm(records(name, hits, data, engine=engine)) for name, hits in conditions.items()}
    return Cell(Names(model, data, "direct"), Path(model), lambda: iter(()), arms, 100)


def cells() -> list[Cell]:
    k = np.arange(100)
    return [
        cell("listener", "one", k >= 0, bow=k % 2 == 0, fixed=k % 5 == 0),
        cell("deaf", "one", k % 3 == 0, bow=k % 3 == 0, fixed=k % 4 == 0),
        cell("listener", "two", k % 10 > 0, bow=k % 3 == 0),
    ]


def test_the_listener_against_the_deaf_one_is_exactly_the_difference_of_their_deltas():
    found = study(cells(), metrics=("acc50",), n_boot=0)
    deltas = {(c.model, c.data, c.operator): c.deltas["acc50"].delta.value for c in found.comparisons}
    family = contrasting.between(found, "model")
    by_where = {each.where: each for each in family.contrasts}
    each = by_where["one · direct · bow"]
    assert each.difference.value == deltas["deaf", "one", "bow"] - deltas["listener", "one", "bow"] == 0.5
    assert each.paired and each.first.n == 100
    assert set(by_where) == {"one · direct · bow", "one · direct · fixed"}
    assert max(c.p_holm for c in family.contrasts) < 0.01


def test_each_kind_sets_against_each_other_what_differs_in_it_alone():
    found = study(cells(), metrics=("acc50",), n_boot=0)
    data = contrasting.between(found, "data")
    assert [(c.a, c.b, c.where, c.paired) for c in data.contrasts] == [
        ("one", "two", "listener · direct · bow", False)
    ]
    assert data.contrasts[0].difference.images == 34, "an image of both sets is one cluster"
    operators = contrasting.between(found, "operator")
    assert {(c.a, c.b, c.where) for c in operators.contrasts} == {
        ("bow", "fixed", "listener · one · direct"), ("bow", "fixed", "deaf · one · direct")
    }  # fmt: skip
    parts = contrasting.between(found, "slice", by="distractors")
    whole = sum(
        e.n
        for e in {
            c.a: c.first for c in parts.contrasts if "listener · one · direct · bow" in c.where
        }.values()
    )
    assert 0 < whole < 100 and not parts.contrasts[0].paired
    with pytest.raises(UserError, match="differ in prompt alone; there are direct"):
        contrasting.between(found, "prompt")
    with pytest.raises(UserError, match="did you mean 'model'"):
        contrasting.between(found, "modle")


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ("vllm 0.32.0", "vllm 0.32.0", ""),
        ("", "vllm 0.32.0", ""),  # of a published file that isn't known
        ("vllm 0.32.0", "vllm 0.33.0", "deaf by vllm 0.32.0, listener by vllm 0.33.0"),
        ("transformers 5.24.0", "vllm 0.32.0", "deaf by transformers 5.24.0, listener by vllm 0.32.0"),
    ],
)
def test_a_contrast_of_two_engines_is_a_warning(tmp_path, one: str, two: str, told: str):
    k = np.arange(100)
    sides = [
        cell("deaf", "one", k % 3 == 0, one, bow=k % 4 == 0),
        cell("listener", "one", k > 9, two, bow=k > 50),
    ]
    found = study(sides, metrics=("acc50",), n_boot=0)
    family = contrasting.between(found, "model")
    warning = contrasts.engines_apart(family.contrasts)
    assert told in warning and bool(warning) == bool(told)
    assert [each for each in contrast_table(family).notes if "different engines" in each] == [warning][
        : bool(told)
    ]
    console = Console(file=io.StringIO(), width=400)
    console.print(contrast_lines(family))
    assert ("warning 1 of 1 differences" in console.file.getvalue()) == bool(told)
    page, _ = contrast_page.write(tmp_path, found, family, formats=["markdown"], meta={})
    assert ("differences between models" in page.read_text(encoding="utf-8")) == bool(told)


def test_a_side_that_two_engines_answered_is_apart_from_one_that_one_did():
    k = np.arange(40)
    mixed = (
        Arm(records(ORIGINAL, k > 3, "m", engine="vllm 1")),
        Arm(records("bow", k > 9, "m", engine="vllm 2")),
    )
    plain = (
        Arm(records(ORIGINAL, k > 3, "m", engine="vllm 1")),
        Arm(records("bow", k > 9, "m", engine="vllm 1")),
    )
    found = contrast(Side.of("a", *mixed), Side.of("b", *plain), paired=True)
    assert "(the first: a by vllm 1, vllm 2, b by vllm 1)" in contrasts.engines_apart([found])


def test_paired_values_are_those_of_the_comparison():
    one = cells()[0]
    example, _, original, perturbed = pairing.paired_values(one.arms[ORIGINAL], one.arms["bow"])
    assert (len(example), original.mean(), perturbed.mean()) == (100, 1.0, 0.5)


def test_the_page_of_contrasts_says_what_the_intervals_allow(tmp_path):
    from rich.console import Console

    from refadv_ablate.report import contrast as page
    from refadv_ablate.report.console import contrast_lines

    found = study(cells(), metrics=("acc50",), n_boot=0)
    family = contrasting.between(found, "model", quantities=("delta", "relative"))
    html, markdown = page.write(tmp_path, found, family, formats=("markdown", "csv"), meta={})
    said = "deaf loses less than listener (one · direct · bow): difference of Δ +50.0"
    assert said in html.read_text(encoding="utf-8")
    assert said in markdown.read_text(encoding="utf-8").replace("\\", "")
    assert "Differences between models" in (tmp_path / "tables" / "contrasts_model.md").read_text("utf-8")
    with (tmp_path / "out").open("w") as out:
        console = Console(width=120, record=True, file=out)
        console.print(contrast_lines(family))
    assert "relative fall" in console.export_text()


def test_a_sweeps_page_shows_the_differences_between_its_models(tmp_path):
    from refadv_ablate.report.pages import sweep_page

    found = study(cells(), metrics=("acc50",), n_boot=0)
    html, _ = sweep_page.from_study(tmp_path, found, formats=("csv",))
    text = html.read_text(encoding="utf-8")
    assert "deaf loses less than listener (one · direct · bow): difference of Δ +50.0" in text
    assert "Differences between data sets" in text
    assert (tmp_path / "figures" / "contrasts_model.svg").is_file()
    logged = metrics.differences(tmp_path)
    assert logged["diff_acc50/deaf-listener--bow"] == 0.5
    assert len(logged) == 3 and metrics.differences(tmp_path / "nowhere") == {}


def test_a_family_can_be_narrowed_and_the_rest_stands_beside_it_raw():
    found = study(cells(), metrics=("acc50",), n_boot=0)
    every = contrasting.between(found, "model")
    one = contrasting.between(found, "model", declared=["bow"])
    counted = [each for each in one.contrasts if "bow" in contrasting.names_of(each)]
    assert 0 < len(counted) < len(one.contrasts) == len(every.contrasts)
    assert [each.p_holm for each in counted] == inference.holm([each.p for each in counted])
    assert all(each.p_holm is None for each in one.contrasts if each not in counted)
    assert [each.difference for each in one.contrasts] == [each.difference for each in every.contrasts]
    table = contrast_table(one)
    assert "contrasts that were declared (bow), the others raw" in table.notes[0]
    assert any(line.values["p_holm"].text.endswith(" raw") for line in table.lines)
    with pytest.raises(UserError, match=r"family=bwo: no contrast has this name; did you mean 'bow'"):
        contrasting.between(found, "model", declared=["bwo"])
