"""Requests for the engine tests: a drawn image, an expression, a question."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw

from refadv_ablate.boxes import Box, Quad, Size
from refadv_ablate.types import (
    EMPTY,
    ORIGINAL,
    Example,
    Message,
    ModelSpec,
    NoBox,
    Perturbed,
    Request,
    Sampling,
    Seen,
)


@dataclass(frozen=True)
class Drawn:
    """A few rectangles, other ones for each key."""

    key: str
    shape: Size = (96, 64)

    def size(self) -> Size:
        return self.shape

    def load(self) -> Image.Image:
        image = Image.new("RGB", self.shape, "white")
        pen, seed = ImageDraw.Draw(image), hashlib.sha256(self.key.encode()).digest()
        width, height = self.shape
        for a, b, c, d in zip(seed[::4], seed[1::4], seed[2::4], seed[3::4], strict=True):
            x, y = a * width // 256, b * height // 256
            pen.rectangle((x, y, x + c % 20 + 3, y + d % 20 + 3), fill=(a, c, d))
        return image

    def digest(self) -> str:
        return hashlib.sha256(f"{self.key}{self.shape}".encode()).hexdigest()


class AnyDialect:
    def read(self, text: str) -> tuple[Quad, ...] | NoBox:
        return NoBox("empty")


class AnyFrame:
    def to_pixels(self, quad: Quad, seen: Seen) -> tuple[Box | NoBox, tuple[str, ...]]:
        return Box(*quad), ()


def spec(checkpoint: str = "some/model", **more: Any) -> ModelSpec:
    more = {"dialect": AnyDialect(), "frame": AnyFrame(), "prompts": {}, **more}
    return ModelSpec(name="some", checkpoint=checkpoint, **more)


def ask(
    number: int = 0,
    condition: str = ORIGINAL,
    text: str | None = None,
    image: Any = None,
    sampling: Sampling = Sampling(max_new_tokens=16),  # noqa: B008  # frozen
    draw: int = 0,
    image_first: bool = True,
    **options: Any,
) -> Request:
    """A request about image `number // 4`, so that neighbours share one."""
    image = image or Drawn(f"image{number // 4}")
    text = text or f"the red box number {number}"
    example = Example(str(number), image, text, Box(1, 2, 30, 40))
    parts = (image, f"Where is {text}?") if image_first else (f"Where is {text}?", image)
    return Request(
        perturbed=Perturbed(example, example, "changed"),
        condition=condition,
        draw=draw,
        messages=(Message("user", parts),),
        image=image,
        sampling=sampling,
        options=options or EMPTY,
    )
