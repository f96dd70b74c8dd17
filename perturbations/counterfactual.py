"""One descriptor changed so that another candidate is meant: does the answer follow the words?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from perturbations.base import Parts, refused, result
from perturbations.scenes import (
    ATTRIBUTE,
    EDGE,
    KINDS,
    MOST,
    NTH,
    SIDES,
    VALUES,
    Kind,
    Piece,
    Rank,
    Relation,
    Resolved,
    Sentence,
    read,
    resolved,
    substituted,
)
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Example, Perturbed

OPPOSITE = {"left": "right", "right": "left", "above": "below", "below": "above"}
Words = Mapping[tuple[int, int], str]
"""Character range → what stands there instead."""


@dataclass(frozen=True, slots=True)
class Counterfactual(Parts):
    """The least different expression that means another object of the same category.

    kinds: of descriptors that are changed, each a sub-condition of its own where the expression has one.
    attribute: another size, fill or colour. relation: the other side of the landmark. ordinal: counted from
    the other side, or another rank. negation: another value is excluded. The opposite is taken where it
    means one other candidate clearly; else one of the next best changes, at random.

    Exact on drawn scenes. Elsewhere nobody knows whether the new words mean another candidate: write them,
    with the box of the `target` that they mean, into a file for `perturb=file`.
    """

    does: ClassVar[str] = "when one descriptor is changed so that another object is meant"

    kinds: Sequence[Kind] = KINDS

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise UserError(f"perturb.counterfactual.kinds has no {kind!r}; {nearest(str(kind), KINDS)}.")
        if not self.kinds:
            raise UserError(f"perturb.counterfactual.kinds is empty: name some of {', '.join(KINDS)}.")

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """One for each kind that can be changed; the trace says which descriptor became which."""
        found = resolved(example)
        if isinstance(found, str):
            return [refused(example, found)]
        made = [p for kind in KINDS if kind in self.kinds and (p := _changed(example, found, kind, rng))]
        if made:
            return made
        said = dict.fromkeys(piece.kind for piece in found.sentence.pieces if piece.kind in self.kinds)
        if not said:
            return [refused(example, f"it has no descriptor of the kinds {', '.join(self.kinds)}")]
        return [refused(example, f"no change of its {' or '.join(said)} means one other candidate clearly")]


def _changed(example: Example, found: Resolved, kind: Kind, rng: random.Random) -> Perturbed | None:
    """The best change of this kind that means exactly one other candidate, clearly."""
    ranked: dict[int, list[tuple[Piece, Sentence, int]]] = {}
    for piece in found.sentence.pieces:
        if piece.kind != kind:
            continue
        for tier, words in _changes(piece, found.sentence):
            new = read(substituted(found.sentence.text, words))
            fits = found.scene.fits(new.meaning) if new else []
            if new and len(fits) == 1 and fits[0] != found.target and found.scene.clear(new.meaning):
                ranked.setdefault(tier, []).append((piece, new, fits[0]))
    if not ranked:
        return None
    piece, new, meant = rng.choice(ranked[min(ranked)])
    now = next(p.text for p in new.pieces if p.name == piece.name)
    trace = {"kind": kind, "descriptor": piece.text, "now": now, "meant": meant}
    return result(example, new.text, trace, expectation="directional", part=kind, target=found.boxes[meant])


def _changes(piece: Piece, sentence: Sentence) -> Iterator[tuple[int, Words]]:
    """What could stand for a descriptor, each with its rank: 0 is the opposite, or the like."""
    modifier = sentence.meaning.modifier
    if piece.kind == "attribute":
        yield from ((0, {piece.spans[0]: value}) for value in VALUES[piece.name] if value != piece.text)
    elif isinstance(modifier, Relation):
        yield from _sides(piece, modifier.side)
    elif isinstance(modifier, Rank):
        yield from _ranks(piece, modifier)
    else:
        yield from _exclusions(piece, sentence)


def _sides(piece: Piece, own: str) -> Iterator[tuple[int, Words]]:
    """The landmark stays, and so does the way in which the side is said."""
    said, _, landmark = piece.text.rpartition(" the ")
    way = SIDES[own].index(said)
    for side, ways in SIDES.items():
        if side != own:
            yield int(side != OPPOSITE[own]), {piece.spans[0]: f"{ways[way]} the {landmark}"}


def _ranks(piece: Piece, own: Rank) -> Iterator[tuple[int, Words]]:
    if len(piece.spans) == 1:
        for side, word in MOST.items():
            if side != own.side:
                yield int(side != OPPOSITE[own.side]), {piece.spans[0]: word}
        return
    nth, edge = piece.spans
    for side, word in EDGE.items():
        if side != own.side:
            yield (0 if side == OPPOSITE[own.side] else 2), {edge: f"from the {word}"}
    for n, word in enumerate(NTH, 1):
        if n != own.n:
            yield 1, {nth: word}


def _exclusions(piece: Piece, sentence: Sentence) -> Iterator[tuple[int, Words]]:
    """Another value that the referent is said not to have, of an attribute that isn't told otherwise."""
    start, _, own = piece.text.rpartition(" ")
    told = {name for name, _ in sentence.meaning.head.attributes}
    for value, name in ATTRIBUTE.items():
        if value != own and name not in told:
            yield int(name != ATTRIBUTE[own]), {piece.spans[0]: f"{start} {value}"}
