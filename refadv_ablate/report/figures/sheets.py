"""Pages of pictures: captions under images, many images on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image


def captioned(image: Image.Image, caption: str, side: int = 640) -> Image.Image:
    """The image, at most `side` pixels wide and high, over a caption cut to its width."""
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    image = ImageOps.contain(image, (side, side)) if max(image.size) > side else image
    wide = max(image.width, side // 2)
    framed = Image.new("RGB", (wide, image.height + 24), (255, 255, 255))
    framed.paste(image, (0, 0))
    font = ImageFont.load_default(13)
    while caption and font.getlength(caption) > wide - 8:
        caption = caption[:-2].rstrip("… ") + "…"
    ImageDraw.Draw(framed).text((4, image.height + 4), caption, fill=(20, 20, 20), font=font)
    return framed


def contact_sheet(pictures: Sequence[Image.Image], columns: int = 3, side: int = 420) -> Image.Image:
    """All pictures on one page, each within a square of `side` pixels."""
    from PIL import Image, ImageOps

    small = [ImageOps.contain(picture, (side, side)) for picture in pictures]
    rows = [small[start : start + columns] for start in range(0, len(small), columns)]
    heights = [max(picture.height for picture in row) + 8 for row in rows]
    page = Image.new("RGB", (columns * (side + 8), sum(heights)), (255, 255, 255))
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for column, picture in enumerate(row):
            page.paste(picture, (column * (side + 8) + 4, top + 4))
        top += height
    return page
