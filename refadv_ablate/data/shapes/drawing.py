"""Scenes as pictures: Pillow, drawn large and reduced, so that edges are smooth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from refadv_ablate import seeding
from refadv_ablate.boxes import Size
from refadv_ablate.data.shapes.scene import Item, Scene

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

RGB: dict[str, tuple[int, int, int]] = {
    "red": (214, 40, 48),
    "green": (38, 156, 76),
    "blue": (42, 96, 214),
    "yellow": (244, 204, 30),
    "purple": (142, 62, 176),
    "orange": (240, 128, 32),
}
HOLE = 0.56
"""Extent of the hole in a hollow object, as a fraction of the object's."""
OVERSAMPLING = 3


@dataclass(frozen=True, slots=True)
class DrawnImage:
    """A picture that exists as its description until it is loaded."""

    scene: Scene
    name: str

    @property
    def key(self) -> str:
        """Shared by all expressions on this scene."""
        return self.name

    def size(self) -> Size:
        """(width, height), pixels."""
        return self.scene.size

    def load(self) -> Image.Image:
        """Draws the scene; mode RGB."""
        return render(self.scene)

    def digest(self) -> str:
        """SHA-256 of the scene's description: the same with every version of the drawing library."""
        return seeding.digest("shapes", asdict(self.scene), RGB, HOLE)


def render(scene: Scene) -> Image.Image:
    """The scene as an RGB picture of its own size."""
    from PIL import Image, ImageDraw

    width, height = scene.size
    canvas = Image.new("RGB", (width * OVERSAMPLING, height * OVERSAMPLING), scene.background)
    pen = ImageDraw.Draw(canvas)
    for item in scene.items:
        _fill(pen, item, 1.0, RGB[item.colour])
        if item.fill == "hollow":
            _fill(pen, item, HOLE, scene.background)
    return canvas.reduce(OVERSAMPLING)


def _fill(pen: ImageDraw.ImageDraw, item: Item, scale: float, colour: tuple[int, int, int]) -> None:
    corners = item.outline(scale)
    if corners:
        pen.polygon([(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in corners], fill=colour)
        return
    radius = item.radius * scale
    box = (item.x - radius, item.y - radius, item.x + radius, item.y + radius)
    pen.ellipse([value * OVERSAMPLING for value in box], fill=colour)
