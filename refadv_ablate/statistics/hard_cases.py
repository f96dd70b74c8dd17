"""Where intervals usually fail, simulated: unequal images, rare changes, near 100%, draws, contrasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from refadv_ablate.seeding import generator
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.contrasts import Side, contrast
from refadv_ablate.statistics.estimates import difference, fraction
from refadv_ablate.statistics.simulation import Design, Experiment, experiments
from refadv_ablate.types import Estimate

LEAST = 0.93
"""Coverage that every case must reach; some are held more often, never less."""
TWO_LARGE, ONE_LARGE = (200, 200, *[3] * 60), (200, *[3] * 154)

Trial = tuple[Estimate, float]
"""What was estimated and what is true."""


@dataclass(frozen=True, slots=True)
class Held:
    """How often the 95% interval of a case held the truth, with the Monte Carlo interval of that share."""

    name: str
    times: int
    coverage: float
    low: float
    high: float

    @property
    def passed(self) -> bool:
        """Whether the share reaches the least, or can't be told from 95% with so few experiments."""
        return self.coverage >= LEAST or self.high >= inference.CONFIDENCE


def measure(times: int, seed: int) -> Iterator[Held]:
    """Each case, `times` experiments."""
    for name, trials in CASES.items():
        rng = np.random.default_rng(generator(seed, "hard cases", name).getrandbits(128))
        held = sum(_holds(*trial) for trial in trials(times, rng)) / times
        yield Held(name, times, held, *inference.wilson_interval(held, times))


def _holds(found: Estimate, true: float) -> bool:
    """An estimate without an interval claims nothing but its value."""
    if found.low is None or found.high is None:
        return found.value == true
    return found.low <= true <= found.high


def _change(design: Design) -> Callable[[int, np.random.Generator], Iterator[Trial]]:
    def trials(times: int, rng: np.random.Generator) -> Iterator[Trial]:
        for run in experiments(design, times, rng):
            yield difference(run.change, run.image), design.delta

    return trials


def _accuracy(design: Design) -> Callable[[int, np.random.Generator], Iterator[Trial]]:
    def trials(times: int, rng: np.random.Generator) -> Iterator[Trial]:
        for run in experiments(design, times, rng):
            yield fraction(run.before, run.image), design.baseline

    return trials


def _rare(times: int, rng: np.random.Generator) -> Iterator[Trial]:
    """1.5% of the answers go from right to wrong, more of them on some images, none the other way."""
    for _ in range(times):
        image = np.repeat(np.arange(614), 1 + rng.poisson(0.86, 614))
        rate = rng.beta(0.045, 2.955, 614)[image]
        yield difference(-(rng.random(len(image)) < rate).astype(float), image), -0.015


def _draws(times: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Five draws of a perturbation, averaged within the example."""
    design = Design(200, baseline=0.7, delta=-0.15)
    for run in experiments(design, times, rng):
        after = [run.after]
        for _ in range(4):  # a further draw agrees with the first on most examples
            again = rng.random(len(run.after)) < design.baseline + design.delta
            after.append(np.where(rng.random(len(run.after)) < 0.6, run.after, again))
        yield difference(np.round(np.mean(after, axis=0) - run.before, 12), run.image), design.delta


def _contrast(paired: bool) -> Callable[[int, np.random.Generator], Iterator[Trial]]:
    def trials(times: int, rng: np.random.Generator) -> Iterator[Trial]:
        first = Design(100, baseline=0.8, delta=-0.25, sizes=tuple([1, 2, 3, 6] * 25))
        second = replace(first, baseline=0.7, delta=-0.1)
        for a, b in zip(experiments(first, times, rng), experiments(second, times, rng), strict=True):
            shift = 0 if paired else 50  # other data, half of whose images are shared
            sides = _side(a, 0), _side(b, shift)
            yield contrast(*sides, paired=paired).difference, second.delta - first.delta

    return trials


def _side(run: Experiment, first_image: int) -> Side:
    example = np.arange(len(run.image), dtype=np.uint64)
    image = (run.image + first_image).astype(np.uint64)
    return Side("", example, image, run.before, run.after)


CASES: Mapping[str, Callable[[int, np.random.Generator], Iterator[Trial]]] = {
    "2 images of 200 beside 60 of 3, Δ 0": _change(Design(62, sizes=TWO_LARGE)),
    "2 images of 200 beside 60 of 3, Δ −18": _change(Design(62, sizes=TWO_LARGE, delta=-0.18)),
    "1 image of 200 beside 154 of 3, Δ −18": _change(Design(155, sizes=ONE_LARGE, delta=-0.18)),
    "1.5% change, all one way": _rare,
    "accuracy 99.5%": _accuracy(Design(614, 1.86, baseline=0.995)),
    "accuracy 99%, images alike": _accuracy(Design(614, 1.86, baseline=0.99, within=0.9)),
    "five draws, Δ −15": _draws,
    "difference of two Δ, same examples": _contrast(True),
    "difference of two Δ, other data": _contrast(False),
}
