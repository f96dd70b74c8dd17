"""Scenes of coloured geometric objects: what lies where, before anything is drawn or said."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from refadv_ablate.boxes import Box, Size

SHAPES = ("circle", "square", "triangle", "star", "cross")
COLOURS = ("red", "green", "blue", "yellow", "purple", "orange")
SIZES = ("small", "large")
FILLS = ("solid", "hollow")
ASPECTS = ((4, 3), (1, 1), (3, 4), (5, 4), (4, 5))
BACKGROUNDS = ((255, 255, 255), (250, 245, 232), (232, 236, 240), (224, 238, 248), (240, 232, 242))

GRID = 4
"""Objects lie in the cells of a GRID × GRID raster, shifted within their cell, so none overlap."""
DIAMETERS = {"small": (0.122, 0.140), "large": (0.195, 0.215)}
"""Extent of an object as a fraction of the image's shorter side."""
GAP = 0.012
"""Least distance of an object from the border of its cell, as a fraction of the shorter side."""
BINS = ((2, 3), (4, 6), (7, 9))
"""How many other objects of the focus category a scene has; each bin is as likely as the others."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Item:
    """One object; centre and radius in pixels of the image."""

    shape: str
    colour: str
    size: str
    fill: str
    x: float
    y: float
    radius: float

    def outline(self, scale: float = 1.0) -> tuple[Point, ...]:
        """Corners of the polygon, shrunk towards the centre by `scale`; empty for a circle."""
        radius = self.radius * scale
        return tuple((self.x + radius * dx, self.y + radius * dy) for dx, dy in _CORNERS[self.shape])

    @property
    def box(self) -> Box:
        """The tight box of what is drawn."""
        corners = self.outline()
        if not corners:
            return Box(self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius)
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return Box(min(xs), min(ys), max(xs), max(ys))


@dataclass(frozen=True, slots=True)
class Scene:
    """An image's description: size in pixels, background colour, objects in drawing order."""

    size: Size
    background: tuple[int, int, int]
    items: tuple[Item, ...]
    focus: str
    """The category that expressions on this image refer to."""


def _star() -> tuple[Point, ...]:
    """Five points; stretched so that it fills its square as the other shapes do."""
    ring = []
    for k in range(10):
        reach, angle = (1.0 if k % 2 == 0 else 0.45), k * math.pi / 5
        ring.append((reach * math.sin(angle), -reach * math.cos(angle)))
    low, high = min(y for _, y in ring), max(y for _, y in ring)
    wide = max(x for x, _ in ring)
    return tuple((x / wide, 2 * (y - low) / (high - low) - 1) for x, y in ring)


_ARM = 0.36
_CORNERS: dict[str, tuple[Point, ...]] = {
    "circle": (),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0.0, -0.95), (1.0, 0.85), (-1.0, 0.85)),
    "star": _star(),
    "cross": (
        (-_ARM, -1.0), (_ARM, -1.0), (_ARM, -_ARM), (1.0, -_ARM), (1.0, _ARM), (_ARM, _ARM),
        (_ARM, 1.0), (-_ARM, 1.0), (-_ARM, _ARM), (-1.0, _ARM), (-1.0, -_ARM), (-_ARM, -_ARM),
    ),
}  # fmt: skip


def draw_scene(rng: random.Random, longer_side: int) -> Scene:
    """A random scene: one category several times over, in few colours, among a few landmarks."""
    wide, high = rng.choice(ASPECTS)
    unit = longer_side / max(wide, high)
    size = (round(wide * unit), round(high * unit))
    focus = rng.choice(SHAPES)
    count = 1 + rng.randint(*rng.choice(BINS))
    # few colours, shared with the landmarks: look-alikes on both sides of a relation
    palette = rng.sample(COLOURS, rng.choice((2, 3, 3, 4)))
    hollow = rng.choice((0.0, 0.25, 0.45))
    others = [shape for shape in SHAPES if shape != focus]
    landmarks = rng.sample(others, rng.choice((1, 2, 2)))
    shapes = [focus] * count + [rng.choice(landmarks) for _ in range(rng.randint(2, 4))]
    cells = rng.sample([(column, row) for row in range(GRID) for column in range(GRID)], len(shapes))
    items = []
    for shape, cell in zip(shapes, cells, strict=True):
        colour = rng.choice(palette if shape == focus or rng.random() < 0.75 else COLOURS)
        items.append(_place(rng, shape, colour, "hollow" if rng.random() < hollow else "solid", cell, size))
    rng.shuffle(items)
    return Scene(size, rng.choice(BACKGROUNDS), tuple(items), focus)


def _place(rng: random.Random, shape: str, colour: str, fill: str, cell: tuple[int, int], size: Size) -> Item:
    label = rng.choice(SIZES)
    short = min(size)
    radius = round(rng.uniform(*DIAMETERS[label]) * short / 2, 1)
    room = radius + GAP * short
    x, y = (
        round(rng.uniform(side * at / GRID + room, side * (at + 1) / GRID - room), 1)
        for side, at in zip(size, cell, strict=True)
    )
    return Item(shape, colour, label, fill, x, y, radius)
