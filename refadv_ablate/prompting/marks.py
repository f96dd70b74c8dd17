"""Numbered marks drawn on an image: the same renderer for Set-of-Marks and for curation.

Outlines and number plates are placed deterministically. A plate lies beside its box where there is
room, so that small objects stay visible, and never wholly covers a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from refadv_ablate.boxes import Box, Size

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

VERSION = 2
"""Raised when the drawing changes, since answers to other marks are other answers."""

Rect = tuple[int, int, int, int]
Color = tuple[int, int, int]

# Dark enough for white digits (contrast 4.5 or more), far apart in hue; a white halo keeps the outlines
# visible on dark ground, their own darkness on light ground.
PALETTE: tuple[Color, ...] = (
    (200, 0, 0), (0, 70, 210), (0, 110, 40), (140, 0, 160), (165, 75, 0),
    (0, 105, 120), (190, 0, 110), (80, 80, 0), (85, 50, 200), (95, 60, 40),
)  # fmt: skip
WHITE: Color = (255, 255, 255)


def draw_marks(
    image: Image.Image,
    boxes: Sequence[Box],
    labels: Sequence[str] | None = None,
    outlines: bool = True,
    colors: Sequence[Color] = PALETTE,
) -> Image.Image:
    """A copy of the image with an outline and a number plate for each box (labels: 1, 2, … if not given).

    outlines=False draws the plates alone. colors: taken in turn; white must be legible on them.
    """
    from PIL import ImageDraw

    labels = [str(i + 1) for i in range(len(boxes))] if labels is None else labels
    if len(labels) != len(boxes):
        raise ValueError(f"{len(boxes)} boxes and {len(labels)} labels")
    marked = image.convert("RGB")
    draw = ImageDraw.Draw(marked)
    line = max(1, round(max(marked.size) / 350))
    rects = [_pixels(box, marked.size) for box in boxes]
    if outlines:
        for index in sorted(range(len(boxes)), key=lambda i: -boxes[i].area):
            _outline(draw, rects[index], colors[index % len(colors)], line)
    taken: list[Rect] = []
    # the smallest boxes choose first: a large one has more room for its plate
    for index in sorted(range(len(boxes)), key=lambda i: (boxes[i].area, i)):
        font = _font(_font_size(marked.size))
        plate = _place(_plate_size(draw, labels[index], font), rects[index], rects, taken, marked.size)
        taken.append(plate)
        _plate(draw, plate, labels[index], font, colors[index % len(colors)], rects[index], line)
    return marked


def _pixels(box: Box, size: Size) -> Rect:
    width, height = size
    x1, y1 = min(max(int(box.x1), 0), width - 1), min(max(int(box.y1), 0), height - 1)
    x2, y2 = min(max(round(box.x2) - 1, x1), width - 1), min(max(round(box.y2) - 1, y1), height - 1)
    return x1, y1, x2, y2


def _outline(draw: ImageDraw.ImageDraw, rect: Rect, color: Color, line: int) -> None:
    """Around the box and not in it: a small object keeps its pixels."""
    x1, y1, x2, y2 = rect
    halo = max(1, line // 2)
    for grow, ink in ((2 * halo + line, WHITE), (halo + line, color)):
        thick = halo if ink is WHITE else line
        draw.rectangle((x1 - grow, y1 - grow, x2 + grow, y2 + grow), outline=ink, width=thick)
    draw.rectangle((x1 - halo, y1 - halo, x2 + halo, y2 + halo), outline=WHITE, width=halo)


def _font_size(size: Size) -> int:
    """In pixels: legible after a model's own resize, which keeps about 1,000 pixels a side or more."""
    return max(11, round(max(size) / 45))


