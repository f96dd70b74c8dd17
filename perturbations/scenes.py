"""The language of drawn scenes: what an expression means, and which candidates of an image a meaning fits.

Exact where every candidate has a shape, a colour, a size and a fill, as with `data=shapes`; anywhere else
`resolved` says why not. The reader is strict: a text that is no sentence of the language means nothing
here, so that no operator changes what it has not understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from refadv_ablate.boxes import Box
from refadv_ablate.types import Example

Kind = Literal["attribute", "relation", "ordinal", "negation"]
KINDS: tuple[Kind, ...] = ("attribute", "relation", "ordinal", "negation")
SHAPES = ("circle", "square", "triangle", "star", "cross")
VALUES: dict[str, tuple[str, ...]] = {
    "size": ("small", "large"),
    "fill": ("solid", "hollow"),
    "colour": ("red", "green", "blue", "yellow", "purple", "orange"),
}
"""The values of each attribute; the attributes in the order in which they stand before a noun."""
ATTRIBUTE = {value: name for name, values in VALUES.items() for value in values}
SIDES = {
    "left": ("left of", "to the left of"),
    "right": ("right of", "to the right of"),
    "above": ("above", "higher than"),
    "below": ("below", "lower than"),
}
MOST = {"left": "leftmost", "right": "rightmost", "above": "topmost", "below": "bottommost"}
EDGE = {"left": "left", "right": "right", "above": "top", "below": "bottom"}
NTH = ("first", "second", "third")
MARGIN = 0.05
"""Objects closer along an axis than this fraction of the image's side are neither left nor right."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A shape with attributes, as (name, value) pairs in the order of `VALUES`."""

    shape: str
    attributes: tuple[tuple[str, str], ...] = ()

    def fits(self, thing: Mapping[str, str]) -> bool:
        """Whether a thing is of this shape and has all these attributes."""
        return thing["shape"] == self.shape and all(thing[name] == value for name, value in self.attributes)


@dataclass(frozen=True, slots=True)
class Relation:
    """On one side of the one thing that a phrase fits."""

    side: str
    landmark: Phrase


@dataclass(frozen=True, slots=True)
class Rank:
    """The n-th, from 1, from a side among those that the head phrase fits."""

    side: str
    n: int


@dataclass(frozen=True, slots=True)
class Without:
    """A value that the referent does not have."""

    value: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an expression says: a head phrase, and one modifier at most."""

    head: Phrase
    modifier: Relation | Rank | Without | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A descriptor as it is said. name: the attribute, or the kind of modifier.

    spans: its character ranges in the expression, end exclusive ("second … from the left" has two).
    """

    name: str
    kind: Kind
    text: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """An expression that was understood, and its descriptors in reading order."""

    text: str
    meaning: Meaning
    pieces: tuple[Piece, ...]
    noun: tuple[int, int]
    """The character range of the head noun."""

    def keeping(self, kept: Sequence[int]) -> Sentence:
        """The head noun with these descriptors, by their places in `pieces`, and no others."""
        gone = [span for i, piece in enumerate(self.pieces) if i not in kept for span in piece.spans]
        return _sure(substituted(self.text, dict.fromkeys(gone, "")))


def substituted(text: str, words: Mapping[tuple[int, int], str]) -> str:
    """The text with other words in some character ranges, and single spaces."""
    for (start, end), word in sorted(words.items(), reverse=True):
        text = text[:start] + word + text[end:]
    return " ".join(text.split())


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


