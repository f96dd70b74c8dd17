"""Negation and what it governs: both go together or both stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from perturbations.grammar import COPULAS, FUNCTION_WORDS, PREPOSITIONS, RELATIVES

CUES = frozenset(
    {
        "not",
        "no",
        "never",
        "without",
        "neither",
        "nor",
        "w/o",
        "nothing",
        "nobody",
        "none",
        "cannot",
        "hardly",
    }
)
"""Words that deny what follows them; words that end in "n't" do too."""
_ALONE = frozenset({"nothing", "nobody", "none"})
"""Cues that deny as a noun of their own ("holding nothing")."""
_TOKEN = re.compile(r"w/o?|[^\W_]+(?:['’\-./][^\W_]+)*|[,;]", re.UNICODE)
_TEMPTING = RELATIVES | {"but"}


@dataclass(frozen=True, slots=True)
class Scope:
    """A negation at token `cue` and the content words that it denies, as indices of tokens."""

    cue: int
    denied: frozenset[int]


def tokens(text: str) -> list[str]:
    """Words and commas of a text, lower case."""
    return [t.casefold() for t in _TOKEN.findall(text)]


def is_cue(token: str) -> bool:
    """Whether a token negates."""
    return token in CUES or token.endswith(("n't", "n’t"))


def scopes(words: Sequence[str]) -> list[Scope]:
    """Each negation with the least that it must govern: up to the end of its own phrase, and on through
    "or" and "nor". A later phrase that it may govern as well isn't counted."""
    return [Scope(i, frozenset(_denied(words, i))) for i, word in enumerate(words) if is_cue(word)]


def _denied(words: Sequence[str], cue: int) -> list[int]:
    if words[cue] in _ALONE:
        return [cue - 1] if cue and words[cue - 1] not in FUNCTION_WORDS else []
    found: list[int] = []
    listing = words[cue] == "neither"
    for i in range(cue + 1, len(words)):
        word = words[i]
        if word in {"or", "nor"}:
            listing = word == "or" and listing
            continue
        joined = words[i - 1] in {"or", "nor"} or listing
        if found and not joined and _ends(words, i, found):
            break
        if word not in FUNCTION_WORDS and word not in {",", ";"} and not is_cue(word):
            found.append(i)
    return found


def _ends(words: Sequence[str], i: int, found: Sequence[int]) -> bool:
    """Whether the phrase of a negation ends before token `i`."""
    word = words[i]
    if word in {",", ";", "and", "&"} or word in _TEMPTING or is_cue(word):
        return True
    if word in PREPOSITIONS or word in COPULAS:
        verb = len(found) == 1 and words[found[0]].endswith(("ing", "ed", "n"))
        return not verb and word != "of"
    return word.endswith("ing") and i - 1 in found and words[i - 1] not in FUNCTION_WORDS


def flip(original: str, rewritten: str) -> str:
    """Why the rewritten text says of something that it is what the original says it isn't, or the
    other way round, or denies more than the original did; "" if it doesn't.

    Where a word stands twice, such as "not", the deletion is given the benefit: it is a fault only where
    every way to cut one piece out leads to one.
    """
    old, new = tokens(original), tokens(rewritten)
    faults = [_parted(old, new, pairs) for pairs in _alignments(old, new)]
    return "" if "" in faults else faults[0]


Pairs = Sequence[tuple[int, int]]
"""Tokens of the original that are still there, each with its place in the rewritten text."""


def _alignments(old: Sequence[str], new: Sequence[str]) -> list[Pairs]:
    """Every cut of one piece that leads from `old` to `new`; where there is none, one best match."""
    gap = len(old) - len(new)
    cuts = [k for k in range(len(new) + 1) if gap > 0 and [*old[:k], *old[k + gap :]] == list(new)]
    if cuts:
        return [[(j if j < k else j + gap, j) for j in range(len(new))] for k in cuts]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [[(b.a + k, b.b + k) for b in blocks for k in range(b.size)]]


def _parted(old: Sequence[str], new: Sequence[str], pairs: Pairs) -> str:
    """Whether a negation and what it denies part ways, or one denies what it did not."""
    kept = frozenset(i for i, _ in pairs)
    before = {s.cue: s.denied for s in scopes(old)}
    for cue, denied in before.items():
        left, lost = denied & kept, denied - kept
        if cue not in kept and left:
            return f"{old[cue]!r} is gone and {old[min(left)]!r}, which it denied, is still there"
        if cue in kept and lost:
            return f"{old[cue]!r} is still there and {old[min(lost)]!r}, which it denied, is gone"
    if sum(map(is_cue, new)) > sum(map(is_cue, old)):
        return "it adds a negation"
    place = {j: i for i, j in pairs}
    for scope in scopes(new):
        now = frozenset(place[j] for j in scope.denied if j in place)
        more = now - before.get(place.get(scope.cue, -1), now)
        if more:
            return f"{new[scope.cue]!r} now denies {old[min(more)]!r}"
    return ""
