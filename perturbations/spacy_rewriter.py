"""Descriptors from dependency parses: no network, deterministic, the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perturbations.descriptors import describe
from perturbations.grammar import articles, tidy
from perturbations.parsing import FRAMES, PIPELINES, installed, parsed, version
from perturbations.rewriters import Descriptor, Extraction, Job, Rewrite, Unanswered
from refadv_ablate.types import Json

_LONGEST = 2_000
"""Characters; a text beyond is no referring expression, and a parse of it takes minutes."""


@dataclass(frozen=True, slots=True)
class SpacyRewriter:
    """Finds descriptors by what dependency parses agree on and deletes their words.

    pipeline: a spaCy pipeline by name or folder; None takes the small English one that is installed.
    """

    pipeline: str | None = None

    @property
    def batch(self) -> int:
        """Expressions parsed at once."""
        return 256

    def extract(self, expressions: Sequence[str]) -> Sequence[Extraction | Unanswered]:
        """English is assumed; a text that is empty or far too long has no descriptors."""
        faults = [_unfit(text) for text in expressions]
        fit = [text for text, fault in zip(expressions, faults, strict=True) if not fault]
        words = dict(zip(fit, parsed(fit, self.pipeline), strict=True))
        return [
            Extraction("", reason=fault) if fault else _spared(describe(text, words[text]))
            for text, fault in zip(expressions, faults, strict=True)
        ]

    def rewrite(self, jobs: Sequence[Job]) -> Sequence[Rewrite | Unanswered]:
        """The words of the descriptor cut out; white space, commas, a/an and the capital put right."""
        return [Rewrite(cut(job.expression, job.descriptor.cuts)) for job in jobs]

    def identity(self) -> Mapping[str, Json]:
        """The pipeline's name and version, and the frames: others may parse otherwise. Loads nothing."""
        # The two packagings of the default hold the same weights: texts made with either are the same.
        name = self.pipeline or PIPELINES[0]
        weights = version(self.pipeline or installed())
        frames = [" ".join(f) for f in FRAMES]
        return {
            "rewriter": "SpacyRewriter",
            "version": 3,
            "pipeline": name,
            "weights": weights,
            "frames": frames,
        }


def _spared(found: Extraction) -> Extraction:
    """Without a head noun something else must stay: "left" alone has nothing to delete."""
    if not found.head and len(found.descriptors) == 1:
        return Extraction("", reason="no noun that the expression is about")
    if found.descriptors and all(map(_entangled, found.descriptors)):
        return Extraction(found.head, reason="only phrases of which it is in doubt what they tell of")
    return found


def _entangled(descriptor: Descriptor) -> bool:
    """Whether it is doubtful and long enough to be several ("with a trim and a panel without a door")."""
    links = sum(word in _LINKS for word in descriptor.text.lower().split()[1:])
    return descriptor.doubt > 0 and links > 1


_LINKS = frozenset({"and", "with", "without"})


def _unfit(text: str) -> str:
    if not any(c.isalnum() for c in text):
        return "the expression is empty"
    return f"longer than {_LONGEST} characters" if len(text) > _LONGEST else ""


def cut(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without these character ranges, set in order again."""
    out = text
    for start, end in sorted(spans, reverse=True):
        out = _cut_one(out, start, end)
    out = tidy(out)
    if text[:1].isupper() and out[:1].islower() and min(s for s, _ in spans) <= 0:
        out = out[0].upper() + out[1:]
    return out


def _cut_one(text: str, start: int, end: int) -> str:
    before, after = text[:start], text[end:]
    if before[-1:].isspace() or not before:
        after = after.lstrip()
    return articles(before + after, len(before))
