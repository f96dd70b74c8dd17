"""Which part of the examples a row belongs to: bins for numbers, labels as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.parsing.scoring import Arm, Mask

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


def parts(arm: Arm, by: str) -> list[tuple[str, Mask]]:
    """(label, rows of the arm) of each part that has rows, in a fixed order, unknown last.

    Raises UserError for an attribute that no record has.
    """
    values = arm.attribute(by)
    if values is None:
        if by in ("distractors", "negation", "source", "split", "category") or not len(arm):
            return [(UNKNOWN, np.ones(len(arm), bool))] if len(arm) else []
        raise UserError(f"No example has the attribute {by!r}: {nearest(by, arm.attributes())}.")
    if values.dtype == object:
        return _by_label(values.astype(object))
    return _by_number(values.astype(np.float64), BINS.get(by))


def _by_label(values: NDArray[np.object_]) -> list[tuple[str, Mask]]:
    known = np.array([value not in (None, UNKNOWN) for value in values], bool)
    # compared as Python's strings: numpy's own drop a NUL at the end
    counts = Counter(values[known])
    names = sorted(counts)
    shown = set(names)
    if len(names) > MAX_PARTS:
        shown = set(sorted(names, key=lambda name: (-counts[name], name))[: MAX_PARTS - 1])
    place = {name: at for at, name in enumerate(names)}
    codes = np.array([place.get(value, -1) for value in values])
    found = [(str(name), codes == place[name]) for name in names if name in shown]
    rest = len(names) - len(shown)
    if rest:
        others = known & np.array([value not in shown for value in values], bool)
        found.append((f"{rest} rarer ones", others))
    return _with_unknown(found, ~known)


def _by_number(values: Floats, limits: Sequence[float] | None) -> list[tuple[str, Mask]]:
    known = ~np.isnan(values)
    distinct = np.unique(values[known])
    if limits is not None:
        edges = [*limits, np.inf]
        found = [(_bin_label(low, high), (values >= low) & (values < high)) for low, high in pairwise(edges)]
    elif len(distinct) <= _FEW_VALUES:
        found = [(f"{value:g}", values == value) for value in distinct]
    else:
        found = _quartiles(values, values[known])
    return _with_unknown([(label, rows) for label, rows in found if rows.any()], ~known)


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


def _quartiles(values: Floats, known: Floats) -> list[tuple[str, Mask]]:
    edges = np.unique(np.quantile(known, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf"))
    found = []
    for index, (low, high) in enumerate(pairwise(edges)):
        last = index == len(edges) - 2
        rows = (values >= low) & ((values <= high) if last else (values < high))
        found.append((f"{low:g} to {'' if last else '<'}{high:g}", rows))
    return found


def _with_unknown(found: list[tuple[str, Mask]], unknown: Mask) -> list[tuple[str, Mask]]:
    return [*found, (UNKNOWN, unknown)] if unknown.any() else found
