"""EXIF orientation: from boxes on the view that an image viewer shows to boxes on the stored pixel grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from refadv_ablate.boxes import Box, Size
from refadv_ablate.data.images import BytesImage, FileImage
from refadv_ablate.types import ImageRef

Grid = Literal["stored", "shown"]
"""What boxes were made on: the pixels as they are stored, or as a viewer turns them."""


def orientation_of(image: ImageRef) -> int:
    """1…8 as EXIF numbers them; 1 where there is none. Raises ImageUnreadable."""
    found = image.orientation() if isinstance(image, FileImage | BytesImage) else 1
    return found if 1 <= found <= 8 else 1


def shown_size(stored: Size, orientation: int) -> Size:
    """(width, height) of the view: swapped for the orientations that lie on their side."""
    return (stored[1], stored[0]) if orientation >= 5 else stored


def to_stored(box: Box, orientation: int, stored: Size) -> Box:
    """The box on the stored grid of this size, from the view (EXIF 2.3, tag 0x0112)."""
    width, height = stored
    points = list(_points(box, orientation, width, height))
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return Box(min(xs), min(ys), max(xs), max(ys))


def _points(box: Box, orientation: int, width: int, height: int) -> Iterator[tuple[float, float]]:
    for x, y in ((box.x1, box.y1), (box.x2, box.y2)):
        yield {
            1: (x, y),
            2: (width - x, y),
            3: (width - x, height - y),
            4: (x, height - y),
            5: (y, x),
            6: (y, height - x),
            7: (width - y, height - x),
            8: (width - y, x),
        }[orientation]
