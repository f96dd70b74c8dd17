"""Whether the gold boxes speak for another coordinate frame than the declared one, and for which.

The same numbers are read in every frame and box form that families use, and at one scale fitted to all
answers together (a server that resizes further down than the declared rule). What the reading would hit is
compared with what the declared reading hits, on the same answers. Nothing is ever rescaled by it: it is a
reason to look, put in words. This check is ours; no family's evaluator has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from refadv_ablate.boxes import Floats, iou_pairs
from refadv_ablate.types import Frame

HIT = 0.5
"""IoU of a hit."""
GAIN = 0.15
"""Share of the answers by which another reading must hit more often."""
FORMS: dict[str, Callable[[Floats], Floats]] = {
    "x first": lambda q: q,
    "y first": lambda q: q[:, [1, 0, 3, 2]],
    "as x y width height": lambda q: np.hstack([q[:, :2], q[:, :2] + q[:, 2:]]),
    "as centre x, centre y, width, height": lambda q: np.hstack(
        [q[:, :2] - q[:, 2:] / 2, q[:, :2] + q[:, 2:] / 2]
    ),
}
"""Four numbers of each row as x1 y1 x2 y2."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Answers with numbers, one row each: raw (n, 4) as x1 y1 x2 y2 or y first as the model wrote them, gold
    (n, 4) in pixels of the original image, sizes (n, 2) of the original and of the declared frame, and the
    IoU of the declared reading."""

    raw: Floats
    gold: Floats
    original: Floats
    frame: Floats
    """Width and height of the declared frame, in the units in which the model is meant to answer."""
    declared: Floats


@dataclass(frozen=True, slots=True)
class Finding:
    """Another reading that hits more often: its description, and both numbers of hits out of n."""

    reading: str
    hits: int
    declared_hits: int
    n: int


def other_reading(samples: Samples, declared: str, least: int = 10) -> Finding | None:
    """The reading that the gold boxes speak for, if it is clearly another than the declared one.

    declared: the declared frame's name, for what is read in another form. least: fewer different answers,
    or referents, say nothing.
    """
    if min(len(np.unique(samples.raw, axis=0)), len(np.unique(samples.gold, axis=0))) < least:
        return None  # one box for all, or one referent: a scale can be fitted to anything
    n = len(samples.raw)
    own = int(np.sum(samples.declared >= HIT))
    best: Finding | None = None
    for name, boxes in _readings(samples, declared):
        ious = iou_pairs(boxes, samples.gold)
        hits = int(np.sum(ious >= HIT))
        lost = int(np.sum((ious < HIT) & (samples.declared >= HIT)))
        clearly = hits - own >= max(3, GAIN * n) and lost <= 0.1 * (hits - own)
        if clearly and (best is None or hits > best.hits):
            best = Finding(name, hits, own, n)
    return best


def _readings(samples: Samples, declared: str) -> Iterator[tuple[str, Floats]]:
    """(description, boxes in pixels of the original image), the common ones before fitted ones."""
    wide = np.tile(samples.original, 2)
    side = samples.original.max(axis=1, keepdims=True)
    frames: list[tuple[str, Floats]] = [
        (declared.removesuffix(", x first").removesuffix(", y first"), np.tile(samples.frame, 2)),
        ("0–1000 of the image", np.full_like(wide, 1000.0)),
        ("pixels of the original image", wide),
        ("0–1 of the image", np.ones_like(wide)),
        ("0–100 of the image", np.full_like(wide, 100.0)),
    ]
    for form, corners in FORMS.items():
        quads = corners(samples.raw)
        for name, units in frames:
            yield f"{name}, {form}", quads / units * wide
        pad = (side - samples.original) / 2
        for unit in (1000.0, 1.0):
            square = quads / unit * side
            yield f"0–{unit:g} of the image padded to a square, {form}", square - np.tile(pad, 2)
            yield f"0–{unit:g} of the image padded at right and bottom, {form}", square
        yield from _fitted(quads, samples, form)


def _fitted(quads: Floats, samples: Samples, form: str) -> Iterator[tuple[str, Floats]]:
    """Readings at one scale for all answers, fitted by medians of answer ÷ gold."""
    wide = np.tile(samples.original, 2)
    usable = samples.gold > 0.05 * wide  # a coordinate near 0 says nothing of the scale
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(usable, quads / samples.gold, np.nan)
    known = ratios[np.isfinite(ratios)]
    if len(known) < len(quads) or np.median(known) <= 0:
        return
    factor = float(np.median(known))
    yield f"pixels of the image at {factor:.3g} of its size, {form}", quads / factor
    each = np.array([_median(row, factor) for row in ratios])
    shrunk = (each > 0) & (each < 0.95)  # images that the limit left alone tell nothing of it
    if not shrunk.any():
        shrunk = each > 0
    area = samples.original.prod(axis=1)
    limit = float(np.median((area * each**2)[shrunk]))
    scale = np.minimum(1.0, np.sqrt(limit / area))[:, None]
    yield f"pixels of the image resized to at most {limit:,.0f} square pixels, {form}", quads / scale
    longer = samples.original.max(axis=1)
    longest = float(np.median((longer * each)[shrunk]))
    scale = np.minimum(1.0, longest / longer)[:, None]
    yield f"pixels of the image resized to a longer side of at most {longest:.0f}, {form}", quads / scale
    whole = float(np.median((ratios * wide)[np.isfinite(ratios)]))
    yield f"0–{whole:.4g} of the image, {form}", quads / whole * wide


def _median(row: Floats, otherwise: float) -> float:
    known = row[np.isfinite(row)]
    return float(np.median(known)) if len(known) else otherwise


def within_other_bounds(samples: Samples) -> tuple[str, int] | None:
    """A frame whose bounds no answer leaves, though gold boxes written in the declared frame often would.

    It needs no right answer: a model that misses everything still answers within its own frame. Returns the
    frame's name and how many gold boxes would leave its bounds, from 10 on.
    """
    wide = np.tile(samples.original, 2)
    expected = samples.gold / wide * np.tile(samples.frame, 2)
    far = (slice(None), slice(2, 4))
    for name, bound in (
        ("absolute pixels of the original image", wide[far]),
        ("0–1000 of the image", np.full_like(wide[far], 1000.0)),
    ):
        unlike = np.tile(samples.frame, 2)[far] > 1.1 * bound
        expected_out = int(np.sum(((expected[far] > 1.02 * bound) & unlike).any(axis=1)))
        out = int(np.sum(((samples.raw[far] > 1.02 * bound) & unlike).any(axis=1)))
        if expected_out >= 10 and out <= 0.02 * expected_out:
            return name, expected_out
    return None


def frame_size(
    frame: Frame, seen_size: tuple[float, float], original: Sequence[float]
) -> tuple[float, float]:
    """Width and height of a declared frame in its own units: by where it puts the unit square's numbers."""
    scale = getattr(frame, "scale", None)
    if scale is not None:
        return float(scale), float(scale)
    return seen_size if hasattr(frame, "size") else (float(original[0]), float(original[1]))
