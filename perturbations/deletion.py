"""One descriptor removed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from perturbations.base import Single, refused, result
from perturbations.rewriters import Descriptor, Extraction, Job, Rewrite, Rewriter, Unanswered
from perturbations.spacy_rewriter import SpacyRewriter
from perturbations.verification import CHECKS, Finding, verify
from refadv_ablate.errors import UserError
from refadv_ablate.types import Example, Json, Perturbed


@dataclass(slots=True)
class _Case:
    """An example on its way: which descriptors are left to try, what was tried."""

    example: Example
    rng: random.Random
    extraction: Extraction = field(default_factory=lambda: Extraction(""))
    left: list[Descriptor] = field(default_factory=list)
    attempts: list[dict[str, Json]] = field(default_factory=list)
    done: Perturbed | None = None
    unanswered: str = ""

    def trace(self) -> dict[str, Json]:
        return {
            "head": self.extraction.head,
            "descriptors": [d.text for d in self.extraction.descriptors],
            "kinds": [d.kind for d in self.extraction.descriptors],
            "spans": [[list(s) for s in d.spans] for d in self.extraction.descriptors],
            "doubts": [d.doubt for d in self.extraction.descriptors],
            "votes": [list(d.votes) for d in self.extraction.descriptors],
            "attempts": self.attempts,
        }


@dataclass(frozen=True, slots=True)
class DescriptorDeletion(Single):
    """All descriptors are extracted, one is chosen at random, and the expression is rewritten without
    it (the paper's one-descriptor deletion).

    A model that reads the whole expression should notice: a minimal expression without one of its
    descriptors fits a distractor as well. A descriptor tells one thing of the referent and is listed
    whole; the least doubtful ones are equally likely. A rewrite that fails a check (see
    `verification`) is refused and another descriptor is tried; where none is left the example is not
    perturbable. pipeline: the spaCy pipeline that reads rewrites again; None takes the small one.
    """

    version: ClassVar[int] = 3

    rewriter: Rewriter = field(default_factory=SpacyRewriter)
    pipeline: str | None = None

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The trace keeps head, descriptors, the choice, the rewrite and every attempt."""
        return next(self.perturb_many([(example, rng)]))

    def perturb_many(self, items: Iterable[tuple[Example, random.Random]]) -> Iterator[Perturbed]:
        """Works in batches of the rewriter. Raises UserError at the first example that the rewriter
        never answered, after all examples before it: what was answered is not lost."""
        stream = iter(items)
        while batch := [_Case(example, rng) for example, rng in islice(stream, self.rewriter.batch)]:
            self._extract(batch)
            while open_cases := [c for c in batch if c.done is None and not c.unanswered]:
                self._attempt(open_cases)
            for case in batch:
                if case.done is None:
                    raise UserError(case.unanswered)
                yield case.done

    def _extract(self, batch: list[_Case]) -> None:
        found = self.rewriter.extract([case.example.expression for case in batch])
        for case, extraction in zip(batch, found, strict=True):
            if isinstance(extraction, Unanswered):
                case.unanswered = extraction.sentence
                continue
            case.extraction = extraction
            drawn = case.rng.sample(extraction.descriptors, len(extraction.descriptors))
            case.left = sorted(drawn, key=lambda d: d.doubt)  # stable: random among the least doubtful
            if not case.left:
                reason = extraction.reason or "no descriptor"
                case.done = refused(case.example, reason, case.trace())

    def _attempt(self, cases: list[_Case]) -> None:
        jobs = [Job(c.example.expression, c.extraction, c.left.pop(0)) for c in cases]
        answers = self.rewriter.rewrite(jobs)
        given = [i for i, a in enumerate(answers) if isinstance(a, Rewrite) and not a.fault]
        texts = [a.text for a in answers if isinstance(a, Rewrite) and not a.fault]
        findings = dict(zip(given, verify([jobs[i] for i in given], texts, self.pipeline), strict=True))
        for i, (case, job, answer) in enumerate(zip(cases, jobs, answers, strict=True)):
            if isinstance(answer, Unanswered):
                case.unanswered = answer.sentence
            else:
                finding = findings.get(i) or Finding("rewriter", answer.fault)
                self._settle(case, job, answer.text, finding)

    def _settle(self, case: _Case, job: Job, text: str, finding: Finding) -> None:
        """Keeps the attempt; ends the case where it stood up to all checks or none is left to try."""
        chosen = job.descriptor.text
        attempt = {"descriptor": chosen, "rewrite": text, "check": finding.check, "refused": finding.fault}
        case.attempts.append(attempt)
        if not finding.fault:
            place = case.extraction.descriptors.index(job.descriptor)
            trace = case.trace() | {
                "choice": chosen,
                "chosen": place,
                "kind": job.descriptor.kind,
                "rewrite": text,
            }
            case.done = result(case.example, text, trace | {"passed": list(CHECKS)})
        elif not case.left:
            reason = f"every deletion was refused, the last one for: {finding.fault}"
            case.done = refused(case.example, reason, case.trace())
