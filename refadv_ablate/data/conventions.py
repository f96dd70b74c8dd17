"""How boxes are written in files, declared per source and checked against the images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from refadv_ablate.boxes import Box, Quad, Size
from refadv_ablate.errors import UserError

Order = Literal["xyxy", "xywh"]
Unit = Literal["pixels", "fraction", "thousandth"]

SLACK = 2.0
"""Pixels by which a stored box may stick out of its image: rounding in COCO and OpenImages."""


SHARE = 0.3
"""Share of boxes outside their images from which 0–1000 is believed; most boxes on COCO's sizes would be."""


@dataclass(frozen=True, slots=True)
class Convention:
    """Order and unit of four stored numbers. fraction: 0…1 of width and height; thousandth: 0…1000."""

    order: Order = "xyxy"
    unit: Unit = "pixels"

    def __str__(self) -> str:
        words = {"pixels": "absolute pixels", "fraction": "fractions 0–1", "thousandth": "0–1000"}
        return f"{self.order} in {words[self.unit]}"

    def corners(self, quad: Quad, size: Size | None) -> Quad:
        """x1 y1 x2 y2 in pixels, unchecked. Only pixels can be read without the image's size."""
        scale_x = scale_y = 1.0
        if self.unit != "pixels":
            if size is None:
                raise UserError(f"boxes as {self} need the image's width and height, which the file lacks")
            whole = 1.0 if self.unit == "fraction" else 1000.0
            scale_x, scale_y = size[0] / whole, size[1] / whole
        x, y, third, fourth = quad
        if self.order == "xywh":
            third, fourth = x + third, y + fourth
        return x * scale_x, y * scale_y, third * scale_x, fourth * scale_y

    def fits(self, quad: Quad, size: Size) -> bool:
        """Whether the numbers make a box inside the image that is plausible in this unit."""
        try:
            box = Box(*self.corners(quad, size))
        except ValueError:
            return False
        # a box within the first pixel is what fractions look like when they are read as pixels
        speck = self.unit == "pixels" and max(quad) <= 1.0 and max(size) > 2
        return box.inside(size, SLACK) and not speck


ALL: tuple[Convention, ...] = tuple(
    Convention(order, unit) for unit in ("pixels", "fraction", "thousandth") for order in ("xyxy", "xywh")
)


def numbers(value: object) -> Quad | None:
    """Four numbers from a list, tuple or comma-separated text; None for anything else. NaN passes."""
    if isinstance(value, str):
        value = value.strip("[]() ").split(",")
    if not isinstance(value, Sequence) or len(value) != 4 or any(isinstance(v, bool) for v in value):
        return None
    try:
        a, b, c, d = (float(v) for v in value)
    except (TypeError, ValueError):
        return None
    return a, b, c, d


def tells(quad: Quad, order: Order) -> bool:
    """Whether a row is evidence for or against an order: one with no extent at all is just broken."""
    if not all(math.isfinite(v) for v in quad):
        return False
    extents = (quad[2], quad[3]) if order == "xywh" else (quad[2] - quad[0], quad[3] - quad[1])
    return all(extent != 0 for extent in extents)


def contradiction(declared: Convention, rows: Iterable[tuple[Quad, Size]]) -> str:
    """What the boxes say against the declared convention: a clause, or nothing.

    They speak against it when some don't fit their images as declared and all fit in another way.
    """
    evidence = [(quad, size) for quad, size in rows if tells(quad, declared.order)]
    bad = [(quad, size) for quad, size in evidence if not declared.fits(quad, size)]
    if not bad:
        return ""
    for other in ALL:
        # numbers below 1000 always fit as thousandths: that many outside can't be a few bad rows
        if other.unit == "thousandth" and len(bad) < max(2, SHARE * len(evidence)):
            continue
        if other != declared and all(other.fits(quad, size) for quad, size in evidence):
            quad, size = bad[0]
            return (
                f"{len(bad)} of the first {len(evidence)} boxes don't fit their images as {declared}, and "
                f"all fit as {other} (such as {[round(v, 4) for v in quad]} in {size[0]} × {size[1]})"
            )
    return ""
