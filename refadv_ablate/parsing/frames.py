"""Coordinate frames of the model families, and the resize rules of their processors.

A frame is declared in the family's YAML and never guessed from the values of one answer: guessing
misreads absolute pixels on every image smaller than the scale. What contradicts the frame is noted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from refadv_ablate.boxes import Box, Quad, Size
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.types import NoBox, Resize, Seen

MAX_ASPECT = 200
"""Qwen's processors refuse images that are longer than this many times their width."""


@dataclass(frozen=True, slots=True)
class SmartResize:
    """Qwen-VL's rule: sides to multiples of `factor`, the area between two bounds, the aspect kept.

    min_pixels, max_pixels: areas in square pixels. Source: described in transformers'
    image_processing_qwen2_vl and in qwen-vl-utils; the bounds come from the checkpoint's
    preprocessor_config, since those two have different defaults.
    """

    factor: int = 28
    min_pixels: int = 56 * 56
    max_pixels: int = 28 * 28 * 1280

    def __call__(self, size: Size) -> Size:
        """(width, height) after the resize. Raises ImageUnreadable for an extreme aspect ratio."""
        width, height = size
        if min(size) < 1 or max(size) / min(size) > MAX_ASPECT:
            raise ImageUnreadable(
                f"an image of {width}×{height} is too long for this model (at most {MAX_ASPECT}:1); crop it"
            )
        new_width, new_height = self._multiple(width), self._multiple(height)
        if new_width * new_height > self.max_pixels:
            shrink = math.sqrt(width * height / self.max_pixels)
            return self._floor(width / shrink), self._floor(height / shrink)
        if new_width * new_height < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (width * height))
            return self._ceil(width * grow), self._ceil(height * grow)
        return new_width, new_height

    def _multiple(self, side: int) -> int:
        return round(side / self.factor) * self.factor

    def _floor(self, side: float) -> int:
        return max(self.factor, math.floor(side / self.factor) * self.factor)

    def _ceil(self, side: float) -> int:
        return math.ceil(side / self.factor) * self.factor


@dataclass(frozen=True, slots=True)
class Within:
    """The sizes that a family's processor takes: a shorter side below `min_side` pixels is enlarged to it.

    The aspect is kept, so that a box in a frame of the sent image maps back by each axis. An image longer
    than `max_aspect` times its width can't be mended by a resize and is refused.
    """

    min_side: int = 28
    max_aspect: float = MAX_ASPECT

    def __call__(self, size: Size) -> Size:
        """(width, height) to send; the same where it is within. Raises ImageUnreadable."""
        shorter, longer = min(size), max(size)
        if shorter < 1 or longer / shorter > self.max_aspect:
            raise ImageUnreadable(
                f"an image of {size[0]}×{size[1]} is too long for this model "
                f"(at most {self.max_aspect:g}:1); crop it"
            )
        if shorter >= self.min_side:
            return size
        return math.ceil(size[0] * self.min_side / shorter), math.ceil(size[1] * self.min_side / shorter)


@dataclass(frozen=True, slots=True)
class LongestSide:
    """The longer side at most `longest` pixels, the aspect kept, nothing enlarged."""

    longest: int

    def __call__(self, size: Size) -> Size:
        """(width, height) after the resize."""
        scale = min(1.0, self.longest / max(size))
        return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


@dataclass(frozen=True, slots=True)
class Relative:
    """Fractions of the whole image times `scale`: 1000, 999 or 1; each axis by its own length."""

    scale: float = 1000
    order: Literal["xyxy", "yxyx"] = "xyxy"

    def __str__(self) -> str:
        return f"0–{self.scale:g} of the image, {'x' if self.order == 'xyxy' else 'y'} first"

    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        """The box in the original image's pixels."""
        x1, y1, x2, y2 = quad if self.order == "xyxy" else (quad[1], quad[0], quad[3], quad[2])
        odd = max(quad) > self.scale or (self.scale > 1 and max(map(abs, quad)) <= 1)
        width, height = seen.original
        stretched = (x1 / self.scale * width, y1 / self.scale * height,
                     x2 / self.scale * width, y2 / self.scale * height)  # fmt: skip
        return _fit(stretched, seen.original, odd)


