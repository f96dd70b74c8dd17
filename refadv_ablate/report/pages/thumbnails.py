"""Small JPEGs of a page's images, each image once, inside the page or in a folder beside it."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from refadv_ablate.data.images import encode
from refadv_ablate.errors import UserError
from refadv_ablate.types import ImageRef

INLINE_BYTES = 15_000
"""A page of 2,000 images stays below 40 MB."""
INLINE_SIDE, FOLDER_SIDE = 360, 1024
"""Longest side in pixels; never enlarged."""
_STEPS = ((1.0, 72), (1.0, 55), (0.8, 50), (0.6, 45), (0.45, 40), (0.3, 35))


@dataclass(slots=True)
class Thumbnails:
    """`folder` None: data URIs. `sources` are what the page's img elements point to, in order."""

    folder: Path | None = None
    sources: list[str] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)

    def add(self, image: ImageRef | None) -> int | None:
        """The index of its source; None where there is no image or it can't be read."""
        if image is None:
            return None
        try:
            content = image.digest()
        except UserError:
            return None
        if content not in self._known:
            try:
                source = self._source(image, content)
            except UserError:  # a gallery without one picture is better than none
                source = None
            self._known[content] = -1 if source is None else len(self.sources)
            if source is not None:
                self.sources.append(source)
        index = self._known[content]
        return None if index < 0 else index

    def _source(self, image: ImageRef, content: str) -> str:
        if self.folder is None:
            return "data:image/jpeg;base64," + base64.b64encode(small(image)).decode("ascii")
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{content[:16]}.jpg"
        (self.folder / name).write_bytes(small(image, FOLDER_SIDE, 10 * INLINE_BYTES))
        return f"{quote(self.folder.name)}/{name}"


def small(image: ImageRef, side: int = INLINE_SIDE, most: int = INLINE_BYTES) -> bytes:
    """A JPEG of at most `most` bytes where the steps allow it. Raises ImageUnreadable."""
    picture = image.load()
    data = b""
    for scale, quality in _STEPS:
        shown = picture.copy()
        shown.thumbnail((max(1, round(side * scale)), max(1, round(side * scale))))
        data = encode(shown, "jpeg", quality)
        if len(data) <= most:
            break
    return data
