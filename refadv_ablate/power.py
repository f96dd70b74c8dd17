"""How small a Δ a planned run can detect: looked at before the money is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from refadv_ablate import inference
from refadv_ablate.errors import UserError
from refadv_ablate.types import ORIGINAL, Comparison, Delta

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
    error = width / 2 / inference.t_quantile(delta.images - 1)
    accuracy = min(1 - 1e-9, max(1e-9, found.original.value))
    return Plan(n=delta.n, images=delta.images, baseline=accuracy, scatter=error**2 * delta.n)


def _below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


# ── the command ─────────────────────────────────────────────────────────────────────────────────


def run(cfg: Any) -> int:
    """Prints the smallest detectable Δ and the curves; reads its keys under cfg.command."""
    from omegaconf import OmegaConf

    options = OmegaConf.to_container(cfg.command, resolve=True)
    assert isinstance(options, dict)
    plan = plan_of({str(key): value for key, value in options.items()})
    deltas = [abs(_number(options, "deltas", value)) for value in options["deltas"]]
    print("\n".join(report(plan, deltas, str(options["metric"]))))
    return 0


def plan_of(options: dict[str, Any]) -> Plan:
    """The plan that the command's keys describe. Raises UserError."""
    alpha = _number(options, "alpha") / max(1, _whole(options, "family") or 1)
    power = _number(options, "power")
    n, images = _whole(options, "n"), _whole(options, "images")
    if options["pilot"] is not None:
        plan = from_pilot(_pilot(Path(str(options["pilot"])), str(options["metric"])), str(options["pilot"]))
        plan = plan.with_n(n) if n is not None else plan
        return replace(plan, images=images or plan.images, alpha=alpha, power=power)
    if n is None:
        raise UserError(
            "power needs n=…, the number of planned examples, or pilot=…, the folder of a finished cell."
        )
    guesses = {name: _number(options, name) for name in ("baseline", "agreement", "icc")}
    return Plan(n=n, images=images or n, alpha=alpha, power=power, **guesses)


def _pilot(path: Path, metric: str) -> Delta:
    comparison = _comparison(path, metric)
    if metric not in comparison.deltas:
        raise UserError(f"The pilot {path} has no metric {metric!r}, only {', '.join(comparison.deltas)}.")
    return comparison.deltas[metric]


def _comparison(path: Path, metric: str) -> Comparison:
    from refadv_ablate.records import load

    if path.is_dir():
        path = path / "summary.json"
    if not path.is_file():
        raise UserError(f"There is no pilot {path}: pilot=… takes the folder of a finished cell.")
    return _predicted(path, metric) if path.suffix == ".jsonl" else load(path)


def _predicted(path: Path, metric: str) -> Comparison:
    from refadv_ablate.records import read_records
    from refadv_ablate.scoring import Arm
    from refadv_ablate.stats import compare

    arms: dict[str, Arm] = {}
    for record in read_records(path):
        arms.setdefault(record.condition, Arm()).add(record)
    others = [name for name in arms if name != ORIGINAL]
    if ORIGINAL not in arms or len(others) != 1:
        raise UserError(
            f"The pilot {path} holds the conditions {', '.join(sorted(arms)) or '(none)'}: "
            "it takes the original one and exactly one other."
        )
    names = {"model": "", "data": "", "prompt": "", "operator": others[0]}
    before, after = arms[ORIGINAL], arms[others[0]]
    return compare(before, after, planned=len(before), n_boot=0, metrics=(metric,), **names)  # type: ignore[arg-type]  # the names are all text


def report(plan: Plan, deltas: Sequence[float], metric: str) -> list[str]:
    """Lines of the answer."""
    smallest = smallest_detectable(plan)
    lines = [
        f"{plan.n:,} examples on {plan.images:,} images, "
        f"{metric} {plan.baseline:.1%} in the original condition",
        _assumed(plan),
        "smallest fall in accuracy detected with "
        f"{plan.power:.0%} power (two-sided, alpha {plan.alpha:.3g}): "
        + ("none, the run is too small" if smallest is None else f"{smallest * 100:.1f} points"),
        "",
    ]
    ns = _grid(plan.n)
    usable = [delta for delta in deltas if delta < plan.baseline]
    lines += [_row("power at n =", [f"{n:,}" for n in ns])]
    for delta in usable:
        lines.append(_row(f"Δ −{delta * 100:g} points", [f"{p:.0%}" for p in curve(plan, delta, ns)]))
    lines.append("")
    for delta in deltas:
        needed = needed_examples(plan, delta)
        how = (
            "can't be reached"
            if needed is None
            else f"{needed:,} examples on {plan.with_n(needed).images:,} images"
        )
        lines.append(f"Δ −{delta * 100:g} points with {plan.power:.0%} power: {how}")
    return lines


def _assumed(plan: Plan) -> str:
    if plan.scatter is not None:
        return (
            f"standard error of Δ as the pilot had it: {standard_error(plan, 0) * 100:.2f} points at this n"
        )
    return (
        f"assumed: correlation {plan.agreement:g} of hits between conditions, "
        f"{plan.icc:g} of changes within an image"
    )


def _grid(n: int) -> list[int]:
    return sorted({max(10, round(n * factor)) for factor in (0.1, 0.25, 0.5, 1, 2, 4, 10)})


def _row(head: str, cells: Sequence[str]) -> str:
    return f"{head:<20}" + "".join(f"{cell:>10}" for cell in cells)


def _number(options: dict[Any, Any], name: str, value: Any = None) -> float:
    value = options[name] if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{name}={value!r}: a number is needed, such as {name}=0.5.")
    return float(value)


def _whole(options: dict[str, Any], name: str) -> int | None:
    value = options[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name}={value!r}: a whole number of at least 1 is needed.")
    return value
