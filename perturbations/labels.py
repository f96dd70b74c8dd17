"""Numbers by which players and the like go: "#12", "no. 7", "number 23"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perturbations.words import Word

_NUMBER = re.compile(r"#?\d+[a-z]?")
_NAMES = frozenset({"no", "no.", "nr", "nr.", "number", "num", "num.", "#"})


def label_end(words: Sequence[Word], k: int) -> int:
    """One past the number that begins at word `k`; `k` where none does."""
    if k >= len(words):
        return k
    if words[k].low.startswith("#") and _NUMBER.fullmatch(words[k].low):
        return k + 1
    if words[k].low not in _NAMES:
        return k
    after = k + 1
    if after < len(words) and words[after].low == ".":
        after += 1
    return after + 1 if after < len(words) and _NUMBER.fullmatch(words[after].low) else k
