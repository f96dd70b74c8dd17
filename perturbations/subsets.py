"""The head noun with every subset of the descriptors: which of them the answer needs, and which suffice."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import ClassVar

from perturbations import scenes
from perturbations.base import Parts, refused, result
from perturbations.rewriters import Descriptor, Extraction, Job, Rewriter, Unanswered
from perturbations.spacy_rewriter import SpacyRewriter, cut
from perturbations.verification import verify
from refadv_ablate.errors import UserError
from refadv_ablate.types import Example, Json, Perturbed

Kept = tuple[int, ...]
"""Places of the descriptors that stay, in reading order."""


@dataclass(frozen=True, slots=True)
class Subsets(Parts):
    """One question for each proper subset of the descriptors; the original is the whole set.

    An expression of more than `most` descriptors is asked with none, with each one alone and without each
    one. The trace lists descriptors, their kinds, which were kept and, where it is known, how many
    candidates the rest still fits (`matching`): blind choice among those is the chance level.

    Exact on drawn scenes. Elsewhere descriptors come from the rewriter, every text stands up to the checks
    of a deletion (see `verification`) or is refused, and `matching` is known for the head noun alone.
    pipeline: the spaCy pipeline that reads the texts again; None takes the small one.
    """

    does: ClassVar[str] = "with some of the descriptors only"

    most: int = 4
    rewriter: Rewriter = field(default_factory=SpacyRewriter)
    pipeline: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 6:
            raise UserError(
                f"perturb.subsets.most is {self.most}: 1 to 6 descriptors give 2 to 64 questions."
            )

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """As `perturb_parts`, for one example."""
        return next(self.perturb_parts([(example, rng)]))

    def perturb_parts(
        self, items: Iterable[tuple[Example, random.Random]]
    ) -> Iterator[tuple[Perturbed, ...]]:
        """Works in batches of the rewriter. Raises UserError at the first example that it never answered."""
        stream = iter(items)
        while batch := [example for example, _ in islice(stream, self.rewriter.batch)]:
            drawn = [scenes.resolved(example) for example in batch]
            rest = [example for example, found in zip(batch, drawn, strict=True) if isinstance(found, str)]
            read = iter(self.rewriter.extract([example.expression for example in rest]) if rest else ())
            for example, found in zip(batch, drawn, strict=True):
                if isinstance(found, scenes.Resolved):
                    yield tuple(self._exact(example, found))
                    continue
                extraction = next(read)
                if isinstance(extraction, Unanswered):
                    raise UserError(extraction.sentence)
                yield tuple(self._read(example, extraction))

    def subsets(self, count: int) -> list[Kept]:
        """The proper subsets of so many descriptors that are asked, small ones first."""
        sizes = range(count) if count <= self.most else (0, 1, count - 1)
        return [kept for size in sizes for kept in combinations(range(count), size)]

    def _exact(self, example: Example, found: scenes.Resolved) -> Iterator[Perturbed]:
        pieces = found.sentence.pieces
        if not pieces:
            yield refused(example, "no descriptor beside the head noun")
        names = [piece.text for piece in pieces], [piece.name for piece in pieces]
        for kept in self.subsets(len(pieces)):
            less = found.sentence.keeping(kept)
            trace = _trace(*names, kept, len(found.scene.fits(less.meaning)))
            yield result(example, less.text, trace, part=_part(kept))

    def _read(self, example: Example, extraction: Extraction) -> Iterator[Perturbed]:
        """Descriptors cut out together, and what is left read again."""
        found, text = extraction.descriptors, example.expression
        if not found:
            yield refused(example, extraction.reason or "no descriptor beside the head noun")
            return
        wanted = self.subsets(len(found))
        gone = [[d for i, d in enumerate(found) if i not in kept] for kept in wanted]
        jobs = [Job(text, extraction, _together(each)) for each in gone]
        texts = [cut(text, job.descriptor.cuts) for job in jobs]
        findings = verify(jobs, texts, self.pipeline)
        names = [descriptor.text for descriptor in found], [descriptor.kind for descriptor in found]
        for kept, less, finding in zip(wanted, texts, findings, strict=True):
            known = example.distractors + 1 if example.distractors is not None and not kept else None
            trace, part = _trace(*names, kept, known), _part(kept)
            if finding.fault:
                yield refused(example, f"the shortened text was refused: {finding.fault}", trace, part=part)
            else:
                yield result(example, less, trace, part=part)


def _together(each: Sequence[Descriptor]) -> Descriptor:
    """Several descriptors as one that is deleted."""
    return Descriptor(
        text=" ".join(d.text for d in each),
        spans=tuple(span for d in each for span in d.spans),
        cuts=_merged(span for d in each for span in (d.cuts or d.spans)),
    )


def _merged(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges that overlap or touch as one."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return tuple(out)


def _trace(texts: list[str], kinds: list[str], kept: Kept, matching: int | None) -> dict[str, Json]:
    return {"descriptors": texts, "kinds": kinds, "kept": list(kept), "matching": matching}


def _part(kept: Kept) -> str:
    return f"keep:{','.join(map(str, kept))}" if kept else "head noun"
