"""How sure an answer is: from the probabilities of the tokens that hold the box that was read.

The box is found again in the text by its numbers, so that it is the one that the reader chose, whichever
form it is written in; a change of reader needs no new answers. Brackets, keys and labels are format and
don't count. Definitions: docs/engines.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from refadv_ablate.boxes import Box, Quad
from refadv_ablate.parsing.brackets import NUMBER
from refadv_ablate.parsing.final_answer import TRACE
from refadv_ablate.parsing.keys import to_corners
from refadv_ablate.types import Confidence, Reading, Reply, TokenLogprobs

NOT_GIVEN = "not_given"
"""Note: the engine gave no log-probabilities for this answer."""
NOT_LOCATED = "box_not_located"
"""Note: the numbers of the box don't stand in the text as they were read, such as a sum of two."""
Span = tuple[int, int]
_NUMBERS = re.compile(rf"(?:(?<=<loc)|(?<![\w.])){NUMBER}(?!\w)")
_FORMS = ("xyxy", "yxyx", "xywh", "cxcywh")
_SPECIAL = re.compile(r"<\|[^|<>]{0,40}\|>")


def confidence(
    reply: Reply, reading: Reading, marks: Sequence[Quad] = (), first: bool = False
) -> Confidence | str | None:
    """Of the answer in this reply, the engine's own where it has one. None: it wasn't asked for, or there is

    no answer that could be sure; a text: why it can't be told. marks: the boxes of the marks where the
    answer names one. first: of equal boxes in the text the first counts.
    """
    box, none = isinstance(reading.answer, Box), getattr(reading.answer, "kind", "") == "none"
    if not (box or none):
        return None
    if reply.confidence is not None:
        return reply.confidence if box else None
    given = reply.logprobs
    if given is None:
        return None
    if not given.values:
        return NOT_GIVEN
    spans = _box(reply.text, reading, marks, first) if box else _words(reply.text)
    values = list(_within(given, spans))
    return _of(values) if values else NOT_LOCATED


def rounded(p: float) -> float:
    """Three significant digits of p or of 1 − p, whichever is smaller, so that 0.9996 is no 1."""
    small = min(p, 1 - p)
    if small <= 0:
        return min(1.0, max(0.0, p))
    places = min(9, 2 - math.floor(math.log10(small)))
    return min(1.0, max(0.0, round(p, places)))


def _of(values: Sequence[float]) -> Confidence:
    mean, joint, least = (math.exp(v) for v in (sum(values) / len(values), sum(values), min(values)))
    return Confidence(rounded(mean), rounded(joint), rounded(least), len(values))


def _within(given: TokenLogprobs, spans: Sequence[Span]) -> Iterator[float]:
    """The values of the tokens that have a character in one of the spans, each once.

    Tokens that only begin a character go with the one that ends it.
    """
    ends = list(accumulate(given.chars, initial=given.start))
    held: list[float] = []
    for (start, end), value in zip(pairwise(ends), given.values, strict=True):
        held.append(value)
        if start < end:
            if any(start < stop and begin < end for begin, stop in spans):
                yield from held
            held = []


def _final(text: str) -> int:
    """Where what follows the last thinking trace begins; 0 where nothing does."""
    traces = list(TRACE.finditer(text))
    return traces[-1].end() if traces and text[traces[-1].end() :].strip() else 0


def _box(text: str, reading: Reading, marks: Sequence[Quad], first: bool) -> list[Span]:
    """The four numbers of the box, or the number of its mark."""
    if reading.raw is None:
        return []
    begin = _final(text)
    numbers = [m for m in _NUMBERS.finditer(text, begin) if math.isfinite(float(m[0]))]
    if marks:
        mark = marks.index(reading.raw) + 1 if reading.raw in marks else 0
        found = [[m.span()] for m in numbers if float(m[0]) == mark]
    else:
        runs = (numbers[i : i + 4] for i in range(len(numbers) - 3))
        found = [[m.span() for m in run] for run in runs if _means(run, reading.raw)]
    early = first or "repeated" in reading.notes
    return (found[0] if early else found[-1]) if found else []


def _means(run: Sequence[re.Match[str]], raw: Quad) -> bool:
    """Whether four numbers are this box, in any of the forms and orders in which it may be written."""
    a, b, c, d = (float(m[0]) for m in run)
    corners = sorted(raw)
    return any(
        all(math.isclose(x, y, abs_tol=1e-6) for x, y in zip(sorted(made), corners, strict=True))
        for made in (to_corners((a, b, c, d), form, "xyxy") for form in _FORMS)
    )


def _words(text: str) -> list[Span]:
    """The words of an answer without a box; its signs where it has no words, such as an empty list."""
    begin = _final(text)
    plain = _SPECIAL.sub(lambda m: " " * len(m[0]), text[begin:])
    found = list(re.finditer(r"\w+", plain)) or list(re.finditer(r"\S+", plain))
    return [(begin + m.start(), begin + m.end()) for m in found]
