"""Pairing, intervals, tests and parts, against independent implementations and by law."""

from __future__ import annotations

import dataclasses
import itertools
import random
from csv import QUOTE_NONE, DictReader
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.statistics import comparison, inference, slices
from refadv_ablate.statistics.inference import Clusters
from refadv_ablate.types import Comparison, Record

TARGET = Box(0, 0, 100, 100)
HIT, MISS = TARGET, Box(500, 500, 600, 600)


def record(example: str, image: str = "i", hit: bool = True, draw: int = 0, **changes: object) -> Record:
    base = Record(
        example_id=example,
        image_key=image,
        condition="bow",
        draw=draw,
        status="changed",
        expression="e",
        original_expression="the red cup",
        target=TARGET,
        outcome="box",
        predicted=HIT if hit else MISS,
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def compare(before: list[Record], after: list[Record], **options: object) -> Comparison:
    named = {"model": "m", "data": "d", "prompt": "direct", "operator": "bow", "planned": len(before)}
    return comparison.compare(Arm(before), Arm(after), **{**named, **options})  # type: ignore[arg-type]


def clustered(seed: int, images: int, before_rate: float = 0.7, after_rate: float = 0.55):
    """Hits of two arms that share an effect of the image: (image, before, after) per example."""
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(images), rng.integers(1, 5, images))
    shared = rng.normal(size=images)[image]
    noise = rng.normal(size=(2, len(image)))
    latent = 0.7 * shared + 0.7 * noise
    return (
        image,
        latent[0] < np.quantile(latent[0], before_rate),
        latent[1] < np.quantile(latent[1], after_rate),
    )


def arms(image, before, after) -> tuple[list[Record], list[Record]]:
    return tuple(  # type: ignore[return-value]
        [record(str(k), f"image{i}", bool(hit)) for k, (i, hit) in enumerate(zip(image, hits, strict=True))]
        for hits in (before, after)
    )


