"""What can be said about a scene, what it means, and the minimal ways of meaning one object.

A meaning is a head phrase (size, colour, fill, shape) with at most one modifier: a relation to a
landmark, a rank along a side, or a negated attribute. Its denotation is computed from the scene
alone; "minimal sufficient" is checked against it, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from refadv_ablate.data.shapes.scene import Item, Scene

Kind = Literal["attribute", "relation", "ordinal", "negation"]
KINDS: tuple[Kind, ...] = ("attribute", "relation", "ordinal", "negation")
ATTRIBUTES = ("size", "fill", "colour")
"""In the order in which they stand before a noun: the large hollow red circle."""
OPPOSITE = {"left": "right", "right": "left", "above": "below", "below": "above"}
MARGIN = 0.05
"""Objects closer along an axis than this fraction of the image's side are neither left nor right."""
NTH = {1: "first", 2: "second", 3: "third"}
MOST = {"left": "leftmost", "right": "rightmost", "above": "topmost", "below": "bottommost"}
EDGE = {"left": "left", "right": "right", "above": "top", "below": "bottom"}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun with attributes; None leaves one open."""

    shape: str
    size: str | None = None
    fill: str | None = None
    colour: str | None = None

    def words(self) -> list[str]:
        """Its attributes as words, in their order before the noun."""
        return [word for word in (self.size, self.fill, self.colour) if word]

    def __str__(self) -> str:
        return " ".join([*self.words(), self.shape])

    def fits(self, item: Item) -> bool:
        """Whether the object is of this shape and has these attributes."""
        return item.shape == self.shape and all(
            getattr(self, name) in (None, getattr(item, name)) for name in ATTRIBUTES
        )


@dataclass(frozen=True, slots=True)
class Relation:
    """On one side of a landmark."""

    side: str
    landmark: Phrase


@dataclass(frozen=True, slots=True)
class Rank:
    """The n-th from a side among those that the head phrase fits."""

    side: str
    n: int


@dataclass(frozen=True, slots=True)
class Without:
    """A value that the referent does not have."""

    attribute: str
    value: str


Modifier = Relation | Rank | Without


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an expression says."""

    head: Phrase
    modifier: Modifier | None = None

    @property
    def kind(self) -> Kind:
        """By its modifier."""
        if self.modifier is None:
            return "attribute"
        return {Relation: "relation", Rank: "ordinal", Without: "negation"}[type(self.modifier)]  # type: ignore[return-value]  # the table holds kinds only

    def reduced(self) -> Iterator[Meaning]:
        """This meaning without one descriptor, for each descriptor it has."""
        for name in ATTRIBUTES:
            if getattr(self.head, name) is not None:
                yield replace(self, head=_leave(self.head, name))
        if self.modifier is not None:
            yield replace(self, modifier=None)

    def swapped(self) -> Iterator[Meaning]:
        """Other meanings that the same words could have in another order."""
        head, modifier = self.head, self.modifier
        if isinstance(modifier, Relation):
            mark = modifier.landmark
            yield Meaning(mark, replace(modifier, landmark=head))
            if head.words() != mark.words():
                crossed = replace(modifier, landmark=replace(head, shape=mark.shape))
                yield Meaning(replace(mark, shape=head.shape), crossed)
        if isinstance(modifier, Without):
            for name in ATTRIBUTES:
                value = getattr(head, name)
                if value is not None:
                    left = replace(_leave(head, name), **{modifier.attribute: modifier.value})
                    yield Meaning(left, Without(name, value))


def _leave(phrase: Phrase, name: str) -> Phrase:
    return Phrase(phrase.shape, **{a: getattr(phrase, a) for a in ATTRIBUTES if a != name})


# ── denotation ──────────────────────────────────────────────────────────────────────────────────


