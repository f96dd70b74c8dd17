"""What changed between two expressions, word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Literal

from refadv_ablate.types import Json

Kind = Literal["same", "moved", "gone", "new", "told"]
Segment = tuple[Kind, str]
"""Words of one kind, joined by spaces."""


def changes(original: str, perturbed: str) -> tuple[list[Segment], list[Segment]]:
    """Both expressions as segments: gone only in the original, new only in the perturbed one,

    moved in both but at another place.
    """
    before, after = original.split(), perturbed.split()
    lost, gained = Counter(before) - Counter(after), Counter(after) - Counter(before)
    left: list[Segment] = []
    right: list[Segment] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            _extend(left, "same", before[a:b])
            _extend(right, "same", after[c:d])
            continue
        for word in before[a:b]:
            _extend(left, _taken(lost, word, "gone"), [word])
        for word in after[c:d]:
            _extend(right, _taken(gained, word, "new"), [word])
    return left, right


def descriptors(original: str, trace: Mapping[str, Json]) -> list[Segment]:
    """The original with its descriptors ("told") and the deleted one ("gone"), as the trace of a deletion
    places them; empty where the trace has no such places."""
    spans, chosen = trace.get("spans"), trace.get("chosen")
    if not isinstance(spans, list) or not isinstance(chosen, int) or not 0 <= chosen < len(spans):
        return []
    segments: list[Segment] = []
    last = None
    for word in re.finditer(r"\S+", original):
        inside = [i for i, places in enumerate(spans) if any(a <= word.start() < b for a, b in places)]
        owner = chosen if chosen in inside else next(iter(inside), None)
        kind: Kind = "same" if owner is None else "gone" if owner == chosen else "told"
        if segments and owner == last:
            segments[-1] = (kind, f"{segments[-1][1]} {word.group()}")
        else:
            segments.append((kind, word.group()))
        last = owner
    return segments


def _taken(counts: Counter[str], word: str, kind: Kind) -> Kind:
    """That kind as often as the word is in surplus, otherwise it has only moved."""
    if counts[word] > 0:
        counts[word] -= 1
        return kind
    return "moved"


def _extend(segments: list[Segment], kind: Kind, words: list[str]) -> None:
    if not words:
        return
    text = " ".join(words)
    if segments and segments[-1][0] == kind:
        segments[-1] = (kind, f"{segments[-1][1]} {text}")
    else:
        segments.append((kind, text))
