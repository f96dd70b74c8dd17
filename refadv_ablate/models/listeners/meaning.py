"""Hearing: an expression in the language of shapes, read from left to right, and what it picks.

The reader never refuses: an adjective belongs to the next noun, the first noun is the head, the next
one the landmark of the relation that was said, "not" negates the adjective after it. Text that is no
sentence of the language is thus understood as well as its order allows, and no better.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from refadv_ablate.data.shapes.scene import COLOURS, FILLS, SHAPES, SIZES
from refadv_ablate.models.listeners.shapes_seen import Sighting

ADJECTIVES = {
    **dict.fromkeys(SIZES, "size"),
    **dict.fromkeys(FILLS, "fill"),
    **dict.fromkeys(COLOURS, "colour"),
}
NOUNS = {**{shape: shape for shape in SHAPES}, **{f"{shape}s": shape for shape in SHAPES}}
RELATIONS = {
    "left": "left",
    "right": "right",
    "above": "above",
    "higher": "above",
    "below": "below",
    "lower": "below",
}
MOST = {"leftmost": "left", "rightmost": "right", "topmost": "above", "bottommost": "below"}
EDGES = {"left": "left", "right": "right", "top": "above", "bottom": "below"}
NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4}
NOT = {"not", "isn't", "isnt", "no", "without"}

DEAFNESS = ("colour", "size", "fill", "side", "relation", "ordinal", "negation")
"""Kinds of words that a listener may not hear."""

Attributes = tuple[tuple[str, str], ...]


@dataclass
class Heard:
    """What was understood. Attributes are (name, value) pairs."""

    noun: str | None = None
    has: list[tuple[str, str]] = field(default_factory=list)
    lacks: list[tuple[str, str]] = field(default_factory=list)
    side: str | None = None
    landmark: str | None = None
    landmark_has: list[tuple[str, str]] = field(default_factory=list)
    nth: int | None = None
    edge: str | None = None
    by_height: bool = False
    """Of several that fit the topmost is meant, not the first in reading order, which a mirror changes."""


def words_of(text: str) -> list[str]:
    """Lower-case words; an apostrophe or hyphen inside a word belongs to it."""
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower().replace("’", "'"))


def listen(text: str) -> Heard:
    """Reads from left to right; total: any text gives some understanding."""
    heard, negated = Heard(), False
    pending: list[tuple[str, str]] = []
    words = words_of(text)
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        before_that = words[at - 2] if at > 1 else ""
        if word in ADJECTIVES:
            (heard.lacks if negated else pending).append((ADJECTIVES[word], word))
            negated = False
        elif word in NOUNS:
            _noun(heard, NOUNS[word], pending)
            pending = []
        elif word in MOST:
            heard.edge, heard.nth = MOST[word], 1
        elif word in NTH:
            heard.nth = NTH[word]
        elif word in EDGES and (before_that, before) == ("from", "the"):
            heard.edge = EDGES[word]
        elif word in RELATIONS:
            heard.side = RELATIONS[word]
        negated = word in NOT or (negated and word not in ADJECTIVES and word not in NOUNS)
    (heard.landmark_has if heard.landmark else heard.has).extend(pending)
    return heard


def deafened(heard: Heard, kinds: Sequence[str]) -> Heard:
    """What is left of it for someone who doesn't hear these kinds of words. Changes and returns `heard`."""
    for pairs in (heard.has, heard.lacks, heard.landmark_has):
        pairs[:] = [pair for pair in pairs if pair[0] not in kinds]
    if "negation" in kinds:
        heard.lacks = []
    across = ("left", "right") if "side" in kinds else ()
    if "relation" in kinds or heard.side in across:
        heard.side = None
    if "ordinal" in kinds or heard.edge in across:
        heard.edge = None
    heard.by_height = "side" in kinds
    return heard


def _noun(heard: Heard, noun: str, pending: list[tuple[str, str]]) -> None:
    if heard.noun is None:
        heard.noun, heard.has = noun, [*heard.has, *pending]
    else:
        heard.landmark, heard.landmark_has = noun, pending


def _is(name: str, value: str, wanted: bool = True) -> Callable[[Sighting], bool]:
    return lambda s: (getattr(s, name) == value) is wanted


def _beyond(side: str, mark: Sighting) -> Callable[[Sighting], bool]:
    return lambda s: s is not mark and ahead(side, s, mark) > 0


def resolve(heard: Heard, seen: Sequence[Sighting], strict: bool = False) -> Sighting | None:
    """The object meant: of those that fit the first in reading order; None only where nothing is seen, or
    where nothing fits and `strict` keeps every constraint."""
    left = fitting(heard, seen, strict)
    return left[0] if left else None


def fitting(heard: Heard, seen: Sequence[Sighting], strict: bool = False) -> list[Sighting]:
    """The objects that may be meant: constraints are applied one after another, one that leaves nothing is
    dropped. strict: no constraint is dropped, so that an empty list says that nothing matches. Of a rank
    one object remains."""
    left = list(seen)
    for test in _constraints(heard, seen, strict):
        left = _keep(left, test, strict)
    if heard.edge is not None and left:
        order = sorted(left, key=lambda s: -towards(heard.edge or "", s))
        nth = heard.nth or 1
        left = order[(nth if strict else min(nth, len(order))) - 1 :][:1]
    elif heard.by_height:
        left.sort(key=lambda s: s.center[1])
    return left


def _constraints(
    heard: Heard, seen: Sequence[Sighting], strict: bool
) -> Iterator[Callable[[Sighting], bool]]:
    if heard.noun is not None:
        yield lambda s: s.shape == heard.noun
    for name, value in heard.has:
        yield _is(name, value)
    for name, value in heard.lacks:
        yield _is(name, value, wanted=False)
    if heard.side is not None and heard.landmark is not None:
        marks = [s for s in seen if s.shape == heard.landmark]
        for name, value in heard.landmark_has:
            marks = _keep(marks, _is(name, value), strict)
        if marks:
            yield _beyond(heard.side, marks[0])
        elif strict:
            yield lambda s: False


def bag_resolve(text: str, seen: Sequence[Sighting]) -> Sighting | None:
    """The object that most of the words fit, whatever their order; the first of several."""
    bag = {NOUNS.get(word, word) for word in words_of(text)}
    best = max((_fit(s, bag) for s in seen), default=0)
    return next((s for s in seen if _fit(s, bag) == best), None)


def _fit(sighting: Sighting, bag: set[str]) -> int:
    # a noun weighs as much as all adjectives: "the red circle" never means a red square
    adjectives = sum(word in bag for word in (sighting.size, sighting.fill, sighting.colour))
    return 4 * (sighting.shape in bag) + adjectives


def towards(side: str, sighting: Sighting) -> float:
    """How far an object lies towards a side, as a fraction of the picture."""
    x, y = sighting.center
    return {"left": -x, "right": x, "above": -y, "below": y}[side]


def ahead(side: str, a: Sighting, b: Sighting) -> float:
    """How far a lies towards a side of b."""
    return towards(side, a) - towards(side, b)


def _keep(items: list[Sighting], test: Callable[[Sighting], bool], strict: bool) -> list[Sighting]:
    found = [item for item in items if test(item)]
    return found or ([] if strict else items)
