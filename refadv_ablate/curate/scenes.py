"""A scene: an image with numbered candidates of one category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refadv_ablate.boxes import Box, Size
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.data.images import FileImage, below
from refadv_ablate.errors import UserError
from refadv_ablate.types import Json

if TYPE_CHECKING:
    from refadv_ablate.types import ImageRef


@dataclass(frozen=True, slots=True)
class Scene:
    """boxes: of the candidates, pixels of the stored image; candidate n (from 1) is boxes[n − 1].

    left_out: instances of the category that are no candidates (tiny, crowd). sha256: of the image file.
    """

    id: str
    root: str
    image: str
    size: Size
    category: str
    boxes: tuple[Box, ...]
    source: str
    sha256: str
    left_out: int = 0

    def file(self) -> Path:
        """The image file. Raises ImageUnreadable for a name that leads out of the root."""
        return below(Path(self.root), self.image)

    def ref(self) -> ImageRef:
        """The untagged image."""
        return FileImage(self.file(), self.image)

    def marked(self) -> ImageRef:
        """The image with a number tag on each candidate."""
        from refadv_ablate.prompting.som import Marked

        return Marked(self.ref(), self.boxes)

    def content(self) -> list[Json]:
        """What answers about the scene depend on: not where the image lies."""
        return [self.id, self.sha256, self.category, [box.as_list() for box in self.boxes]]

    def to_json(self) -> dict[str, Json]:
        """A line of scenes.jsonl."""
        return {
            "scene": self.id,
            "root": self.root,
            "image": self.image,
            "width": self.size[0],
            "height": self.size[1],
            "category": self.category,
            "boxes": [box.as_list() for box in self.boxes],
            "source": self.source,
            "sha256": self.sha256,
            "left_out": self.left_out,
        }

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> Scene:
        """Raises ValueError or KeyError for a line that is none."""
        return cls(
            id=str(d["scene"]),
            root=str(d["root"]),
            image=str(d["image"]),
            size=(int(d["width"]), int(d["height"])),
            category=str(d["category"]),
            boxes=tuple(Box(*map(float, box)) for box in d["boxes"]),
            source=str(d["source"]),
            sha256=str(d["sha256"]),
            left_out=int(d.get("left_out", 0)),
        )


def load_scenes(out: Path) -> dict[str, Scene]:
    """Scenes by id, in stored order. Raises UserError where `prepare` hasn't run."""
    path = out / "scenes.jsonl"
    scenes = {}
    for number, row in enumerate(Ledger(path), 1):
        try:
            scene = Scene.from_json(row)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}:{number}: no scene ({error}); run the stage prepare again") from error
        scenes[scene.id] = scene
    if not scenes:
        raise UserError(f"{path} has no scenes: run the stage prepare first, with the same out=")
    return scenes
