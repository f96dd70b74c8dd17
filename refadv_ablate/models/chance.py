"""How often a random box hits: by integration, not by drawing.

The box has corners uniform in the image. Along each axis its edges lie u and v beyond the target's;
IoU ≥ t is an inequality that is linear in u and v of one axis once the other axis is fixed, with a
different slope inside and outside the target. So the inner integral is an area of clipped triangles,
in closed form, and the outer one is smooth and done on a grid.
"""

from __future__ import annotations

import numpy as np

from refadv_ablate.boxes import Box, Floats, Size
from refadv_ablate.parsing.scoring import thresholds

GRID = 64
"""Points per edge of the outer integral: relative error below one in a thousand."""


def random_box_chance(target: Box, size: Size, metric_name: str = "acc50") -> float:
    """Expected metric (accNN, macc, dig_avg) of a box with uniform corners in an image of this size."""
    limits = thresholds(metric_name)
    return sum(_hit_probability(target, size, t) for t in limits) / len(limits)


def _hit_probability(target: Box, size: Size, t: float) -> float:
    """P(IoU ≥ t)."""
    width, height = size
    x1, x2, weight = _edges(target.x1, target.x2, width, t)
    overlap = np.minimum(x2, target.x2) - np.maximum(x1, target.x1)
    # per unit of y: k rises with the overlap's height, t falls with the box's height
    k = (1 + t) * overlap / (x2 - x1)
    room = target.height * (k - t - t * target.width / (x2 - x1))
    area = _area(np.maximum(room, 0), np.maximum(k - t, 1e-12), t, target.y1, height - target.y2)
    # two unordered corners per axis: the density of ordered ones is 2 / side²
    return float(np.sum(area * weight) * 2 / width**2 * 2 / height**2)


def _edges(low: float, high: float, side: float, t: float) -> tuple[Floats, Floats, float]:
    """Grid of (left, right) edges with which IoU ≥ t is possible, and the area of a cell."""
    extent = high - low
    left = (max(0.0, high - extent / t), high - t * extent)
    right = (low + t * extent, min(side, low + extent / t))
    steps = (np.arange(GRID) + 0.5) / GRID
    x1 = left[0] + (left[1] - left[0]) * steps
    x2 = right[0] + (right[1] - right[0]) * steps
    weight = (left[1] - left[0]) * (right[1] - right[0]) / GRID**2
    grid1, grid2 = np.meshgrid(x1, x2, indexing="ij")
    usable = grid2 > grid1
    return np.where(usable, grid1, low), np.where(usable, grid2, low + side * 1e6), weight


def _area(room: Floats, inside: Floats, outside: float, before: float, after: float) -> Floats:
    """Area of {(u, v): cost(u) + cost(v) ≤ room}.

    An edge costs `inside` per pixel within the target and `outside` per pixel beyond it, where the
    image ends `before` and `after` the target.
    """
    free = np.full_like(room, np.inf)
    total = np.zeros_like(room)
    for slope_u, limit_u in ((inside, free), (outside, before)):
        for slope_v, limit_v in ((inside, free), (outside, after)):
            total += _clipped_triangle(room, slope_u, slope_v, limit_u, limit_v)
    return total


def _clipped_triangle(
    room: Floats, a: Floats | float, b: Floats | float, s: Floats | float, q: Floats | float
) -> Floats:
    """Area of {0 ≤ u ≤ s, 0 ≤ v ≤ q, a·u + b·v ≤ room}."""

    def square(value: Floats) -> Floats:
        return np.square(np.maximum(value, 0))

    cut = square(room) - square(room - a * s) - square(room - b * q) + square(room - a * s - b * q)
    area: Floats = cut / (2 * a * b)
    return area
