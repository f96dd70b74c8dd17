"""Promised power against simulated runs, and the command."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from omegaconf import OmegaConf

from refadv_ablate.assets import asset_dir
from refadv_ablate.commands import power as power_command
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics import inference, power
from refadv_ablate.statistics.estimates import difference
from refadv_ablate.statistics.inference import Clusters
from refadv_ablate.statistics.power import Plan
from refadv_ablate.statistics.simulation import Design, experiments
from refadv_ablate.storage.records import dump, write_records
from tests.statistics.test_comparison import clustered, record


def command(capsys, **changes) -> str:
    config = OmegaConf.create({"command": OmegaConf.load(asset_dir("conf") / "command" / "power.yaml")})
    config.command.update(changes)
    assert power_command.run(config) == 0
    return capsys.readouterr().out


def correlations(design: Design) -> tuple[float, float]:
    """(agreement of hits, icc of changes within an image), measured on one very large experiment."""
    large = Design(60_000, design.per_image, design.baseline, design.delta, design.within, design.agreement)
    found = next(experiments(large, 1, np.random.default_rng(5)))
    agreement = np.corrcoef(found.before, found.after)[0, 1]
    change = found.change - found.change.mean()
    sums, counts = np.bincount(found.image, change), np.bincount(found.image)
    squares = np.bincount(found.image, change**2)
    icc = (sums**2 - squares).sum() / (counts * (counts - 1)).sum() / change.var()
    return float(agreement), float(icc)


@pytest.mark.parametrize(
    ("images", "per_image", "delta"),
    [(120, 2.0, -0.10), (300, 3.0, -0.05), (600, 2.0, -0.05), (300, 2.0, -0.02)],
)
def test_the_promised_power_is_that_of_simulated_runs(images, per_image, delta):
    design = Design(images, per_image, 0.6, delta)
    agreement, icc = correlations(design)
    detected = sizes = 0
    for run in experiments(design, 1000, np.random.default_rng(1)):
        estimate = difference(run.change, run.image)
        detected += estimate.high < 0 or estimate.low > 0
        sizes += estimate.n
    plan = Plan(round(sizes / 1000), images, 0.6, agreement, icc)
    assert power.power_of(plan, delta) == pytest.approx(detected / 1000, abs=0.045)  # 3 standard errors


def test_the_smallest_detectable_fall_has_just_the_power_asked_for():
    for n, images in [(200, 120), (1142, 614), (20_000, 9000)]:
        plan = Plan(n, images)
        smallest = power.smallest_detectable(plan)
        assert power.power_of(plan, -smallest) == pytest.approx(0.8, abs=0.001)
        assert power.needed_examples(plan, smallest) == pytest.approx(n, rel=0.02)


def test_more_examples_images_and_agreement_detect_less():
    base = power.smallest_detectable(Plan(1000, 500))
    assert power.smallest_detectable(Plan(4000, 2000)) == pytest.approx(base / 2, rel=0.05)
    assert power.smallest_detectable(Plan(1000, 100)) > base
    assert power.smallest_detectable(Plan(1000, 500, agreement=0.8)) < base
    assert power.smallest_detectable(Plan(1000, 500, alpha=0.05 / 6)) > base
    assert power.smallest_detectable(Plan(4, 2)) is None


def test_a_pilot_gives_its_own_standard_error_and_scales_it():
    image, before, after = clustered(4, 200)
    found = stats.compare(
        Arm(record(str(k), f"i{i}", bool(h)) for k, (i, h) in enumerate(zip(image, before, strict=True))),
        Arm(record(str(k), f"i{i}", bool(h)) for k, (i, h) in enumerate(zip(image, after, strict=True))),
        model="m", data="d", prompt="p", operator="bow", planned=len(image),
    ).deltas["acc50"]  # fmt: skip
    plan = power.from_pilot(found, "here")
    error = Clusters.of(after.astype(float) - before, image).standard_error()
    assert power.standard_error(plan, 0) == pytest.approx(error)
    assert power.standard_error(plan.with_n(4 * plan.n), 0) == pytest.approx(error / 2)
    assert plan.with_n(4 * plan.n).images == 4 * plan.images


def test_the_command_prints_the_smallest_fall_and_the_curves(capsys):
    text = command(capsys, n=1142, images=614)
    smallest = power.smallest_detectable(Plan(1142, 614))
    assert f"{smallest * 100:.1f} points" in text
    assert "1,142 examples on 614 images" in text
    for delta in ("−2", "−5", "−10"):
        assert f"Δ {delta} points with 80% power" in text
    assert "alpha 0.05)" in text
    assert "alpha 0.00625)" in command(capsys, n=1142, family=8)


def test_the_command_reads_a_pilots_summary_folder_or_predictions(capsys, tmp_path):
    image, before, after = clustered(4, 200)
    arms = [
        [
            record(str(k), f"i{i}", bool(h), condition=name)
            for k, (i, h) in enumerate(zip(image, hits, strict=True))
        ]
        for name, hits in (("original", before), ("bow", after))
    ]
    comparison = stats.compare(
        Arm(arms[0]), Arm(arms[1]), model="m", data="d", prompt="p", operator="bow", planned=len(image)
    )
    dump(comparison, tmp_path / "summary.json")
    write_records(tmp_path / "predictions.jsonl", [*arms[0], *arms[1]])
    texts = {
        command(capsys, pilot=str(path))
        for path in (tmp_path, tmp_path / "summary.json", tmp_path / "predictions.jsonl")
    }
    assert len(texts) == 1
    assert f"{len(image)} examples on 200 images" in texts.pop()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "power needs n=…"),
        ({"n": 10, "images": 20}, "n=10 examples on images=20"),
        ({"n": "many"}, "n='many': a whole number"),
        ({"n": 100, "baseline": 60}, "baseline=60.0: an accuracy between 0 and 1"),
        ({"n": 100, "icc": 1}, "icc=1.0: a correlation"),
        ({"n": 100, "power": "high"}, "power='high': a number"),
        ({"pilot": "nowhere"}, "There is no pilot nowhere"),
    ],
)
def test_each_mistake_has_its_sentence(capsys, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        command(capsys, **changes)


def test_a_pilot_without_spread_is_refused():
    same = [record(str(i), str(i)) for i in range(30)]
    found = stats.compare(
        Arm(same), Arm(same), model="m", data="d", prompt="p", operator="bow", planned=30
    ).deltas["acc50"]
    with pytest.raises(UserError, match="no discordant pairs"):
        power.from_pilot(found, "here")


def test_real_cluster_sizes_cost_power_and_are_read_from_predictions(capsys, shared):
    """Ref-Adv-s: 1,142 examples on 614 images weigh as fewer than sizes of 1 + Poisson would."""
    path = str(shared / "data" / "ref_adv_s_predictions.tsv")
    out = command(capsys, n=1142, like=path, baseline=0.54)
    assert "on 614 images (that weigh as " in out
    mild = power.Plan(1142, 614, 0.54, icc=0.5)
    real = dataclasses.replace(mild, effective=inference.effective_number(report_sizes(path)))
    assert real.weight < mild.weight
    assert power.power_of(real, -0.05) < power.power_of(mild, -0.05)


def report_sizes(path: str) -> np.ndarray:
    from refadv_ablate.report.loading.sources import from_files

    (cell,) = from_files([path])
    return np.unique(cell.arms["original"].columns().image, return_counts=True)[1].astype(float)


@pytest.mark.parametrize("contrast", ["paired", "apart"])
def test_the_power_of_a_contrast_is_what_simulations_find(contrast):
    """Two falls of 10 and 25 points: found as often as promised, within the simulation's own error."""
    from refadv_ablate.statistics.contrasts import Side
    from refadv_ablate.statistics.contrasts import contrast as set_against

    one = Design(150, 2.0, baseline=0.7, delta=-0.1)
    two = dataclasses.replace(one, delta=-0.25)
    agreement, icc = correlations(one)
    n = 300
    plan = power.Plan(
        n, 150, 0.7, agreement, icc, contrast=contrast, fall=0.1, between=0.0
    )  # the simulated changes of two sides are independent
    sizes = tuple([1, 2, 3] * 50)
    plan = dataclasses.replace(plan, effective=inference.effective_number(np.array(sizes, float)))

    def side(run, shift: int) -> Side:
        example = np.arange(len(run.image), dtype=np.uint64)
        return Side("", example, (run.image + shift).astype(np.uint64), run.before, run.after)

    found = 0
    runs = [
        experiments(dataclasses.replace(each, sizes=sizes), 300, np.random.default_rng(k))
        for k, each in enumerate((one, two))
    ]
    for a, b in zip(*runs, strict=True):
        shift = 0 if contrast == "paired" else 1000
        sides = [side(a, 0), side(b, shift)]
        found += set_against(*sides, paired=contrast == "paired").p < 0.05
    assert found / 300 == pytest.approx(power.power_of(plan, -0.15), abs=0.08)
