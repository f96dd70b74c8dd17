"""Differences of two results, each with its interval: "falls more than", "halves the fall", "is more robust".

A side is one comparison's examples: hits of both conditions, per example. Two sides on the same examples are
paired example by example; sides on different data are not. Either way the image is the unit, an image that
both data sets hold counts once, and leaving each image out in turn gives the standard error of whatever is
asked of the two sides, a ratio included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.inference import jackknife_error
from refadv_ablate.statistics.pairing import paired_values
from refadv_ablate.types import Estimate

Quantity = Literal["delta", "original", "perturbed", "relative", "above_chance"]
QUANTITIES: Mapping[Quantity, str] = {
    "delta": "Δ",
    "original": "original accuracy",
    "perturbed": "perturbed accuracy",
    "relative": "relative fall (Δ / original)",
    "above_chance": "fall above chance (Δ / (original − chance))",
}
"""What a contrast may be about, and how it is called."""


@dataclass(frozen=True)
class Side:
    """Paired examples of one cell, sorted by example; `chance` is the accuracy of pointing at random.

    engines: what answered, as far as that is known.
    """

    name: str
    example: NDArray[np.uint64]
    image: NDArray[np.uint64]
    original: Floats
    perturbed: Floats
    chance: float = 0.0
    engines: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, original: Arm, perturbed: Arm, metric: str = "acc50", chance: float = 0.0) -> Side:
        """The examples answered in both arms, draws averaged. Raises UserError for an unknown metric."""
        engines = frozenset(original.engines()) | frozenset(perturbed.engines())
        return cls(name, *paired_values(original, perturbed, metric), chance, engines)

    @cached_property
    def numbered(self) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        """Its distinct images, and the number of each example's."""
        return np.unique(self.image, return_inverse=True)

    @cached_property
    def means(self) -> Means:
        """On its own images; kept, since a side meets many others."""
        images, codes = self.numbered
        return _leave_out(self, codes, len(images))

    def where(self, rows: NDArray[np.bool_]) -> Side:
        """Some of the examples."""
        return replace(
            self,
            example=self.example[rows],
            image=self.image[rows],
            original=self.original[rows],
            perturbed=self.perturbed[rows],
        )


@dataclass(frozen=True, slots=True)
class Contrast:
    """b − a of one quantity. `paired`: on the same examples."""

    a: str
    b: str
    quantity: Quantity
    paired: bool
    first: Estimate
    second: Estimate
    difference: Estimate
    p: float | None = None
    p_holm: float | None = None
    where: str = ""
    """What both sides share: such as the data and the perturbation."""
    engines: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """What answered each side, as far as that is known."""


def contrast(a: Side, b: Side, quantity: Quantity = "delta", *, paired: bool, where: str = "") -> Contrast:
    """b − a with its 95% interval and the p of the same t: the two can't contradict each other.

    paired: the sides are of one data set and only their common examples count.
    """
    if paired:
        a, b = _common(a, b)
    means = _on_one_set_of_images(a, b)
    asked = (_statistic(quantity, a.chance), _statistic(quantity, b.chance))
    floors = (_floor(quantity, a.chance), _floor(quantity, b.chance))
    first, second = (_estimate(*each) for each in zip((a, b), means, asked, floors, strict=True))
    nothing, engines = _nothing(first, second), (a.engines, b.engines)
    made = Contrast(a.name, b.name, quantity, paired, first, second, nothing, where=where, engines=engines)
    if first.value is None or second.value is None:
        return made
    value = second.value - first.value
    n, images = (first.n, first.images) if paired else (first.n + second.n, len(means[0].left_out[0]))
    one = Estimate(value, None, None, n, images)
    if paired and np.array_equal(a.original, b.original) and np.array_equal(a.perturbed, b.perturbed):
        return replace(made, difference=replace(one, note="both sides answer alike: exactly 0"), p=1.0)
    left_out = asked[1](*means[1].left_out) - asked[0](*means[0].left_out)
    error = jackknife_error(left_out, value) if images > 1 and np.isfinite(left_out).all() else math.nan
    df = _df(means, asked, paired)
    if not math.isfinite(error) or error == 0:
        return replace(made, difference=replace(one, note="no spread over images: no interval"))
    half = inference.t_quantile(df) * error
    found = replace(one, low=value - half, high=value + half, method="jackknife t", df=df, effective=df + 1)
    return replace(made, difference=found, p=_t_p(value / error, df))