def _any(words: Sequence[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def _noun(prefix: str) -> str:
    said = "".join(rf"(?:(?P<{prefix}{name}>{_any(values)}) )?" for name, values in VALUES.items())
    return said + rf"(?P<{prefix}shape>{_any(SHAPES)})"


_SIDE = {said: side for side, ways in SIDES.items() for said in ways}
_SENTENCE = re.compile(
    rf"the (?:(?P<most>{_any(list(MOST.values()))}) |(?P<nth>{_any(NTH)}) )?{_noun('')}"
    rf"(?: (?P<tail>(?P<from>from the (?P<edge>{_any(list(EDGE.values()))}))"
    rf"|(?P<side>{_any(list(_SIDE))}) the {_noun('mark_')}"
    rf"|(?P<not>(?:that|which) (?:is not|isn't)) (?P<value>{_any(list(ATTRIBUTE))})))?"
)


@lru_cache(maxsize=4096)
def read(text: str) -> Sentence | None:
    """The sentence, or None for a text that is none of the language."""
    found = _SENTENCE.fullmatch(text)
    if found is None or bool(found["nth"]) != bool(found["from"]) or (found["most"] and found["tail"]):
        return None
    pieces = [Piece(name, "attribute", found[name], (found.span(name),)) for name in VALUES if found[name]]
    modifier: Relation | Rank | Without | None = None
    if found["side"]:
        modifier = Relation(_SIDE[found["side"]], _phrase(found, "mark_"))
        pieces.append(Piece("relation", "relation", found["tail"], (found.span("tail"),)))
    elif found["value"]:
        modifier = Without(found["value"])
        pieces.append(Piece("negation", "negation", found["tail"], (found.span("tail"),)))
    elif found["most"]:
        modifier = Rank(_key(MOST, found["most"]), 1)
        pieces.insert(0, Piece("ordinal", "ordinal", found["most"], (found.span("most"),)))
    elif found["nth"]:
        modifier = Rank(_key(EDGE, found["edge"]), NTH.index(found["nth"]) + 1)
        said = f"{found['nth']} … {found['from']}"
        pieces.insert(0, Piece("ordinal", "ordinal", said, (found.span("nth"), found.span("from"))))
    return Sentence(text, Meaning(_phrase(found, ""), modifier), tuple(pieces), found.span("shape"))


def _sure(text: str) -> Sentence:
    sentence = read(text)
    if sentence is None:
        raise ValueError(f"{text!r} is no sentence about drawn scenes")
    return sentence


def _phrase(found: re.Match[str], prefix: str) -> Phrase:
    said = tuple((name, found[prefix + name]) for name in VALUES if found[prefix + name])
    return Phrase(found[f"{prefix}shape"], said)


def _key(table: Mapping[str, str], value: str) -> str:
    return next(key for key, word in table.items() if word == value)


# ── what it fits ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Scene:
    """The candidates of an image as things with attributes, and their centres as fractions of its sides."""

    things: tuple[Mapping[str, str], ...]
    places: tuple[tuple[float, float], ...]

    def fits(self, meaning: Meaning) -> list[int]:
        """Places among the candidates of all that fit. A landmark that fits several stands for any."""
        head, modifier = self._phrase(meaning.head), meaning.modifier
        if isinstance(modifier, Relation):
            marks = self._phrase(modifier.landmark)
            return [i for i in head if any(m != i and self.ahead(modifier.side, i, m) > 0 for m in marks)]
        if isinstance(modifier, Rank):
            order = sorted(head, key=lambda i: -self.ahead(modifier.side, i, head[0]))
            return order[modifier.n - 1 : modifier.n]
        if isinstance(modifier, Without):
            return [i for i in head if self.things[i][ATTRIBUTE[modifier.value]] != modifier.value]
        return head

    def clear(self, meaning: Meaning) -> bool:
        """Whether nobody would quarrel about it: one landmark, and no two that matter nearly level."""
        head, modifier = self._phrase(meaning.head), meaning.modifier
        if isinstance(modifier, Relation):
            marks = self._phrase(modifier.landmark)
            return len(marks) == 1 and self._apart(modifier.side, marks[0], head)
        if isinstance(modifier, Rank):
            chosen = self.fits(meaning)
            return len(chosen) == 1 and self._apart(modifier.side, chosen[0], head)
        return True

    def ahead(self, side: str, a: int, b: int) -> float:
        """How far a lies towards `side` of b, as a fraction of the image's side."""
        axis, sign = (0 if side in ("left", "right") else 1), (-1.0 if side in ("left", "above") else 1.0)
        return sign * (self.places[a][axis] - self.places[b][axis])

    def _phrase(self, phrase: Phrase) -> list[int]:
        return [i for i, thing in enumerate(self.things) if phrase.fits(thing)]

    def _apart(self, side: str, one: int, others: Sequence[int]) -> bool:
        return all(abs(self.ahead(side, one, other)) >= MARGIN for other in others if other != one)


def scene_of(example: Example) -> Scene | str:
    """The scene, or why the example has none: its candidates must tell shape, colour, size and fill.

    Places are in the frame of the example's own image.
    """
    if not example.candidates:
        return "the data have no candidate boxes for it"
    wanted: dict[str, tuple[str, ...]] = {**VALUES, "shape": SHAPES}
    for candidate in example.candidates:
        if any(candidate.attributes.get(name) not in values for name, values in wanted.items()):
            return "the data don't tell what their candidates look like, as drawn scenes do"
    width, height = example.image.size()
    centers = [candidate.box.center for candidate in example.candidates]
    return Scene(
        tuple({name: str(c.attributes[name]) for name in wanted} for c in example.candidates),
        tuple((x / width, y / height) for x, y in centers),
    )


@dataclass(frozen=True, slots=True)
class Resolved:
    """An example whose expression was understood and fits its target alone. target: among candidates."""

    sentence: Sentence
    scene: Scene
    target: int
    boxes: tuple[Box, ...]


def resolved(example: Example) -> Resolved | str:
    """The example understood, or one clause that says why it can't be."""
    scene = scene_of(example)
    if isinstance(scene, str):
        return scene
    sentence = read(example.expression)
    if sentence is None:
        return "the expression is no sentence that drawn scenes are described with"
    boxes = tuple(candidate.box for candidate in example.candidates)
    fits = scene.fits(sentence.meaning)
    if len(fits) != 1 or boxes[fits[0]] != example.target:
        return f"the expression fits {len(fits)} of the candidates, or another one than the target"
    return Resolved(sentence, scene, fits[0], boxes)