class Denotation:
    """Objects of a scene that a meaning fits, as indices into the scene's items."""

    def __init__(self, scene: Scene) -> None:
        self.items = scene.items
        width, height = scene.size
        self.places = [(item.x / width, item.y / height) for item in scene.items]
        self._known: dict[Phrase, list[int]] = {}

    def ahead(self, side: str, a: int, b: int) -> float:
        """How far a lies towards `side` of b, as a fraction of the image's side."""
        axis = 0 if side in ("left", "right") else 1
        sign = -1.0 if side in ("left", "above") else 1.0
        return sign * (self.places[a][axis] - self.places[b][axis])

    def phrase(self, phrase: Phrase) -> list[int]:
        """All objects that a phrase fits; the list is shared between calls and not to be changed."""
        if phrase not in self._known:
            self._known[phrase] = [i for i, item in enumerate(self.items) if phrase.fits(item)]
        return self._known[phrase]

    def of(self, meaning: Meaning) -> list[int]:
        """All objects that fit. A landmark phrase that fits several stands for any of them."""
        head, modifier = self.phrase(meaning.head), meaning.modifier
        if isinstance(modifier, Relation):
            marks = self.phrase(modifier.landmark)
            return [i for i in head if any(i != m and self.ahead(modifier.side, i, m) > 0 for m in marks)]
        if isinstance(modifier, Rank):
            order = sorted(head, key=lambda i: -self.ahead(modifier.side, i, 0))
            return order[modifier.n - 1 : modifier.n]
        if isinstance(modifier, Without):
            return [i for i in head if getattr(self.items[i], modifier.attribute) != modifier.value]
        return head

    def clear(self, meaning: Meaning) -> bool:
        """Whether nobody would quarrel about a side: no two that matter are nearly level."""
        head, modifier = self.phrase(meaning.head), meaning.modifier
        if isinstance(modifier, Relation):
            marks = self.phrase(modifier.landmark)
            return len(marks) == 1 and all(
                abs(self.ahead(modifier.side, i, marks[0])) >= MARGIN for i in head if i != marks[0]
            )
        if isinstance(modifier, Rank):
            (chosen,) = self.of(meaning) or [-1]
            return chosen >= 0 and all(
                abs(self.ahead(modifier.side, i, chosen)) >= MARGIN for i in head if i != chosen
            )
        return True

    def minimal(self, meaning: Meaning, target: int) -> bool:
        """Fits the target alone, clearly, and without any one descriptor no longer does."""
        return (
            self.of(meaning) == [target]
            and self.clear(meaning)
            and all(self.of(less) != [target] for less in meaning.reduced())
        )

    def order_sensitive(self, meaning: Meaning, target: int) -> bool:
        """Whether the same words in another order fit some other object."""
        return any(set(self.of(other)) - {target} for other in meaning.swapped())


# ── enumeration ─────────────────────────────────────────────────────────────────────────────────


def phrases(item: Item, most: int = 3) -> Iterator[Phrase]:
    """All phrases true of an object with at most so many attributes; short ones first, colour first."""
    for count in range(most + 1):
        for names in combinations(("colour", "size", "fill"), count):
            yield Phrase(item.shape, **{name: getattr(item, name) for name in names})


def meanings(scene: Scene, kind: Kind, denotation: Denotation) -> Iterator[tuple[Meaning, int]]:
    """Every minimal sufficient meaning of a kind for an object of the focus category."""
    for target, item in enumerate(scene.items):
        if item.shape != scene.focus:
            continue
        for head in phrases(item, 3 if kind == "attribute" else 2):
            if kind != "attribute" and len(denotation.phrase(head)) < (3 if kind == "ordinal" else 2):
                continue
            for modifier in _modifiers(scene, kind, target, head, denotation):
                meaning = Meaning(head, modifier)
                if denotation.minimal(meaning, target):
                    yield meaning, target


def _modifiers(
    scene: Scene, kind: Kind, target: int, head: Phrase, denotation: Denotation
) -> Iterator[Modifier | None]:
    if kind == "attribute":
        yield None
    elif kind == "relation":
        marks = _landmarks(scene, target, denotation)
        yield from (Relation(side, mark) for mark in marks for side in OPPOSITE)
    elif kind == "ordinal":
        yield from (Rank(side, n) for side in OPPOSITE for n in NTH)
    else:
        own = scene.items[target]
        for name in ATTRIBUTES:
            if getattr(head, name) is None:
                values = {getattr(item, name) for item in scene.items if item.shape == head.shape}
                yield from (Without(name, value) for value in sorted(values - {getattr(own, name)}))


def _landmarks(scene: Scene, target: int, denotation: Denotation) -> Iterator[Phrase]:
    """For every other object the shortest phrase of at most two attributes that fits it alone."""
    for index, item in enumerate(scene.items):
        if index == target:
            continue
        for phrase in phrases(item, 2):
            if denotation.phrase(phrase) == [index]:
                yield phrase
                break
