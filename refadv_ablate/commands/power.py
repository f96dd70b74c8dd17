"""`refadv-ablate power`: how small a Δ a planned run can detect, from a guess or from a pilot run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError
from refadv_ablate.statistics.inference import effective_number
from refadv_ablate.statistics.power import (
    Plan,
    curve,
    from_pilot,
    needed_examples,
    smallest_detectable,
    standard_error,
)
from refadv_ablate.types import ORIGINAL, Comparison, Delta


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
        if images is not None and images != plan.images:
            plan = replace(plan, images=images, effective=None)
        return replace(plan, alpha=alpha, power=power, **_contrast(options))
    if n is None:
        raise UserError(
            "power needs n=…, the number of planned examples, or pilot=…, the folder of a finished cell."
        )
    guesses = {name: _number(options, name) for name in ("baseline", "agreement", "icc")}
    more = guesses | _contrast(options)
    if options["like"] is None:
        return Plan(n=n, images=images or n, alpha=alpha, power=power, **more)
    sizes = _sizes(str(options["like"]))
    known = Plan(int(sizes.sum()), len(sizes), effective=effective_number(sizes), **more)
    return replace(known.with_n(n), alpha=alpha, power=power)


def _contrast(options: dict[str, Any]) -> dict[str, Any]:
    kind = options["contrast"]
    if kind not in (None, "paired", "apart"):
        raise UserError(f"contrast={kind}: paired (the same examples) or apart (two sets of data).")
    return {"contrast": kind, "fall": _number(options, "fall"), "between": _number(options, "between")}


def _sizes(path: str) -> Any:
    """Examples on each image of existing predictions, the Ref-Adv authors' too."""
    import numpy as np

    from refadv_ablate.report.loading.sources import from_files

    arms = [arm for cell in from_files([path]) for arm in cell.arms.values()]
    columns = max(arms, key=len).columns()
    _, first = np.unique(columns.example, return_index=True)
    _, sizes = np.unique(columns.image[first], return_counts=True)
    return sizes.astype(float)


def _pilot(path: Path, metric: str) -> Delta:
    comparison = _comparison(path, metric)
    if metric not in comparison.deltas:
        raise UserError(f"The pilot {path} has no metric {metric!r}, only {', '.join(comparison.deltas)}.")
    return comparison.deltas[metric]


def _comparison(path: Path, metric: str) -> Comparison:
    from refadv_ablate.storage.records import load

    if path.is_dir():
        path = path / "summary.json"
    if not path.is_file():
        raise UserError(f"There is no pilot {path}: pilot=… takes the folder of a finished cell.")
    return _predicted(path, metric) if path.suffix == ".jsonl" else load(path)


def _predicted(path: Path, metric: str) -> Comparison:
    from refadv_ablate.parsing.scoring import Arm
    from refadv_ablate.statistics.comparison import compare
    from refadv_ablate.storage.records import read_records

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
        f"{plan.n:,} examples on {plan.images:,} images (that weigh as {plan.weight:.0f} of one size), "
        f"{metric} {plan.baseline:.1%} in the original condition",
        _assumed(plan),
        f"smallest {_asked(plan)} detected with "
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


def _asked(plan: Plan) -> str:
    if plan.contrast is None:
        return "fall in accuracy"
    how = "on the same examples" if plan.contrast == "paired" else "on two such sets of data"
    return f"difference of two falls ({how}, the smaller {plan.fall * 100:g} points)"


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