@lru_cache(maxsize=32)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _plate_size(
    draw: ImageDraw.ImageDraw, label: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> Size:
    left, top, right, bottom = draw.textbbox((0, 0), label, font=font, anchor="lt")
    return int(right - left) + 6, int(bottom - top) + 6


def _place(plate: Size, rect: Rect, rects: Sequence[Rect], taken: Sequence[Rect], size: Size) -> Rect:
    """Where a plate hides least: beside its box, else at a corner within, clear of the other plates."""
    spots = [_kept(spot, plate, size) for spot in _spots(plate, rect)]
    best = min(enumerate(spots), key=lambda pair: (*_cost(pair[1], rect, rects, taken), pair[0]))[1]
    if any(_overlap(best, other) for other in taken):  # as where boxes nest: all corners are taken
        return _free(plate, rect, rects, taken, size) or best
    return best


def _free(plate: Size, rect: Rect, rects: Sequence[Rect], taken: Sequence[Rect], size: Size) -> Rect | None:
    """A place in the image that no plate has, near the box and hiding little; None where there is none."""
    (w, h), (width, height) = plate, size
    places = [
        (x, y, x + w, y + h)
        for y in range(0, max(1, height - h + 1), max(1, h // 2))
        for x in range(0, max(1, width - w + 1), max(1, w // 2))
    ]
    free = [place for place in places if not any(_overlap(place, other) for other in taken)]

    def cost(place: Rect) -> tuple[float, float]:
        away = max(rect[0] - place[2], place[0] - rect[2], rect[1] - place[3], place[1] - rect[3], 0)
        near = min(abs(place[i] - rect[j]) for i, j in ((0, 0), (2, 2), (1, 1), (3, 3)))
        hidden = max((_overlap(place, other) / max(1, _area(other)) for other in rects), default=0.0)
        return away + near + 400 * max(0.0, hidden - 0.25), place[1] * width + place[0]

    return min(free, key=cost, default=None)


def _spots(plate: Size, rect: Rect) -> list[tuple[int, int]]:
    """Top left corners in order of preference: outside above, left, below, right; then within."""
    (w, h), (x1, y1, x2, y2) = plate, rect
    gap = 3
    outside = [(x1, y1 - h - gap), (x1 - w - gap, y1), (x1, y2 + gap), (x2 + gap, y1), (x2 - w, y1 - h - gap),
               (x2 + gap, y2 - h), (x2 - w, y2 + gap), (x1 - w - gap, y2 - h)]  # fmt: skip
    within = [
        (x1, y1),
        (x2 - w, y1),
        (x1, y2 - h),
        (x2 - w, y2 - h),
        ((x1 + x2 - w) // 2, (y1 + y2 - h) // 2),
    ]
    return outside + within


def _kept(spot: tuple[int, int], plate: Size, size: Size) -> Rect:
    """The plate at that spot, moved into the image."""
    x = min(max(spot[0], 0), max(size[0] - plate[0], 0))
    y = min(max(spot[1], 0), max(size[1] - plate[1], 0))
    return x, y, x + plate[0], y + plate[1]


def _cost(spot: Rect, own: Rect, rects: Sequence[Rect], taken: Sequence[Rect]) -> tuple[float, float]:
    """First what matters most: overlap with other plates, and shares of boxes that would be hidden."""
    plates = sum(_overlap(spot, other) for other in taken)
    area = max(1, (spot[2] - spot[0]) * (spot[3] - spot[1]))
    hidden = max((_overlap(spot, rect) / max(1, _area(rect)) for rect in rects), default=0.0)
    total = sum(min(1.0, _overlap(spot, rect) / max(1, _area(rect))) for rect in rects)
    far = 0.0 if _touches(spot, own) else 1.0
    return round(4 * plates / area + 8 * max(0.0, hidden - 0.25) + far, 6), total


def _area(rect: Rect) -> int:
    return (rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1)


def _overlap(a: Rect, b: Rect) -> int:
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


def _touches(a: Rect, b: Rect, gap: int = 4) -> bool:
    return a[0] <= b[2] + gap and b[0] <= a[2] + gap and a[1] <= b[3] + gap and b[1] <= a[3] + gap


def _plate(
    draw: ImageDraw.ImageDraw,
    plate: Rect,
    label: str,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    color: Color,
    rect: Rect,
    line: int,
) -> None:
    if not _touches(plate, rect):  # moved away from its box: a line says whose number it is
        ends = ((plate[0] + plate[2]) // 2, (plate[1] + plate[3]) // 2,
                (rect[0] + rect[2]) // 2, (rect[1] + rect[3]) // 2)  # fmt: skip
        draw.line(ends, fill=WHITE, width=line + 2)
        draw.line(ends, fill=color, width=line)
    draw.rectangle((plate[0], plate[1], plate[2] - 1, plate[3] - 1), fill=color, outline=WHITE, width=1)
    draw.text((plate[0] + 3, plate[1] + 3), label, fill=WHITE, font=font, anchor="lt")
