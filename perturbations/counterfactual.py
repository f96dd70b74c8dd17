"""One descriptor changed so that another candidate is meant: does the answer follow the words?"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from perturbations.base import Parts, refused, result
from perturbations.rewriters import Changer, Job, Rewrite, Rewriter, Unanswered
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
from perturbations.spacy_rewriter import SpacyRewriter
from perturbations.verification import Finding, verify_change
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Example, Json, Perturbed

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

    Exact on drawn scenes. Elsewhere rewriter=openai has an LLM change one of the descriptors, at random
    among the least doubtful, and every change is verified (`verification.verify_change`). Which object the
    new words mean isn't known then, so only `sticks` is scored; texts with the box of the `target` that they
    mean can be asked with `perturb=file`. pipeline: the spaCy pipeline that reads changed texts again.
    """

    not_identity: ClassVar[frozenset[str]] = frozenset({"rewriter", "pipeline"})

    does: ClassVar[str] = "when one descriptor is changed so that another object is meant"

    kinds: Sequence[Kind] = KINDS
    rewriter: Rewriter = field(default_factory=SpacyRewriter)
    pipeline: str | None = None

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise UserError(f"perturb.counterfactual.kinds has no {kind!r}; {nearest(str(kind), KINDS)}.")
        if not self.kinds:
            raise UserError(f"perturb.counterfactual.kinds is empty: name some of {', '.join(KINDS)}.")

    def identity(self) -> Mapping[str, Json]:
        """As for every operator; the rewriter counts where it changes texts."""
        own = Parts.identity(self)
        if not isinstance(self.rewriter, Changer):
            return own
        changer = {**self.rewriter.identity(), **self.rewriter.change_identity()}
        return {**own, "rewriter": changer, "pipeline": self.pipeline}

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """As `perturb_parts`, for one example."""
        return next(self.perturb_parts([(example, rng)]))

    def perturb_parts(
        self, items: Iterable[tuple[Example, random.Random]]
    ) -> Iterator[tuple[Perturbed, ...]]:
        """One for each kind that can be changed; the trace says which descriptor became which.

        Raises UserError at the first example that the rewriter never answered.
        """
        stream = iter(items)
        while batch := list(islice(stream, self.rewriter.batch)):
            drawn = [resolved(example) for example, _ in batch]
            rest = [pair for pair, found in zip(batch, drawn, strict=True) if isinstance(found, str)]
            told = iter(self._by_rewriter(rest) if rest and isinstance(self.rewriter, Changer) else ())
            for (example, rng), found in zip(batch, drawn, strict=True):
                if isinstance(found, Resolved):
                    yield tuple(self._exact(example, found, rng))
                elif isinstance(self.rewriter, Changer):
                    yield (_answered(next(told)),)
                else:
                    yield (refused(example, f"{found}; elsewhere rewriter=openai changes the words"),)

    def _by_rewriter(self, items: Sequence[tuple[Example, random.Random]]) -> list[Perturbed | Unanswered]:
        """One change each, by the LLM."""
        assert isinstance(self.rewriter, Changer)
        made: dict[int, Perturbed | Unanswered] = {}
        jobs: dict[int, Job] = {}
        read = self.rewriter.extract([example.expression for example, _ in items])
        for i, ((example, rng), found) in enumerate(zip(items, read, strict=True)):
            if isinstance(found, Unanswered):
                made[i] = found
            elif not found.descriptors:
                made[i] = refused(example, found.reason or "no descriptor")
            else:
                least = min(d.doubt for d in found.descriptors)
                chosen = rng.choice([d for d in found.descriptors if d.doubt == least])
                jobs[i] = Job(example.expression, found, chosen)
        changed = self.rewriter.change(list(jobs.values()))
        texts = [answer.text if isinstance(answer, Rewrite) else "" for answer in changed]
        findings = verify_change(list(jobs.values()), texts, self.pipeline)
        for (i, job), answer, finding in zip(jobs.items(), changed, findings, strict=True):
            made[i] = answer if isinstance(answer, Unanswered) else _by_llm(items[i][0], job, answer, finding)
        return [made[i] for i in range(len(items))]

    def _exact(self, example: Example, found: Resolved, rng: random.Random) -> Sequence[Perturbed]:
        made = [p for kind in KINDS if kind in self.kinds and (p := _changed(example, found, kind, rng))]
        if made:
            return made
        said = dict.fromkeys(piece.kind for piece in found.sentence.pieces if piece.kind in self.kinds)
        if not said:
            return [refused(example, f"it has no descriptor of the kinds {', '.join(self.kinds)}")]
        return [refused(example, f"no change of its {' or '.join(said)} means one other candidate clearly")]


def _answered(found: Perturbed | Unanswered) -> Perturbed:
    if isinstance(found, Unanswered):
        raise UserError(found.sentence)
    return found


def _by_llm(example: Example, job: Job, answer: Rewrite, finding: Finding) -> Perturbed:
    """The changed text, whose new object nobody knows; or the reason why it can't be asked."""
    trace = {"kind": job.descriptor.kind, "descriptor": job.descriptor.text, "changed": answer.text}
    if fault := answer.fault or finding.fault:
        return refused(example, f"the changed text was refused: {fault}", trace)
    return result(example, answer.text, trace, expectation="directional", part="rewritten")


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
