"""Negation and what it governs: both go together or both stay."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from perturbations.grammar import ARTICLES, PREPOSITIONS
from perturbations.scopes import is_cue, scopes, tokens


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
    if lone := next((cue for cue in before if cue in kept and _alone(old, kept, cue)), None):
        return f"{' '.join(old[lone : lone + 2])!r} has lost what it is set against"
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


def _alone(old: Sequence[str], kept: frozenset[int], cue: int) -> bool:
    """Whether a contrast lost what it was set against ("in a dress, not a red top" without "in a dress"):
    then it seems to say what the referent itself is not. A lone word can stand ("not green")."""
    follows = old[cue + 1] if cue + 1 < len(old) else ""
    before = cue - 1
    while before >= 0 and old[before] in {",", ";", "but"}:
        before -= 1
    if old[cue] != "not" or before < 0 or before == cue - 1:
        return False
    lone = cue + 2 >= len(old) or old[cue + 2] in {",", ";"}
    bare = (
        not lone and follows not in PREPOSITIONS | {"the", "one", "ones", ""} and not follows.endswith("ing")
    )
    return bare and before not in kept and old[before] not in ARTICLES