def no_nan(value: object) -> bool:
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    if dataclasses.is_dataclass(value):
        return all(no_nan(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, dict):
        return all(no_nan(each) for each in value.values())
    if isinstance(value, list | tuple):
        return all(no_nan(each) for each in value)
    return True


# ── intervals ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("images", [120, 400])
def test_with_images_of_one_size_the_interval_is_that_of_a_regression_with_clustered_covariance(images):
    import statsmodels.api as sm

    image, before, after = clustered(images, images)
    image = np.repeat(np.arange(len(image) // 3), 3)
    before, after = before[: len(image)], after[: len(image)]
    images = len(image) // 3
    change = after.astype(float) - before
    fit = sm.OLS(change, np.ones(len(change))).fit(
        cov_type="cluster",
        cov_kwds={"groups": image, "use_correction": True, "df_correction": True},
        use_t=True,
    )
    low, high = fit.conf_int()[0]
    delta = compare(*arms(image, before, after)).deltas["acc50"].delta
    assert (delta.value, delta.n, delta.images) == (pytest.approx(change.mean()), len(change), images)
    assert (delta.low, delta.high) == pytest.approx((max(low, -1), min(high, 1)), abs=1e-9)


def test_wilson_equals_statsmodels_and_is_used_where_every_image_has_one_example():
    from statsmodels.stats.proportion import proportion_confint

    for hits, n in [(0, 20), (7, 20), (20, 20), (450, 1000)]:
        arm = Arm(record(str(i), str(i), i < hits) for i in range(n))
        estimate = comparison.accuracy(arm)
        assert estimate.method == "Wilson"
        assert (estimate.low, estimate.high) == pytest.approx(proportion_confint(hits, n, method="wilson"))


@pytest.mark.parametrize("hit", [True, False])
def test_an_accuracy_of_0_or_100_percent_has_an_interval_with_a_width(hit):
    arm = Arm(record(str(i), str(i // 2), hit) for i in range(40))
    estimate = comparison.accuracy(arm, "macc")
    assert estimate.value == float(hit)
    assert estimate.high - estimate.low > 0.1
    assert estimate.method == "Wilson on effective n"


def test_the_bootstrap_agrees_with_scipy_over_clusters_by_either_way_of_drawing():
    from scipy.stats import bootstrap

    image, before, after = clustered(3, 600)
    clusters = Clusters.of(after.astype(float) - before, image)
    theirs = bootstrap(
        (clusters.sums, clusters.sizes),
        lambda s, n, axis: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    by_kind = inference.bootstrap_interval(clusters, np.random.default_rng(1), 20_000)
    drawn = inference._totals_of_indices(
        np.stack([clusters.sums, clusters.sizes], axis=1), np.random.default_rng(2), 20_000
    )
    one_by_one = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    counts = inference._kinds(clusters.sums, clusters.sizes)[1]
    assert 0 < counts[counts <= inference._RARE].sum() * 4 <= clusters.count, "some kinds must be rare"
    assert by_kind == pytest.approx(theirs, abs=0.002)
    assert tuple(one_by_one) == pytest.approx(theirs, abs=0.002)


# ── tests ───────────────────────────────────────────────────────────────────────────────────────


def flip_all(sums: list[float], sizes: list[int]) -> float:
    """Mid-p over all sign flips, from the definition: mean over cluster-robust standard error."""

    def t(signed: list[float]) -> float:
        mean = sum(signed) / sum(sizes)
        spread = sum((s - n * mean) ** 2 for s, n in zip(signed, sizes, strict=True))
        return abs(mean) / spread**0.5 if spread > 1e-12 else (float("inf") if mean else 0.0)

    observed = t(sums)
    flips = [
        t([a * b for a, b in zip(sums, s, strict=True)]) for s in itertools.product((1, -1), repeat=len(sums))
    ]
    further = sum(each > observed + 1e-9 for each in flips)
    ties = sum(abs(each - observed) <= 1e-9 or each == observed for each in flips)
    return (further + ties / 2) / len(flips)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(3, 5)), min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_the_sign_flip_p_of_few_images_is_that_of_all_flips(pairs):
    sums, sizes = [float(s) for s, _ in pairs], [n for _, n in pairs]
    p = inference.sign_flip_p(Clusters(np.array(sums), np.array(sizes, float)), np.random.default_rng(0), 999)
    assert 0 < p <= 1
    assert p == pytest.approx(flip_all(sums, sizes) if any(sums) else 1.0)


def test_the_sign_flip_p_of_many_images_agrees_with_scipys_permutation_test():
    from scipy.stats import permutation_test

    image, before, after = clustered(11, 60, 0.6, 0.52)
    clusters = Clusters.of(after.astype(float) - before, image)
    theirs = permutation_test(
        (clusters.sums,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    ).pvalue
    ours = inference.sign_flip_p(clusters, np.random.default_rng(0), 20_000)
    assert ours == pytest.approx(theirs, abs=0.03)
    assert 0.01 < ours < 0.6


def test_no_p_is_ever_0():
    rng = np.random.default_rng(0)
    assert 0 < inference.sign_flip_p(Clusters(-np.ones(3000), np.ones(3000)), rng, 999) < 1e-300
    assert inference.sign_flip_p(Clusters(-np.ones(3), np.ones(3)), rng, 999) == 1 / 8
    assert inference.mcnemar_p(5000, 0) > 0


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (3, 9), (12, 12), (40, 90)])
def test_mcnemar_equals_statsmodels_exact(b, c):
    from statsmodels.stats.contingency_tables import mcnemar

    assert inference.mcnemar_p(b, c) == pytest.approx(mcnemar([[5, b], [c, 5]], exact=True).pvalue)


@given(st.lists(st.one_of(st.none(), st.floats(1e-6, 1)), max_size=8))
@settings(max_examples=40, deadline=None)
def test_holm_equals_statsmodels_on_the_tests_that_were_made(values):
    from statsmodels.stats.multitest import multipletests

    made = [p for p in values if p is not None]
    expected = iter(multipletests(made, method="holm")[1] if made else [])
    for ours, p in zip(inference.holm(values), values, strict=True):
        assert ours is None if p is None else ours == pytest.approx(next(expected))


def test_holm_marks_the_declared_metric_alone():
    image, before, after = clustered(1, 80)
    one = compare(*arms(image, before, after))
    other = compare(*arms(image, before, before))
    adjusted = comparison.holm([one, other])
    assert adjusted[0].deltas["acc50"].p_holm == pytest.approx(min(1, 2 * one.deltas["acc50"].p))
    assert adjusted[1].deltas["acc50"].p_holm == 1
    assert adjusted[0].deltas["macc"].p_holm is None
    with pytest.raises(UserError, match="has no acc33"):
        comparison.holm([one], "acc33")


def test_clusters_matter_more_to_our_interval_than_to_mcnemar():
    """Copies of one example on one image are no evidence: the interval stays, McNemar shrinks."""
    image, before, after = clustered(5, 200)
    once = compare(*arms(image, before, after)).deltas["acc50"]
    copies = [np.repeat(column, 4) for column in (image, before, after)]
    four = compare(*arms(*copies)).deltas["acc50"]
    assert four.delta.low == pytest.approx(once.delta.low)
    assert four.p == pytest.approx(once.p, abs=0.02)
    assert four.p_mcnemar < once.p_mcnemar / 5


# ── pairing ─────────────────────────────────────────────────────────────────────────────────────


def test_only_examples_answered_in_both_arms_count_and_the_others_are_counted():
    before = [record(str(i), f"i{i}") for i in range(6)]
    after = [
        record("0", "i0", hit=False),
        record("1", "i1", status="unchanged"),
        record("2", "i2", outcome="missing", predicted=None),
        record("3", "i3", outcome="not_perturbable", status="not_perturbable", predicted=None),
        record("4", "i4", outcome="unparsable", predicted=None),
    ]
    result = compare(before, after)
    delta = result.deltas["acc50"]
    assert (result.planned, result.paired, result.images) == (6, 3, 3)
    assert (delta.delta.value, delta.right_to_wrong, delta.wrong_to_right) == (pytest.approx(-2 / 3), 2, 0)
    assert delta.original.value == 1
    secondary = result.parsed_only["acc50"].delta
    assert (secondary.value, secondary.n) == (-0.5, 2)
    assert result.counts["perturbed"]["missing"] == result.counts["perturbed"]["not_perturbable"] == 1
    said = " ".join(result.warnings)
    assert "3 of 6 planned examples are paired" in said
    assert "1 in the perturbed condition" in said
    assert "not perturbable: 1" in said


def test_draws_are_averaged_within_the_example_before_anything_else():
    before = [record("a", "i"), record("b", "j"), record("c", "k", hit=False)]
    after = [record("a", "i", hit=d < 1, draw=d) for d in range(4)]  # 1 of 4 hit
    after += [record("b", "j", draw=d) for d in range(4)]
    after += [record("c", "k", hit=d < 2, draw=d) for d in range(3)]  # one draw never came
    delta = compare(before, after).deltas["acc50"]
    assert delta.delta.n == 3
    assert delta.delta.value == pytest.approx((-0.75 + 0 + 2 / 3) / 3)
    assert delta.right_to_wrong == pytest.approx(0.75)
    assert delta.wrong_to_right == pytest.approx(2 / 3)
    assert delta.p_mcnemar is None
    assert delta.draw_sd == pytest.approx(np.std([1 / 3, 0, -1 / 3, -0.5], ddof=1))


def test_three_equal_draws_are_no_change():
    before = [record(str(i), str(i), predicted=Box(0, 0, 100, 72 + i)) for i in range(20)]
    after = [dataclasses.replace(each, draw=d) for each in before for d in range(3)]
    delta = compare(before, after).deltas["macc"]
    assert (delta.delta.value, delta.p, delta.draw_sd) == (0.0, 1.0, 0.0)
    assert delta.note.startswith("no discordant pairs")


def test_right_to_wrong_less_wrong_to_right_is_the_change():
    image, before, after = clustered(8, 50)
    for delta in compare(*arms(image, before, after)).deltas.values():
        net = delta.wrong_to_right - delta.right_to_wrong
        assert net / delta.delta.n == pytest.approx(delta.delta.value)


def test_the_order_of_records_changes_no_digit():
    image, before, after = clustered(2, 60)
    one, two = arms(image, before, after)
    three = [
        dataclasses.replace(
            each, draw=d, predicted=Box(0, 0, 100, 50 + (7 * k + 11 * d) % 50), distractors=k % 9
        )
        for k, each in enumerate(two)
        for d in range(7)
    ]
    one = [dataclasses.replace(each, distractors=k % 9) for k, each in enumerate(one)]
    shuffle = random.Random(3)
    expected = compare(one, three, slices=("distractors",))
    for _ in range(2):
        mixed = shuffle.sample(one, len(one)), shuffle.sample(three, len(three))
        assert compare(*mixed, slices=("distractors",)) == expected


def test_one_seed_gives_one_result_and_another_seed_moves_the_bootstrap_alone():
    image, before, after = clustered(2, 60)
    records = arms(image, before, after)
    first, again, other = (compare(*records, seed=seed).deltas["acc50"] for seed in (1, 1, 2))
    assert first == again
    assert first.delta == other.delta
    assert first.bootstrap != other.bootstrap


def test_signs_that_differ_between_primary_and_secondary_are_said():
    before = [record(str(i), str(i), hit=i >= 10) for i in range(40)]
    after = [record(str(i), str(i)) for i in range(20)]
    after += [record(str(i), str(i), outcome="unparsable", predicted=None) for i in range(20, 40)]
    result = compare(before, after)
    assert result.deltas["acc50"].delta.value < 0 < result.parsed_only["acc50"].delta.value
    assert any("the signs differ" in each and "acc50" in each for each in result.warnings)
    assert any("Answers without a box: 0.0% in the original and 50.0%" in each for each in result.warnings)


@pytest.mark.parametrize(("kind", "hint"), [("empty", "predictions.jsonl"), ("truncated", "max_new_tokens")])
def test_a_run_whose_answers_cannot_be_read_says_so_although_nothing_changed(kind, hint):
    lost = [record(str(i), str(i), outcome=kind, predicted=None) for i in range(40)]
    (said,) = (each for each in compare(lost, lost).warnings if "no box that can be read" in each)
    assert f"{kind}: 80" in said and hint in said
    fine = [record(str(i), str(i)) for i in range(40)]
    assert not any("no box that can be read" in each for each in compare(fine, fine).warnings)


def test_a_change_that_few_images_carry_is_said():
    before = [record(str(i), str(i // 30) if i < 60 else str(i)) for i in range(160)]
    after = [dataclasses.replace(each, predicted=HIT if k >= 30 else MISS) for k, each in enumerate(before)]
    result = compare(before, after)
    assert any("weigh as 13.5 of one size" in each for each in result.warnings)


# ── degenerate cases ────────────────────────────────────────────────────────────────────────────

DEGENERATE = {
    "nothing": ([], []),
    "nothing in common": ([record("a")], [record("b")]),
    "one example": ([record("a")], [record("a", hit=False)]),
    "one example, the same": ([record("a")], [record("a")]),
    "one image": ([record(str(i)) for i in range(5)], [record(str(i), hit=i > 2) for i in range(5)]),
    "identical": ([record(str(i), str(i)) for i in range(50)],) * 2,
    "all the same way": (
        [record(str(i), str(i)) for i in range(50)],
        [record(str(i), str(i), hit=False) for i in range(50)],
    ),
    "nothing parsed": (
        [record(str(i), str(i)) for i in range(5)],
        [record(str(i), str(i), outcome="empty", predicted=None) for i in range(5)],
    ),
    "all missing": (
        [record(str(i), str(i)) for i in range(5)],
        [record(str(i), str(i), outcome="missing", predicted=None) for i in range(5)],
    ),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_cases_have_no_nan_no_zero_width_and_a_reason(case):
    result = compare(*DEGENERATE[case], slices=("distractors", "length"))
    assert no_nan(result)
    for delta in [*result.deltas.values(), *result.parsed_only.values()]:
        for estimate in (delta.original, delta.perturbed, delta.delta):
            assert (estimate.low is None) == (estimate.high is None)
            assert estimate.low is None or estimate.low < estimate.high
            assert estimate.low is not None or estimate.note
        assert delta.p is None or 0 < delta.p <= 1
        if delta.delta.low is None:
            assert delta.bootstrap is None


@pytest.mark.parametrize("case", ["identical", "one example, the same"])
def test_without_a_discordant_pair_p_is_1_with_the_reason(case):
    delta = compare(*DEGENERATE[case]).deltas["acc50"]
    assert (delta.delta.value, delta.delta.low, delta.p, delta.p_mcnemar) == (0, None, 1, 1)
    assert "no discordant pairs" in delta.note


def test_one_image_and_zero_examples_give_no_p():
    assert compare(*DEGENERATE["one image"]).deltas["acc50"].p is None
    nothing = compare(*DEGENERATE["nothing"]).deltas["acc50"]
    assert (nothing.delta.value, nothing.p, nothing.p_mcnemar) == (None, None, None)


def test_accuracy_of_an_empty_arm_says_so():
    assert comparison.accuracy(Arm()).note == "no examples"
    assert comparison.accuracy_by(Arm(), "distractors") == []


# ── parts ───────────────────────────────────────────────────────────────────────────────────────


def test_distractor_bins_are_those_of_the_benchmark_and_nothing_is_dropped():
    arm = Arm(record(str(i), distractors=i if i < 12 else None) for i in range(14))
    found = {label: int(rows.sum()) for label, rows in slices.parts(arm, "distractors")}
    assert found == {"0–1": 2, "2–3": 2, "4–6": 3, "7+": 5, "unknown": 2}


@given(
    st.lists(
        st.one_of(st.none(), st.floats(0, 1e4), st.booleans(), st.text(max_size=5)), min_size=1, max_size=60
    )
)
@example(values=["\x00"])
@example(values=["a", "a\x00", None])
@settings(deadline=None)
def test_every_example_is_in_exactly_one_part(values):
    arm = Arm(record(str(i), attributes={"x": v} if v is not None else {}) for i, v in enumerate(values))
    if "x" not in arm.attributes():
        with pytest.raises(UserError, match="No example has the attribute 'x'"):
            slices.parts(arm, "x")
        return
    found = slices.parts(arm, "x")
    assert (np.sum([rows for _, rows in found], axis=0) == 1).all()
    assert all(rows.any() for _, rows in found)
    assert len({label for label, _ in found}) == len(found)


def test_many_labels_end_in_one_part_of_the_rarest():
    arm = Arm(record(f"{i}-{j}", category=f"c{i:02}") for i in range(40) for j in range(40 - i))
    found = slices.parts(arm, "category")
    assert len(found) == slices.MAX_PARTS
    assert found[-1][0] == "17 rarer ones"
    assert sum(int(rows.sum()) for _, rows in found) == len(arm)


def test_slices_carry_counts_and_notes_where_images_are_few():
    before = [record(str(i), str(i), distractors=2 if i < 5 else 4 if i < 25 else 8) for i in range(80)]
    after = [dataclasses.replace(each, predicted=HIT if k % 3 else MISS) for k, each in enumerate(before)]
    found = {
        part.label: part.deltas["acc50"] for part in compare(before, after, slices=("distractors",)).slices
    }
    assert [found[label].delta.n for label in ("2–3", "4–6", "7+")] == [5, 20, 55]
    assert "too few to conclude from" in found["2–3"].note
    assert "may be too narrow" in found["4–6"].note
    assert found["7+"].note == ""


def test_an_unknown_attribute_names_the_nearest():
    with pytest.raises(UserError, match="did you mean 'length'"):
        compare([record("a")], [record("a")], slices=("lenght",))


def test_other_metrics_by_name():
    image, before, after = clustered(2, 60)
    result = compare(*arms(image, before, after), metrics=("acc50", "acc95", "dig_avg"))
    assert list(result.deltas) == ["acc50", "acc95", "dig_avg"]


# ── published numbers ───────────────────────────────────────────────────────────────────────────


def published(shared: Path) -> Arm:
    arm = Arm()
    with (shared / "data" / "ref_adv_s_predictions.tsv").open(encoding="utf-8", newline="") as file:
        for row in DictReader(file, delimiter="\t", quoting=QUOTE_NONE):
            box = row["pred_box_xyxy_first"]
            arm.add(
                record(
                    row["row_idx"],
                    row["file_name"],
                    target=Box(*map(float, row["gt_bbox_xyxy"].split(","))),
                    outcome="box" if box else "unparsable",
                    predicted=Box(*map(float, box.split(","))) if box else None,
                    distractors=int(row["distractor_count"]),
                )
            )
    return arm


def test_the_published_row_of_ref_adv_s_is_reproduced(shared):
    arm = published(shared)
    found = [comparison.accuracy(arm, name) for name in ("acc50", "acc75", "acc90")]
    assert [round(100 * each.value, 1) for each in found] == [52.4, 39.0, 18.3]
    assert (found[0].n, found[0].images) == (1142, 614)
    bins = [(label, round(100 * each.value, 1)) for label, each in comparison.accuracy_by(arm, "distractors")]
    assert bins == [("2–3", 56.9), ("4–6", 47.9), ("7+", 38.8)]
    assert arm.counts()["unparsable"] == 6


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("vllm 0.32.0", "vllm 0.32.0", ""),
        ("", "", ""),
        ("", "vllm 0.32.0", ""),
        (
            "vllm 0.32.0",
            "transformers 5.24.0",
            "one side has vllm 0.32.0 (20), the other transformers 5.24.0 (20)",
        ),
        ("vllm 0.32.0", "vllm 0.33.0", "one side has vllm 0.32.0 (20), the other vllm 0.33.0 (20)"),
    ],
)
def test_answers_of_two_engines_are_a_warning(before: str, after: str, told: str) -> None:
    sides = [
        [record(str(k), f"image{k}", k % 3 == 0, engine=engine) for k in range(20)]
        for engine in (before, after)
    ]
    found = compare(*sides)
    warned = [text for text in found.warnings if "more than one engine" in text]
    assert bool(warned) == bool(told)
    assert told in "".join(warned)
    assert bool(found.details.get("engines")) == bool(before or after)


def test_one_side_that_two_versions_answered_is_a_warning_too() -> None:
    mixed = [record(str(k), f"image{k}", engine=f"vllm 0.{k % 2}") for k in range(20)]
    (told,) = [text for text in compare(mixed, mixed).warnings if "more than one engine" in text]
    assert "both sides have vllm 0.0 (10), vllm 0.1 (10)" in told


@pytest.mark.parametrize(
    ("side", "label"),
    [(127.9, "0 to <128"), (128, "128 to 256"), (256, "128 to 256"), (256.01, ">256"), (4000, ">256")],
)
def test_box_sizes_are_parted_as_ref_l4_does(side: float, label: str) -> None:
    """conventions of ref_l4/evaluation.py: below 128 small, up to 256 medium, above it large."""
    assert slices.number_label(side, "box_size") == label
