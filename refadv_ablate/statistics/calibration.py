"""Does the inference keep its word? Thousands of experiments whose true Δ is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from refadv_ablate.boxes import Floats
from refadv_ablate.seeding import generator
from refadv_ablate.statistics import inference, power
from refadv_ablate.statistics.estimates import difference
from refadv_ablate.statistics.inference import Clusters
from refadv_ablate.statistics.simulation import Design, correlations, experiments
from refadv_ablate.types import Estimate

COVERAGE = (0.93, 0.97)
"""Share of 95% intervals that hold the true Δ."""
FALSE_POSITIVES = (0.04, 0.06)
"""Share of p ≤ 0.05 where the true Δ is 0."""
POWER = (0.75, 0.85)
"""Share of experiments of the size that promises 80% that find the Δ."""
FLIPS = 999


@dataclass(frozen=True, slots=True)
class Calibration:
    """Shares over the experiments of one design; `naive` takes all examples as independent."""

    design: Design
    times: int
    coverage: float
    naive: float
    false_positives: float | None
    """Of the sign-flip test; None where the true Δ isn't 0."""

    @property
    def passed(self) -> bool:
        """Whether coverage and false positives are in their bands; naive isn't ours to pass."""
        held = COVERAGE[0] <= self.coverage <= COVERAGE[1]
        p = self.false_positives
        return held and (p is None or FALSE_POSITIVES[0] <= p <= FALSE_POSITIVES[1])


@dataclass(frozen=True, slots=True)
class Promise:
    """How many examples find a fall with 80% power, as computed and as simulated."""

    delta: float
    n: int
    images: int
    simulated: float

    @property
    def passed(self) -> bool:
        """Whether the simulated power is near the promised one."""
        return POWER[0] <= self.simulated <= POWER[1]


def calibrate(images: Sequence[int], deltas: Sequence[float], times: int, seed: int) -> Iterator[Calibration]:
    """For each number of images and each true Δ."""
    for count in images:
        for delta in deltas:
            yield calibration(Design(count, delta=delta), times, seed)


def calibration(design: Design, times: int, seed: int) -> Calibration:
    """The functions that judge real runs, on simulated ones."""
    rng = _rng(seed, "experiments", design)
    flips = _rng(seed, "flips", design)
    held = naive_held = rejected = 0
    for run in experiments(design, times, rng):
        held += _holds(difference(run.change, run.image), design.delta)
        low, high = naive_interval(run.change)
        naive_held += low <= design.delta <= high
        if design.delta == 0:
            rejected += inference.sign_flip_p(Clusters.of(run.change, run.image), flips, FLIPS) <= 0.05
    false_positives = rejected / times if design.delta == 0 else None
    return Calibration(design, times, held / times, naive_held / times, false_positives)


def _holds(estimate: Estimate, delta: float) -> bool:
    if estimate.low is None or estimate.high is None:
        return delta == estimate.value  # nothing changed: no interval, and no claim but that
    return estimate.low <= delta <= estimate.high


def naive_interval(change: Floats) -> tuple[float, float]:
    """What one gets who forgets that examples share images."""
    half = inference.normal_quantile(0.975) * float(np.std(change, ddof=1)) / math.sqrt(len(change))
    return float(np.mean(change)) - half, float(np.mean(change)) + half


def promises(deltas: Sequence[float], times: int, seed: int, per_image: float = 2.0) -> Iterator[Promise]:
    """For each fall: the examples that the power formula asks for, and what they find in fact."""
    for delta in deltas:
        design = Design(100, per_image, delta=-delta)
        agreement, icc = correlations(design, _rng(seed, "correlations", design))
        plan = power.Plan(round(100 * per_image), 100, design.baseline, agreement, icc)
        n = power.needed_examples(plan, delta)
        assert n is not None, "a fall smaller than the baseline can be found"
        planned = replace(design, images=plan.with_n(n).images)
        found = sum(
            (estimate := difference(run.change, run.image)).high is not None and estimate.high < 0
            for run in experiments(planned, times, _rng(seed, "promises", planned))
        )
        yield Promise(delta, n, planned.images, found / times)


def _rng(seed: int, purpose: str, design: Design) -> np.random.Generator:
    return np.random.default_rng(generator(seed, "calibration", purpose, repr(design)).getrandbits(128))
