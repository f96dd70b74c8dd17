"""A symbolic listener for drawn shapes: it sees pixels, hears the expression and points.

It knows the shapes' colours and outlines and the words of their language, and nothing of a scene's
description: a known-good model that needs no weights and that a reordered expression really misleads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from refadv_ablate.errors import ImageUnreadable, UserError, nearest
from refadv_ablate.models.listeners.meaning import DEAFNESS, bag_resolve, deafened, fitting, listen
from refadv_ablate.models.listeners.shapes_seen import Sighting, look
from refadv_ablate.parsing.confidence import rounded
from refadv_ablate.seeding import generator
from refadv_ablate.types import Confidence, ImageRef, Json, ModelSpec, Reply, Request

VERSION = 1
"""Raised whenever the same picture and text could get another answer."""
NOTHING = "I see nothing here that this could describe."
NONE = "none"
"""Its answer where nothing matches and the prompt allows to say so; else it points at the likeliest."""
REMEMBERED = 64
"""Pictures whose objects are kept, so that several expressions on one image are seen once."""


@dataclass
class Listener:
    """Answers `[x1, y1, x2, y2]` in pixels of the original image, or says that it sees nothing.

    order_sensitive: False makes the control that treats the expression as a bag of words.
    deaf_to: kinds of words that it doesn't hear (colour, size, fill, side, relation, ordinal, negation):
    controls that must fail where these matter, and nowhere else. side: left and right alone.
    ties: of several objects that fit, `first` points at the first in reading order and `drawn` at any with
    equal chance, so that it is right once in as many as fit: the control of the excess over chance.
    Its confidence, where asked for, is one in as many objects as fit: exactly right with ties=drawn, as long
    as the referent is among them. Hearing no order it has none.
    """

    spec: ModelSpec
    order_sensitive: bool = True
    deaf_to: tuple[str, ...] = ()
    ties: Literal["first", "drawn"] = "first"
    _seen: dict[str, list[Sighting]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for kind in self.deaf_to:
            if kind not in DEAFNESS:
                raise UserError(f"a listener can't be deaf to {kind!r}; {nearest(kind, DEAFNESS)}")
        if self.ties not in ("first", "drawn"):
            raise UserError(f"a listener's ties={self.ties!r}: choose first or drawn")

    def identity(self) -> Mapping[str, Json]:
        """Version, whether it hears order, and what it doesn't hear."""
        deaf = {"deaf_to": sorted(self.deaf_to)} if self.deaf_to else {}
        ties = {"ties": self.ties} if self.ties != "first" else {}
        heard = {"order_sensitive": self.order_sensitive, **deaf, **ties}
        return {"engine": "listener", "version": VERSION, **heard}

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """One at a time, in order."""
        for request in requests:
            try:
                yield request, self._point(request)
            except ImageUnreadable as error:
                yield request, Reply("", finish="error", error=str(error))

    def close(self) -> None:
        """Forgets what it has seen."""
        self._seen.clear()

    def _point(self, request: Request) -> Reply:
        seen = self._look(request.image)
        text = request.perturbed.example.expression
        or_none = bool(request.options.get("or_none"))
        fits: Sequence[Sighting] = ()
        if self.order_sensitive:
            fits = fitting(deafened(listen(text), self.deaf_to), seen, strict=or_none)
            meant = self._one_of(fits, request.image)
        else:
            meant = bag_resolve(text, seen)
        if meant is None:
            return Reply(NONE if or_none else NOTHING)
        # boxes are in pixels of what was sent; the answer is in pixels of the stored image
        sent, stored = request.image.size(), request.perturbed.example.image.size()
        across, down = stored[0] / sent[0], stored[1] / sent[1]
        box = meant.box
        values = (box.x1 * across, box.y1 * down, box.x2 * across, box.y2 * down)
        sure = Confidence(rounded(1 / len(fits))) if fits and self.spec.logprobs else None
        return Reply(f"[{', '.join(f'{value:.1f}' for value in values)}]", confidence=sure)

    def _one_of(self, fits: Sequence[Sighting], image: ImageRef) -> Sighting | None:
        if len(fits) < 2 or self.ties == "first":
            return fits[0] if fits else None
        boxes = str([sighting.box.as_list() for sighting in fits])
        return fits[generator(0, "ties", image.digest(), boxes).randrange(len(fits))]

    def _look(self, image: ImageRef) -> list[Sighting]:
        key = image.digest()
        if key not in self._seen:
            while len(self._seen) >= REMEMBERED:
                self._seen.pop(next(iter(self._seen)))
            self._seen[key] = look(image.load())
        return self._seen[key]