@dataclass(frozen=True, slots=True)
class ResizedPixels:
    """Absolute pixels of the image as the processor resized it, as Qwen2.5-VL answers.

    The size is what the engine reported; else what `resize` makes of the image that was sent; else
    that of the image that was sent.
    """

    resize: Resize | None = None

    def __str__(self) -> str:
        return "pixels of the resized image"

    def size(self, seen: Seen) -> Size:
        """(width, height) of the frame."""
        return seen.processed or (self.resize(seen.sent) if self.resize else seen.sent)

    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        """The box in the original image's pixels; `resize_mismatch` where rule and processor differ."""
        frame = self.size(seen)
        box, notes = _fit(_scaled(quad, frame, seen.original), seen.original, _beyond(quad, frame))
        if seen.processed and self.resize and self.resize(seen.sent) != seen.processed:
            notes = (*notes, "resize_mismatch")
        return box, notes


@dataclass(frozen=True, slots=True)
class OriginalPixels:
    """Absolute pixels of the original image."""

    def __str__(self) -> str:
        return "pixels of the original image"

    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        """The same numbers, ordered and clipped."""
        return _fit(quad, seen.original, _beyond(quad, seen.original))


@dataclass(frozen=True, slots=True)
class PaddedSquare:
    """Relative to the square that the image was padded to: in its middle, or at its top left corner."""

    scale: float = 1.0
    centered: bool = True

    def __str__(self) -> str:
        return f"0–{self.scale:g} of the image padded to a square"

    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        """The box in the original image's pixels."""
        odd = max(quad) > self.scale or (self.scale > 1 and max(map(abs, quad)) <= 1)
        width, height = seen.original
        side = max(width, height)
        dx, dy = ((side - width) / 2, (side - height) / 2) if self.centered else (0.0, 0.0)
        x1, y1, x2, y2 = (value / self.scale * side for value in quad)
        return _fit((x1 - dx, y1 - dy, x2 - dx, y2 - dy), seen.original, odd)


def _scaled(quad: Quad, source: Size, target: Size) -> Quad:
    x, y = target[0] / source[0], target[1] / source[1]
    return (quad[0] * x, quad[1] * y, quad[2] * x, quad[3] * y)


def _beyond(quad: Quad, size: Size) -> bool:
    """Whether absolute pixels can't be meant: all within the unit square, or 5% outside the image."""
    outside = max(quad[0], quad[2]) > 1.05 * size[0] or max(quad[1], quad[3]) > 1.05 * size[1]
    return outside or max(map(abs, quad)) <= 1


def _fit(quad: Quad, size: Size, contradiction: bool) -> tuple[Box | NoBox, tuple[str, ...]]:
    """Corners in order, within the image, and the notes about both."""
    width, height = size
    notes = []
    x1, x2 = sorted((quad[0], quad[2]))
    y1, y2 = sorted((quad[1], quad[3]))
    if (x1, y1, x2, y2) != quad:
        notes.append("swapped")
    # half a hundredth of a pixel is rounding, not an answer outside the image
    if x1 < -0.005 or y1 < -0.005 or x2 > width + 0.005 or y2 > height + 0.005:
        notes.append("clipped")
    x1, x2 = (min(max(x, 0.0), float(width)) for x in (x1, x2))
    y1, y2 = (min(max(y, 0.0), float(height)) for y in (y1, y2))
    if contradiction:
        notes.append("scale_contradiction")
    if not (x1 < x2 and y1 < y2):
        return NoBox("unparsable", "the box has no area within the image"), (*notes, "degenerate")
    return Box(x1, y1, x2, y2), tuple(notes)