def engines_apart(contrasts: Sequence[Contrast]) -> str:
    """One sentence where two sides were answered by different engines or versions; empty where none were."""
    apart = [each for each in contrasts if all(each.engines) and each.engines[0] != each.engines[1]]
    if not apart:
        return ""
    first, second = (", ".join(sorted(side)) for side in apart[0].engines)
    within = f" within {apart[0].where}" if apart[0].where else ""
    return (
        f"{len(apart)} of {len(contrasts)} differences set answers of different engines against each other "
        f"(the first{within}: {apart[0].a} by {first}, {apart[0].b} by {second}). Part of them may come from "
        "that: answer both sides with one engine and version, or hold them against the Δ of perturb=repeat."
    )


def holm(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """The same with `p_holm`: they are the family that was declared."""
    adjusted = inference.holm([each.p for each in contrasts])
    return [replace(each, p_holm=p) for each, p in zip(contrasts, adjusted, strict=True)]


# ── one side ────────────────────────────────────────────────────────────────────────────────────

Statistic = Callable[[Floats, Floats], Floats]
"""Mean original and perturbed accuracy → the quantity; element by element."""


@dataclass(frozen=True, slots=True)
class Means:
    """Of both conditions, on all images, and with each image of the union of both sides left out."""

    whole: tuple[Floats, Floats]
    left_out: tuple[Floats, Floats]
    df: float


def _statistic(quantity: Quantity, chance: float) -> Statistic:
    def ratio(original: Floats, perturbed: Floats, floor: float) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((perturbed - original) / (original - floor), np.float64)

    made: Mapping[str, Statistic] = {
        "delta": lambda original, perturbed: perturbed - original,
        "original": lambda original, perturbed: original,
        "perturbed": lambda original, perturbed: perturbed,
        "relative": lambda original, perturbed: ratio(original, perturbed, 0.0),
        "above_chance": lambda original, perturbed: ratio(original, perturbed, chance),
    }
    return made[quantity]


def _floor(quantity: Quantity, chance: float) -> float | None:
    """What a ratio's denominator stands above; None for what is no ratio."""
    return {"relative": 0.0, "above_chance": chance}.get(quantity)


def _common(a: Side, b: Side) -> tuple[Side, Side]:
    if len(a.example) == len(b.example) and np.array_equal(a.example, b.example):
        return a, b
    return a.where(np.isin(a.example, b.example)), b.where(np.isin(b.example, a.example))


def _on_one_set_of_images(a: Side, b: Side) -> tuple[Means, Means]:
    """An image that only one side has leaves the other as it is when it is left out."""
    if np.array_equal(a.numbered[0], b.numbered[0]):
        return a.means, b.means
    images, codes = np.unique(np.concatenate([a.image, b.image]), return_inverse=True)
    n = len(a.image)
    return _leave_out(a, codes[:n], len(images)), _leave_out(b, codes[n:], len(images))


def _leave_out(side: Side, codes: NDArray[np.intp], images: int) -> Means:
    n = len(side.example)
    sizes = np.bincount(codes, minlength=images).astype(np.float64)
    rest = np.maximum(n - sizes, 1)
    whole, left_out = [], []
    for values in (side.original, side.perturbed):
        sums = np.bincount(codes, values, images)
        whole.append(np.asarray(sums.sum() / max(1, n)))
        left_out.append((sums.sum() - sums) / rest)
    effective = n**2 / float(sizes @ sizes) if n else 0.0
    return Means((whole[0], whole[1]), (left_out[0], left_out[1]), max(1.0, effective - 1))


def _estimate(side: Side, means: Means, statistic: Statistic, floor: float | None) -> Estimate:
    """The quantity on one side; a ratio, whose denominator is what lies above `floor`, by Fieller."""
    n, images = len(side.example), len(side.numbered[0])
    if not n:
        return Estimate(None, None, None, 0, 0, note="no examples answered in both conditions")
    value = float(statistic(*means.whole))
    if not math.isfinite(value):
        return Estimate(None, None, None, n, images, note="nothing to fall from: the denominator is 0")
    one = Estimate(value, None, None, n, images, effective=means.df + 1, df=means.df)
    if floor is not None:
        bounds = fieller(means, floor) if images > 1 else None
        if bounds is None:
            return replace(one, note="the denominator can't be told from 0: the interval has no end")
        return replace(one, low=bounds[0], high=bounds[1], method="Fieller")
    error = jackknife_error(statistic(*means.left_out), value) if images > 1 else 0.0
    if not error:
        return replace(one, note="no spread over images: no interval")
    half = inference.t_quantile(means.df) * error
    return replace(one, low=value - half, high=value + half, method="jackknife t")


def fieller(means: Means, floor: float) -> tuple[float, float] | None:
    """95% interval of (perturbed − original) / (original − floor): the ratios that a t test allows.

    None where the denominator can't be told from 0, so that the set has no ends (Fieller 1954).
    """
    above = float(means.whole[1] - means.whole[0])
    below = float(means.whole[0]) - floor
    tops, bottoms = means.left_out[1] - means.left_out[0] - above, means.left_out[0] - floor - below
    scale = (len(tops) - 1) / len(tops) * inference.t_quantile(means.df) ** 2
    uu, vv, uv = (scale * float(x @ y) for x, y in ((tops, tops), (bottoms, bottoms), (tops, bottoms)))
    a, b, c = below**2 - vv, above * below - uv, above**2 - uu
    if a <= 0:
        return None
    root = math.sqrt(max(0.0, b * b - a * c))
    return (b - root) / a, (b + root) / a


def _df(means: Sequence[Means], asked: Sequence[Statistic], paired: bool) -> float:
    """Of the difference: that of the shared examples, or Welch's of both sides."""
    if paired:
        return means[0].df
    variances = [
        jackknife_error(statistic(*m.left_out), float(statistic(*m.whole))) ** 2
        for m, statistic in zip(means, asked, strict=True)
    ]
    below = sum(v**2 / m.df for v, m in zip(variances, means, strict=True))
    return max(1.0, sum(variances) ** 2 / below) if below > 0 else 1.0


def _nothing(first: Estimate, second: Estimate) -> Estimate:
    return Estimate(None, None, None, 0, 0, note=first.note or second.note)


def _t_p(t: float, df: float) -> float:
    from scipy.special import stdtr

    return max(float(2 * stdtr(df, -abs(t))), float(np.finfo(float).tiny))


# ── ranks ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Rank:
    """Place of a side among others, 1 the highest; `low` and `high` bound it at 95% for all at once."""

    name: str
    place: int
    low: int
    high: int
    estimate: Estimate


def ranks(sides: Sequence[Side], found: Sequence[Contrast]) -> list[Rank]:
    """By the quantity of the contrasts, the highest first; bounds from all pairs (Mogstad et al. 2024).

    `found`: the contrasts of all pairs of the sides, in the order of `itertools.combinations`; they are
    Holm-adjusted here, as a family of their own.

    A side's place is at best behind all that are surely higher and at worst before all surely lower.
    """
    pairs = list(combinations(range(len(sides)), 2))
    found = holm(found)
    higher, lower = [0] * len(sides), [0] * len(sides)
    for (i, j), each in zip(pairs, found, strict=True):
        if each.p_holm is None or each.p_holm >= 0.05 or each.difference.low is None:
            continue
        up, down = (j, i) if (each.difference.value or 0) > 0 else (i, j)
        higher[down] += 1
        lower[up] += 1
    alone: dict[int, Estimate] = {}
    for (i, j), each in zip(pairs, found, strict=True):
        alone |= {i: each.first, j: each.second}
    values = (alone[i].value for i in range(len(sides)))
    known = [-math.inf if value is None else value for value in values]
    rows = [
        Rank(side.name, 1 + sum(v > known[i] for v in known), 1 + higher[i], len(sides) - lower[i], alone[i])
        for i, side in enumerate(sides)
    ]
    return sorted(rows, key=lambda rank: rank.place)
