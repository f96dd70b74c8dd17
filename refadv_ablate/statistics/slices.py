"""Which part of the examples a row belongs to: bins for numbers, labels as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.parsing.scoring import Arm, Columns, Mask

UNKNOWN = "unknown"
BINS: dict[str, tuple[float, ...]] = {
    # the benchmark's own: 2–3, 4–6, 7 and more; below them what other data sets hold
    "distractors": (0, 2, 4, 7),
    "length": (0, 6, 11, 16, 21),
    # square root of the area in pixels, with Ref-L4's limits: small below 128, medium up to and with 256
    "box_size": (0, 128, np.nextafter(256, np.inf)),
}
"""Lower limits of the bins of an attribute; the last is open."""

MAX_PARTS = 24
"""The rarest labels beyond this many are shown as one part, never dropped."""
_FEW_VALUES = 8


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of an arm: its label, and which rows of a piece of the arm belong to it."""

    label: str
    rows: Callable[[Columns], Mask]


def parts(arm: Arm, by: str) -> list[tuple[str, Mask]]:
    """(label, rows of the arm) of each part that has rows, in a fixed order, unknown last.

    Raises UserError for an attribute that no record has.
    """
    columns = arm.columns()
    return [(cut.label, cut.rows(columns)) for cut in cuts(arm, by)]


def cuts(arm: Arm, by: str) -> list[Cut]:
    """The same parts, each as a choice of rows: what it takes doesn't grow with the arm."""
    seen = _seen(arm, by)
    if seen is None:
        if by in ("distractors", "negation", "source", "split", "category") or not len(arm):
            return [Cut(UNKNOWN, lambda columns: np.ones(len(columns.example), bool))] if len(arm) else []
        raise UserError(f"No example has the attribute {by!r}: {nearest(by, arm.attributes())}.")
    labels, numbers = seen
    tests = _by_label(labels) if labels is not None else _by_number(numbers, BINS.get(by))
    return [Cut(label, partial(_rows, by, test)) for label, test in tests]


Test = Callable[[NDArray[Any]], Mask]
"""Values of an attribute → which belong to a part."""


def _rows(by: str, test: Test, columns: Columns) -> Mask:
    values = columns.attributes(by)
    return test(np.zeros(0) if values is None else values)


def _seen(arm: Arm, by: str) -> tuple[Counter[str | None] | None, Floats] | None:
    """How often the arm has each label, or all its numbers; None where it has neither."""
    labels: Counter[str | None] | None = None
    numbers: list[Floats] = []
    for columns in arm.chunks():
        values = columns.attributes(by)
        if values is None:
            return None
        if values.dtype == object:
            labels = labels if labels is not None else Counter()
            labels.update(values)
        else:
            numbers.append(values.astype(np.float32))
    return (labels, np.concatenate([np.zeros(0, np.float32), *numbers])) if labels or numbers else None


def _by_label(counts: Counter[str | None]) -> list[tuple[str, Test]]:
    # compared as Python's strings: numpy's own drop a NUL at the end
    known = {str(name): n for name, n in counts.items() if name not in (None, UNKNOWN)}
    names = sorted(known)
    shown = set(names)
    if len(names) > MAX_PARTS:
        shown = set(sorted(names, key=lambda name: (-known[name], name))[: MAX_PARTS - 1])
    found = [(name, partial(_among, frozenset({name}))) for name in names if name in shown]
    rest = frozenset(names) - shown
    if rest:
        found.append((f"{len(rest)} rarer ones", partial(_among, rest)))
    if len(known) < len(counts):
        found.append((UNKNOWN, partial(_among, frozenset({None, UNKNOWN}))))
    return list(found)


def _among(names: frozenset[str | None], values: NDArray[Any]) -> Mask:
    return np.array([value in names for value in values], bool)


def _by_number(values: Floats, limits: Sequence[float] | None) -> list[tuple[str, Test]]:
    known = values[~np.isnan(values)].astype(np.float64)
    distinct = np.unique(known)
    if limits is not None:
        bins = [(_bin_label(low, high), low, high) for low, high in pairwise([*limits, np.inf])]
        found = [
            (label, partial(_between, low, high))
            for label, low, high in bins
            if np.any((distinct >= low) & (distinct < high))
        ]
    elif len(distinct) <= _FEW_VALUES:
        found = [(f"{value:g}", partial(_between, value, np.nextafter(value, np.inf))) for value in distinct]
    else:
        found = _quartiles(known)
    return [*found, (UNKNOWN, np.isnan)] if len(known) < len(values) else list(found)


def _between(low: float, high: float, values: Floats) -> Mask:
    return (values >= low) & (values < high)


def number_label(value: float, by: str) -> str:
    """The bin of one number of an attribute in BINS, such as 5 distractors → 4–6."""
    edges = [*BINS[by], np.inf]
    return next(_bin_label(low, high) for low, high in pairwise(edges) if low <= value < high)


def _bin_label(low: float, high: float) -> str:
    if low % 1:  # just above a limit, which belongs to the bin below
        return f">{low:g}"
    if np.isfinite(high) and high % 1:
        return f"{low:g} to {high:g}"
    if np.isinf(high):
        return f"{low:g}+"
    return f"{low:g}–{high - 1:g}" if high - low < 100 else f"{low:g} to <{high:g}"


def _quartiles(known: Floats) -> list[tuple[str, partial[Mask]]]:
    edges = np.unique(np.quantile(known, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf"))
    found = []
    for index, (low, high) in enumerate(pairwise(edges)):
        last = index == len(edges) - 2
        end = np.nextafter(high, np.inf) if last else high
        found.append((f"{low:g} to {'' if last else '<'}{high:g}", partial(_between, low, end)))
    return found
