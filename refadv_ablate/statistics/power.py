"""How small a Δ a planned run can detect: looked at before the money is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from refadv_ablate.errors import UserError
from refadv_ablate.statistics import inference
from refadv_ablate.types import Delta

MORE = 1 << 34
"""Examples beyond which nobody plans a run."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned run, and what is assumed about it. Accuracies, Δ and correlations as fractions.

    agreement: correlation of the hits of one example in the two conditions.
    icc: correlation of the changes of two examples on one image.
    scatter: from a pilot, the variance of a change with clustering in it, in place of the two.
    """

    n: int
    images: int
    baseline: float = 0.6
    agreement: float = 0.5
    icc: float = 0.1
    alpha: float = 0.05
    power: float = 0.8
    scatter: float | None = None
    effective: float | None = None
    """(Σs)²/Σs² of the real numbers of examples on an image; None: as if they were 1 + Poisson."""
    contrast: Literal["paired", "apart"] | None = None
    """Ask about the difference of two Δ: on the same examples, or on two such sets of data."""
    fall: float = 0.1
    """Of a contrast: the smaller fall of the two."""
    between: float = 0.3
    """Of a paired contrast: correlation of the changes of one example in the two."""

    def __post_init__(self) -> None:
        if not 2 <= self.images <= self.n:
            raise UserError(
                f"n={self.n} examples on images={self.images}: plan 2 images or more, and at most n."
            )
        if not 0 < self.baseline < 1:
            raise UserError(f"baseline={self.baseline}: an accuracy between 0 and 1 (60% is 0.6).")
        if self.effective is not None and not 1 <= self.effective <= self.images + 1e-9:
            raise UserError(f"effective={self.effective}: between 1 and the number of images, {self.images}.")
        for name in ("agreement", "icc", "between", "fall"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: a correlation of at least 0 and less than 1.")
        for name in ("alpha", "power"):
            if not 0 < getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: a probability between 0 and 1.")

    def with_n(self, n: int) -> Plan:
        """More or fewer examples, as many on an image as before."""
        images = max(2, min(n, round(n * self.images / self.n)))
        effective = None if self.effective is None else max(1.0, self.effective * images / self.images)
        return replace(self, n=n, images=images, effective=effective)

    @property
    def weight(self) -> float:
        """Effective number of images."""
        size = self.n / self.images
        return self.effective or self.n / (1 + (size - 1) * (1 + 1 / size))


def standard_error(plan: Plan, delta: float) -> float:
    """Of the measured Δ, or of the difference of two, if `delta` is the true one."""
    if plan.contrast is None:
        return math.sqrt(_variance(plan, delta))
    one, two = _variance(plan, -plan.fall), _variance(plan, -plan.fall - abs(delta))
    shared = plan.between * math.sqrt(one * two) if plan.contrast == "paired" else 0.0
    return math.sqrt(one + two - 2 * shared)


def _variance(plan: Plan, delta: float) -> float:
    """Of one measured Δ."""
    if plan.scatter is not None:
        return plan.scatter / plan.n
    after = min(1.0, max(0.0, plan.baseline + delta))
    before_var, after_var = plan.baseline * (1 - plan.baseline), after * (1 - after)
    joint = plan.agreement * math.sqrt(before_var * after_var)
    # a correlation of hits can't be so high that fewer examples change than Δ needs
    change = max(before_var + after_var - 2 * joint, abs(delta) * (1 - abs(delta)))
    # images with more examples than others weigh more: the mean over examples of their image's size
    effect = 1 + (plan.n / plan.weight - 1) * plan.icc
    return change * effect / plan.n


def power_of(plan: Plan, delta: float) -> float:
    """Chance that the 1 − alpha interval of a run like this leaves out 0."""
    error = standard_error(plan, delta)
    needed = inference.t_quantile(max(1.0, plan.weight - 1), 1 - plan.alpha)
    if error == 0:
        return 1.0
    return _below(abs(delta) / error - needed) + _below(-abs(delta) / error - needed)


def smallest_detectable(plan: Plan) -> float | None:
    """The smallest fall in accuracy (or difference of two) found with the plan's power; None if none is."""
    low, high = 0.0, plan.baseline - (plan.fall if plan.contrast else 0.0)
    if power_of(plan, -high) < plan.power:
        return None
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(plan, -middle) >= plan.power else (middle, high)
    return high


def needed_examples(plan: Plan, delta: float) -> int | None:
    """Examples that detect a fall of `delta` with the plan's power, as many on an image as planned."""
    if delta > plan.baseline - (plan.fall if plan.contrast else 0.0):
        return None
    low, high = 2, 4
    while power_of(plan.with_n(high), -delta) < plan.power:
        low, high = high, high * 2
        if high > MORE:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(plan.with_n(middle), -delta) >= plan.power else (middle, high)
    return high


def curve(plan: Plan, delta: float, ns: Sequence[int]) -> list[float]:
    """Power to detect a fall of `delta` at each n."""
    return [power_of(plan.with_n(n), -delta) for n in ns]


def from_pilot(found: Delta, where: str) -> Plan:
    """A plan like the pilot, with what it measured. Raises UserError where it measured no spread."""
    delta = found.delta
    if delta.low is None or delta.high is None or found.original.value is None:
        raise UserError(f"The pilot {where} has no interval for Δ ({found.note}): give baseline=… instead.")
    width = delta.high - delta.low
    error = width / 2 / inference.t_quantile(delta.df or delta.images - 1)
    accuracy = min(1 - 1e-9, max(1e-9, found.original.value))
    return Plan(
        n=delta.n,
        images=delta.images,
        baseline=accuracy,
        scatter=error**2 * delta.n,
        effective=delta.effective,
    )


def _below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))
