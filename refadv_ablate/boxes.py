"""Boxes in pixels of the original image, and their intersection over union.

Coordinate frame, everywhere in this project unless a name says otherwise: the stored pixel grid of
the original image, origin at the top left corner, x to the right, y down, continuous coordinates.
A box covers [x1, x2) × [y1, y2); its width is x2 − x1, with no "+1".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Size = tuple[int, int]
"""Width and height in pixels, in this order."""

Quad = tuple[float, float, float, float]
"""Four numbers as a model wrote them: no frame, no order of corners implied."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-aligned box with positive area: x1 < x2, y1 < y2, pixels of the original image.

    Raises ValueError for a value that is not finite and for a box without area.
    """

    x1: float
    y1: float
    x2: float
    y2: float

    def __post_init__(self) -> None:
        # The sum of four finite corners may overflow only far beyond any image.
        if not math.isfinite(self.x1 + self.y1 + self.x2 + self.y2):
            raise ValueError(f"box {self.as_list()} has a value that is not finite")
        if self.x2 <= self.x1 or self.y2 <= self.y1:
            raise ValueError(f"box {self.as_list()} has no area (needs x1 < x2 and y1 < y2)")

    @classmethod
    def from_xywh(cls, x: float, y: float, width: float, height: float) -> Box:
        """The box of a COCO-style (x, y, width, height)."""
        return cls(x, y, x + width, y + height)

    @property
    def width(self) -> float:
        """Extent along x, pixels."""
        return self.x2 - self.x1

    @property
    def height(self) -> float:
        """Extent along y, pixels."""
        return self.y2 - self.y1

    @property
    def area(self) -> float:
        """Square pixels."""
        return self.width * self.height

    @property
    def center(self) -> tuple[float, float]:
        """(x, y) of the middle."""
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2

    def as_list(self) -> list[float]:
        """[x1, y1, x2, y2]."""
        return [self.x1, self.y1, self.x2, self.y2]

    def inside(self, size: Size, tolerance: float = 0.0) -> bool:
        """Whether the box lies within an image of this (width, height), give or take some pixels."""
        width, height = size
        return (
            self.x1 >= -tolerance
            and self.y1 >= -tolerance
            and self.x2 <= width + tolerance
            and self.y2 <= height + tolerance
        )


@dataclass(frozen=True, slots=True)
class BoxMap:
    """Where a point of one picture lies in another: x → across · x + dx, y → down · y + dy, pixels.

    A negative factor mirrors. Every change of frame that the operators make is one of these, and an IoU
    is the same on both sides of it.
    """

    across: float = 1.0
    down: float = 1.0
    dx: float = 0.0
    dy: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.across + self.down + self.dx + self.dy) or not self.across * self.down:
            raise ValueError(f"a box map needs finite numbers and factors other than 0, not {self.as_list()}")

    @classmethod
    def mirror(cls, width: float) -> BoxMap:
        """Left and right change places in a picture of this width: x → width − x."""
        return cls(across=-1.0, dx=width)

    @classmethod
    def between(cls, old: Size, new: Size) -> BoxMap:
        """A whole picture onto a whole picture of another (width, height), each side by its own factor."""
        return cls(across=new[0] / old[0], down=new[1] / old[1])

    def __call__(self, box: Box) -> Box:
        """The box in the other picture."""
        xs = sorted((self.across * box.x1 + self.dx, self.across * box.x2 + self.dx))
        ys = sorted((self.down * box.y1 + self.dy, self.down * box.y2 + self.dy))
        return Box(xs[0], ys[0], xs[1], ys[1])

    def then(self, after: BoxMap) -> BoxMap:
        """This map, and `after` on what it gives."""
        return BoxMap(
            after.across * self.across,
            after.down * self.down,
            after.across * self.dx + after.dx,
            after.down * self.dy + after.dy,
        )

    def inverse(self) -> BoxMap:
        """The way back."""
        return BoxMap(1 / self.across, 1 / self.down, -self.dx / self.across, -self.dy / self.down)

    def as_list(self) -> list[float]:
        """[across, down, dx, dy]."""
        return [self.across, self.down, self.dx, self.dy]


SAME_FRAME = BoxMap()
"""Nothing moves."""


def iou(a: Box, b: Box) -> float:
    """Intersection over union in float64, 0 ≤ iou ≤ 1."""
    width = min(a.x2, b.x2) - max(a.x1, b.x1)
    height = min(a.y2, b.y2) - max(a.y1, b.y1)
    if width <= 0 or height <= 0:
        return 0.0
    overlap = width * height
    return min(1.0, overlap / (a.area + b.area - overlap))


def iou_pairs(a: Floats, b: Floats) -> Floats:
    """Row-wise IoU of two (n, 4) arrays of x1 y1 x2 y2; a row without area, or NaN, scores 0."""
    a, b = np.asarray(a, float).reshape(-1, 4), np.asarray(b, float).reshape(-1, 4)
    side = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2])
    overlap = np.prod(np.clip(np.nan_to_num(side), 0, None), axis=1)
    area_a = np.prod(np.clip(a[:, 2:] - a[:, :2], 0, None), axis=1)
    area_b = np.prod(np.clip(b[:, 2:] - b[:, :2], 0, None), axis=1)
    union = area_a + area_b - overlap
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(overlap > 0, np.minimum(1.0, overlap / union), 0.0)


def iou_matrix(a: Sequence[Box], b: Sequence[Box]) -> Floats:
    """IoU of each box of `a` with each of `b`: shape (len(a), len(b))."""
    left = np.array([box.as_list() for box in a], float).reshape(-1, 4)
    right = np.array([box.as_list() for box in b], float).reshape(-1, 4)
    grid = iou_pairs(np.repeat(left, len(right), axis=0), np.tile(right, (len(left), 1)))
    return grid.reshape(len(left), len(right))
