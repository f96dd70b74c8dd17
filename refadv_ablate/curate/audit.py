"""audit: is the new set harder to shortcut than others? The main job's ablations on each, compared.

A set that needs its language loses accuracy when the language is destroyed. For each operator the drop
on the new set is set against the drop on each other set: both are Δ = perturbed − original at Acc@0.5
with a standard error clustered by image, and since the sets share no images the difference of two drops
has the variance of both together (Welch's degrees of freedom).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from refadv_ablate.curate.settings import Audit
from refadv_ablate.errors import UserError
from refadv_ablate.storage.jsonl import atomic
from refadv_ablate.types import Comparison, Estimate

METRIC = "acc50"


@dataclass(frozen=True, slots=True)
class Contrast:
    """The drop on the new set minus the drop on another, for one operator; negative: new is harder.

    low, high: 95% interval. None where a drop has no interval; `note` says why.
    """

    operator: str
    other: str
    new_drop: float
    other_drop: float
    difference: float
    low: float | None
    high: float | None
    note: str = ""

    @property
    def verdict(self) -> str:
        """In words, by the interval alone."""
        if self.low is None or self.high is None:
            return f"can't be said ({self.note})"
        if self.high < 0:
            return "harder to shortcut"
        return "easier to shortcut" if self.low > 0 else "no difference shown"


def audit(settings: Audit, folder: Path, out: Path) -> list[str]:
    """Runs the main job on each set (finished cells are reused) and says what the drops say."""
    if not (folder / "samples.jsonl").is_file():
        raise UserError(f"{folder} holds no set (samples.jsonl): run the stage export, or give audit.data=")
    new = _run(["data=ref_adv_s", f"data.path={folder}", "data.name=new_set"], settings, out)
    lines = [f"new set ({new[0].planned} expressions, {new[0].images} images), model {new[0].model}"]
    lines += [f"  {c.operator}: {_percent(c.deltas[METRIC].delta)}" for c in new]
    if not settings.against:
        lines.append("no set to compare with: give audit.against=[refcoco,refcocog] or folders")
    found: list[Contrast] = []
    for other in settings.against:
        cells = _run(_data_words(other), settings, out)
        lines.append(f"{other} ({cells[0].planned} expressions, {cells[0].images} images)")
        lines += [f"  {c.operator}: {_percent(c.deltas[METRIC].delta)}" for c in cells]
        found += contrasts(new, cells, other)
    lines += [sentence(c) for c in found]
    with atomic(out / "audit.json") as file:
        told = [{f: getattr(c, f) for f in Contrast.__slots__} | {"verdict": c.verdict} for c in found]
        file.write(json.dumps(told, indent=1).encode())
    return lines


def contrasts(new: Sequence[Comparison], other: Sequence[Comparison], name: str) -> list[Contrast]:
    """One for each operator that both sets have."""
    by_operator = {c.operator: c for c in other}
    return [
        contrast(c.operator, name, c.deltas[METRIC].delta, by_operator[c.operator].deltas[METRIC].delta)
        for c in new
        if c.operator in by_operator
    ]


def contrast(operator: str, name: str, new: Estimate, other: Estimate) -> Contrast:
    """The difference of two independent drops."""
    if new.value is None or other.value is None:
        return Contrast(operator, name, 0.0, 0.0, 0.0, None, None, new.note or other.note or "no drop")
    difference = new.value - other.value
    told = (operator, name, new.value, other.value, difference)
    errors = [_error(e) for e in (new, other)]
    if None in errors:
        return Contrast(*told, None, None, "a drop without an interval")
    a, b = (e or 0.0 for e in errors)
    if a + b == 0:
        return Contrast(*told, None, None, "both drops have no spread")
    from scipy.stats import t

    df = (a**2 + b**2) ** 2 / (a**4 / (new.images - 1) + b**4 / (other.images - 1))
    half = float(t.ppf(0.975, df)) * float((a**2 + b**2) ** 0.5)
    return Contrast(*told, difference - half, difference + half)


def sentence(c: Contrast) -> str:
    """The contrast as one line."""
    interval = "" if c.low is None or c.high is None else f" [{100 * c.low:+.1f}, {100 * c.high:+.1f}]"
    return (
        f"{c.operator}, new set against {c.other}: {100 * c.new_drop:+.1f} against "
        f"{100 * c.other_drop:+.1f}, difference {100 * c.difference:+.1f}{interval} points: {c.verdict}"
    )


def _error(e: Estimate) -> float | None:
    """The standard error behind a t interval over images."""
    if e.low is None or e.high is None or e.images < 2:
        return None
    from scipy.stats import t

    return float((e.high - e.low) / 2 / t.ppf(0.975, e.images - 1))


def _percent(e: Estimate) -> str:
    if e.value is None:
        return f"Δ n/a ({e.note})"
    interval = "" if e.low is None or e.high is None else f" [{100 * e.low:+.1f}, {100 * e.high:+.1f}]"
    return f"Δ {100 * e.value:+.1f}{interval} points, n = {e.n}"


def _data_words(name: str) -> list[str]:
    folder = Path(name)
    if folder.is_dir():
        return ["data=ref_adv_s", f"data.path={folder.absolute()}", f"data.name={folder.name}"]
    return [f"data={name}"]


def _run(words: Sequence[str], settings: Audit, out: Path) -> list[Comparison]:
    """The main job on one set; its comparisons."""
    from refadv_ablate import assets
    from refadv_ablate.cli import INTERRUPTED, main
    from refadv_ablate.running.job import Job
    from refadv_ablate.storage.records import load

    every = [f"perturb=[{','.join(settings.perturb)}]", f"out={out}", *words, *settings.run]
    status = main(every)
    if status == INTERRUPTED:  # the main job has said so and ended in good order
        raise KeyboardInterrupt
    if status == 2:
        raise UserError(f"the main job did not run with {' '.join(every)}")
    cells = Job.of(assets.compose(every)).cells
    found = [load(cell.folder / "summary.json") for cell in cells if (cell.folder / "summary.json").exists()]
    if not found:
        raise UserError(f"the main job left no results with {' '.join(every)}; see its messages above")
    return found
