"""A symbolic listener for drawn shapes: it sees pixels, hears the expression and points.

It knows the shapes' colours and outlines and the words of their language, and nothing of a scene's
description: a known-good model that needs no weights and that a reordered expression really misleads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.models.listeners.meaning import bag_resolve, listen, resolve
from refadv_ablate.models.listeners.shapes_seen import Sighting, look
from refadv_ablate.types import ImageRef, Json, ModelSpec, Reply, Request

VERSION = 1
"""Raised whenever the same picture and text could get another answer."""
NOTHING = "I see nothing here that this could describe."
REMEMBERED = 64
"""Pictures whose objects are kept, so that several expressions on one image are seen once."""


@dataclass
class Listener:
    """Answers `[x1, y1, x2, y2]` in pixels of the original image, or says that it sees nothing.

    order_sensitive: False makes the control that treats the expression as a bag of words.
    """

    spec: ModelSpec
    order_sensitive: bool = True
    _seen: dict[str, list[Sighting]] = field(default_factory=dict, init=False, repr=False)

    def identity(self) -> Mapping[str, Json]:
        """Version and whether it hears order."""
        return {"engine": "listener", "version": VERSION, "order_sensitive": self.order_sensitive}

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """One at a time, in order."""
        for request in requests:
            try:
                yield request, Reply(self._point(request))
            except ImageUnreadable as error:
                yield request, Reply("", finish="error", error=str(error))

    def close(self) -> None:
        """Forgets what it has seen."""
        self._seen.clear()

    def _point(self, request: Request) -> str:
        seen = self._look(request.image)
        text = request.perturbed.example.expression
        meant = resolve(listen(text), seen) if self.order_sensitive else bag_resolve(text, seen)
        if meant is None:
            return NOTHING
        # boxes are in pixels of what was sent; the answer is in pixels of the stored image
        sent, stored = request.image.size(), request.perturbed.example.image.size()
        across, down = stored[0] / sent[0], stored[1] / sent[1]
        box = meant.box
        values = (box.x1 * across, box.y1 * down, box.x2 * across, box.y2 * down)
        return f"[{', '.join(f'{value:.1f}' for value in values)}]"

    def _look(self, image: ImageRef) -> list[Sighting]:
        key = image.digest()
        if key not in self._seen:
            while len(self._seen) >= REMEMBERED:
                self._seen.pop(next(iter(self._seen)))
            self._seen[key] = look(image.load())
        return self._seen[key]
