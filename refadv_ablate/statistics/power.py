"""How small a Δ a planned run can detect: looked at before the money is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    def __post_init__(self) -> None:
        if not 2 <= self.images <= self.n:
            raise UserError(
                f"n={self.n} examples on images={self.images}: plan 2 images or more, and at most n."
            )
        if not 0 < self.baseline < 1:
            raise UserError(f"baseline={self.baseline}: an accuracy between 0 and 1 (60% is 0.6).")
        for name in ("agreement", "icc"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: a correlation of at least 0 and less than 1.")
        for name in ("alpha", "power"):
            if not 0 < getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: a probability between 0 and 1.")

    def with_n(self, n: int) -> Plan:
        """More or fewer examples, as many on an image as before."""
        return replace(self, n=n, images=max(2, min(n, round(n * self.images / self.n))))


def standard_error(plan: Plan, delta: float) -> float:
    """Of the measured Δ, if `delta` is the true one."""
    if plan.scatter is not None:
        return math.sqrt(plan.scatter / plan.n)
    after = min(1.0, max(0.0, plan.baseline + delta))
    before_var, after_var = plan.baseline * (1 - plan.baseline), after * (1 - after)
    joint = plan.agreement * math.sqrt(before_var * after_var)
    # a correlation of hits can't be so high that fewer examples change than Δ needs
    change = max(before_var + after_var - 2 * joint, abs(delta) * (1 - abs(delta)))
    size = plan.n / plan.images
    # images with more examples than others weigh more: sizes as 1 + Poisson, as data sets have them
    effect = 1 + (size - 1) * (1 + 1 / size) * plan.icc
    return math.sqrt(change * effect / plan.n)


def power_of(plan: Plan, delta: float) -> float:
    """Chance that the 1 − alpha interval of a run like this leaves out 0."""
    error = standard_error(plan, delta)
    needed = inference.t_quantile(plan.images - 1, 1 - plan.alpha)
    if error == 0:
        return 1.0
    return _below(abs(delta) / error - needed) + _below(-abs(delta) / error - needed)


def smallest_detectable(plan: Plan) -> float | None:
    """The smallest fall in accuracy that is detected with the plan's power; None if none can be."""
    low, high = 0.0, plan.baseline
    if power_of(plan, -high) < plan.power:
        return None
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(plan, -middle) >= plan.power else (middle, high)
    return high


def needed_examples(plan: Plan, delta: float) -> int | None:
    """Examples that detect a fall of `delta` with the plan's power, as many on an image as planned."""
    if delta > plan.baseline:
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
    return Plan(n=delta.n, images=delta.images, baseline=accuracy, scatter=error**2 * delta.n)


def _below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))
