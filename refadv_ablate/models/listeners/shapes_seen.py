"""Seeing: the coloured shapes in a picture, found from its pixels alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Box
from refadv_ablate.data.shapes.drawing import RGB
from refadv_ablate.data.shapes.scene import SHAPES, Item

if TYPE_CHECKING:
    from PIL import Image

Mask = NDArray[np.bool_]

WORKING_SIDE = 640
"""Larger pictures are reduced to this many pixels on their longer side before they are looked at."""
CONTRAST = 70.0
"""Distance in RGB from the background at which a pixel belongs to an object."""
TOLERANCE = 75.0
"""Distance in RGB up to which a blob has one of the known colours."""
TEMPLATE = 32
RESEMBLANCE = 0.78
"""IoU with the best shape template below which a blob is no shape that has a name."""
LEAST, MOST = 0.04, 0.5
"""Extent of an object as a fraction of the picture's shorter side."""
LARGE = 0.158
"""Extent from which an object is called large."""
HOLLOW = 0.08
"""Share of an object's filled area that a hole must have."""
MOST_BLOBS = 400
"""A picture with more blobs than this is no drawing; its largest ones are looked at."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """An object as seen; the box in pixels of the picture, the centre as fractions of its sides."""

    box: Box
    center: tuple[float, float]
    shape: str
    colour: str
    size: str
    fill: str


def look(picture: Image.Image) -> list[Sighting]:
    """The objects of a picture in reading order: by row of their centre, then from the left."""
    from scipy import ndimage

    scale = min(1.0, WORKING_SIDE / max(picture.size))
    if scale < 1.0:
        picture = picture.resize(
            (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        )
    pixels = np.asarray(picture.convert("RGB"), np.float32)
    distance = np.linalg.norm(pixels - _background(pixels), axis=2)
    labels, count = ndimage.label(distance > CONTRAST, structure=np.ones((3, 3)))
    places = ndimage.find_objects(labels)
    if count > MOST_BLOBS:
        sizes = ndimage.sum_labels(np.ones_like(labels), labels, np.arange(1, count + 1))
        keep = {int(k) for k in np.argsort(-sizes, kind="stable")[:MOST_BLOBS]}
        places = [place if k in keep else None for k, place in enumerate(places)]
    seen = []
    for label, place in enumerate(places, 1):
        if place is not None:
            sighting = _describe(labels[place] == label, pixels[place], place, pixels.shape[:2], scale)
            if sighting is not None:
                seen.append(sighting)
    return sorted(seen, key=lambda s: (round(s.center[1], 1), s.center[0]))


def _background(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """The commonest colour along the border."""
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    colours, counts = np.unique((border // 8).astype(np.int64), axis=0, return_counts=True)
    chosen = colours[counts.argmax()]
    same = border[((border // 8) == chosen).all(axis=1)]
    return np.asarray(np.median(same, axis=0), np.float32)


def _describe(
    mask: Mask, pixels: NDArray[np.float32], place: tuple[slice, slice], frame: tuple[int, ...], scale: float
) -> Sighting | None:
    from scipy import ndimage

    rows, columns = place
    height, width = mask.shape
    extent = max(height, width) / min(frame)
    if not LEAST <= extent <= MOST:
        return None
    # the middle of the ink, away from the softened edge
    core = ndimage.binary_erosion(mask, border_value=0)
    colour = _colour(np.median(pixels[core if core.any() else mask], axis=0))
    filled = ndimage.binary_fill_holes(mask)
    shape = _shape(filled)
    if colour is None or shape is None:
        return None
    hole = 1.0 - mask.sum() / filled.sum()
    return Sighting(
        box=Box(columns.start / scale, rows.start / scale, columns.stop / scale, rows.stop / scale),
        center=((columns.start + columns.stop) / 2 / frame[1], (rows.start + rows.stop) / 2 / frame[0]),
        shape=shape,
        colour=colour,
        size="large" if extent >= LARGE else "small",
        fill="hollow" if hole >= HOLLOW else "solid",
    )


def _colour(rgb: NDArray[np.float32]) -> str | None:
    far = {name: float(np.linalg.norm(rgb - np.array(value))) for name, value in RGB.items()}
    best = min(far, key=lambda name: far[name])
    return best if far[best] <= TOLERANCE else None


def _shape(filled: Mask) -> str | None:
    """The shape whose template overlaps the blob best, once both fill the same square."""
    from PIL import Image

    stretched = Image.fromarray(filled.astype(np.uint8) * 255).resize(
        (TEMPLATE, TEMPLATE), Image.Resampling.BOX
    )
    blob = np.asarray(stretched) > 127
    overlap = {
        shape: float((blob & template).sum() / (blob | template).sum())
        for shape, template in _templates().items()
    }
    best = max(overlap, key=lambda shape: overlap[shape])
    return best if overlap[best] >= RESEMBLANCE else None


@cache
def _templates() -> dict[str, Mask]:
    """Each shape filling a TEMPLATE × TEMPLATE square."""
    from PIL import Image, ImageDraw

    side = TEMPLATE * 8
    found = {}
    for shape in SHAPES:
        item = Item(shape, "red", "large", "solid", 0.0, 0.0, 1.0)
        box = item.box
        canvas = Image.new("L", (side, side))
        corners = [
            ((x - box.x1) / box.width * side, (y - box.y1) / box.height * side) for x, y in item.outline()
        ]
        if corners:
            ImageDraw.Draw(canvas).polygon(corners, fill=255)
        else:
            ImageDraw.Draw(canvas).ellipse((0, 0, side, side), fill=255)
        found[shape] = np.asarray(canvas.reduce(8)) > 127
    return found
