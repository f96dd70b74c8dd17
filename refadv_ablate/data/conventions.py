"""How boxes are written in files, declared per source and checked against the images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from refadv_ablate.boxes import Box, Quad, Size
from refadv_ablate.errors import UserError

Order = Literal["xyxy", "xywh", "cxcywh"]
Unit = Literal["pixels", "fraction", "thousandth"]

SLACK = 2.0
"""Pixels by which a stored box may stick out of its image: rounding in COCO and OpenImages."""


FEW = 0.05
"""Share of boxes outside their images up to which these are rows with mistakes, and no other convention."""
MISTAKES = 0.02
"""Share of rows with mistakes that an advice may leave."""
MARGIN = 0.1
"""Share of rows by which a convention must fit more of them than the next to be advised alone."""
REACH = 0.85
"""Part of the width and of the height to which some box must reach where a convention is advised."""
ENOUGH = 10
"""Boxes on images of one orientation from which the reach is looked at."""


@dataclass(frozen=True, slots=True)
class Convention:
    """Order and unit of four stored numbers. fraction: 0…1 of width and height; thousandth: 0…1000.

    cxcywh: the centre, then width and height, as YOLO and DETR write boxes.
    """

    order: Order = "xyxy"
    unit: Unit = "pixels"

    def __str__(self) -> str:
        words = {"pixels": "absolute pixels", "fraction": "fractions 0–1", "thousandth": "0–1000"}
        order = "cxcywh (centre, width, height)" if self.order == "cxcywh" else self.order
        return f"{order} in {words[self.unit]}"

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
        elif self.order == "cxcywh":
            x, y, third, fourth = x - third / 2, y - fourth / 2, x + third / 2, y + fourth / 2
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


UNITS: tuple[Unit, ...] = ("pixels", "fraction", "thousandth")
"""In the order in which they are believed: numbers below 1000 always fit as thousandths."""
ALL: tuple[Convention, ...] = tuple(
    Convention(order, unit) for unit in UNITS for order in ("xyxy", "xywh", "cxcywh")
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
    extents = (quad[2] - quad[0], quad[3] - quad[1]) if order == "xyxy" else (quad[2], quad[3])
    return all(extent != 0 for extent in extents)


Evidence = Sequence[tuple[Quad, Size]]


def contradiction(declared: Convention, rows: Iterable[tuple[Quad, Size]]) -> str:
    """What the boxes say against the declared convention: a clause with what to do, or nothing.

    A few rows that don't fit are rows with mistakes. More of them speak against the convention, or against
    the images; an advice is given only where nearly all rows fit as advised.
    """
    evidence = [(quad, size) for quad, size in rows if tells(quad, declared.order)]
    bad = [(quad, size) for quad, size in evidence if not declared.fits(quad, size)]
    if not bad:
        return ""
    advised = _advised(declared, evidence)
    if not advised and len(bad) < max(2, FEW * len(evidence)):
        return ""
    quad, size = bad[0]
    example = f"such as {[round(v, 4) for v in quad]} in {size[0]} × {size[1]}"
    said = f"{len(bad)} of the first {len(evidence)} boxes don't fit their images as {declared} ({example})"
    if not advised:
        return f"{said}; {_other_size(declared, evidence)}"
    fitting = sum(advised[0].fits(quad, size) for quad, size in evidence)
    how_many = "all" if fitting == len(evidence) else str(fitting)
    said += f", and {how_many} fit as {' or as '.join(map(str, advised))}"
    own = "for a file of your own, data=jsonl"
    if len(advised) > 1:
        keys = f"data.forms.order=… data.forms.unit=… {own}"
        said += ", which the numbers alone don't tell apart"
        return f"{said}: look at some and declare what is right ({keys})"
    keys = f"data.forms.order={advised[0].order} data.forms.unit={advised[0].unit} {own}"
    if len(evidence) < ENOUGH:
        return f"{said}: look at some and, if it is so, declare it ({keys})"
    return f"{said}: declare it ({keys})"


def _advised(declared: Convention, evidence: Evidence) -> list[Convention]:
    """The conventions that nearly all rows fit, of the first unit that has any.

    Several stand side by side where too few rows tell them apart. Fractions of the image have no size to be
    wrong about; for other units some box must reach nearly to the edges.
    """
    n = len(evidence)
    misfits = sum(not declared.fits(quad, size) for quad, size in evidence)
    for unit in UNITS:
        counts = {
            one: sum(not one.fits(quad, size) for quad, size in evidence)
            for one in ALL
            if one.unit == unit and one != declared
        }
        least = min(counts.values())
        clear = misfits - least >= (max(2, FEW * n) if n >= ENOUGH or unit == "thousandth" else 1)
        if least > max(1, MISTAKES * n) or misfits < 2 * least + 1 or not clear:
            continue
        margin = max(2, MARGIN * n) if n >= ENOUGH else 0
        best = [one for one, count in counts.items() if count <= least + margin]
        if unit == "fraction" or all(_reaches(one, evidence) for one in best):
            return best
        if (
            (unit == "pixels" or n < ENOUGH)
            and len(best) > 1
            and any(_reaches(one, evidence) for one in best)
        ):
            return best
    return []


def _reaches(convention: Convention, evidence: Evidence) -> bool:
    """Whether boxes reach nearly to the far edges, on wide images and on high ones.

    Boxes of other images don't: those of 640 × 480 end at 640 and 480 of 1000, or of larger images.
    """
    groups: dict[bool, list[tuple[float, float]]] = {}
    for quad, size in evidence:
        if convention.fits(quad, size):
            corners = convention.corners(quad, size)
            groups.setdefault(size[0] >= size[1], []).append((corners[2] / size[0], corners[3] / size[1]))
    judged = [group for group in groups.values() if len(group) >= ENOUGH] or list(groups.values())
    return all(min(max(reach[axis] for reach in group) for axis in (0, 1)) >= REACH for group in judged)


def _other_size(declared: Convention, evidence: Evidence) -> str:
    """The cause that is left: boxes that were made on images of another size."""
    whole = [(declared.corners(quad, size), size) for quad, size in evidence]
    across = max(quad[2] / size[0] for quad, size in whole)
    down = max(quad[3] / size[1] for quad, size in whole)
    reach = f"they reach to {across:.2f} of the width and {down:.2f} of the height"
    sizes = {size for _, size in whole}
    if len(sizes) == 1 and declared.unit == "pixels":
        x, y = (max(quad[at] for quad, _ in whole) for at in (2, 3))
        reach += f", {x:.0f} and {y:.0f} pixels"
    return (
        f"{reach}, and no other convention fits nearly all of them: they may be boxes of another image size "
        "(then give the images on which they were made, or scale the boxes), or in an order that isn't known "
        "here, such as y before x"
    )
