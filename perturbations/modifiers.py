"""The attributes before a noun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perturbations import lexicon as lx
from perturbations.noun_phrase import Phrase
from perturbations.words import Word


@dataclass(frozen=True, slots=True)
class Modifier:
    """An attribute before the noun: words start … end (exclusive)."""

    start: int
    end: int
    kind: str
    doubt: int = 0


def modifiers(words: Sequence[Word], phrase: Phrase) -> list[Modifier]:
    """The attributes before the noun, in order, each with the words that grade it.

    Parts of a compound noun ("car wheel") are none, save place, material and colour.
    """
    found: list[Modifier] = []
    start = k = phrase.first
    if k > phrase.start and words[k - 1].kind == "poss":  # "the man's dog"
        owner = next(j for j in range(phrase.start, k) if words[j].kind == "poss" or j == k - 1)
        found.append(Modifier(owner, k, "possessor"))
    if words[phrase.noun].low in lx.ANIMATES:  # "red shirt guy"
        worn = [j for j in range(phrase.first, phrase.noun) if words[j].low in lx.WORN]
        if (
            worn
            and words[worn[-1]].kind == "noun"
            and not any(w.kind == "poss" for w in words[phrase.first : worn[-1]])
        ):
            found.append(Modifier(phrase.first, worn[-1] + 1, "attribute"))
            start = k = worn[-1] + 1
    while k < phrase.noun:
        word = words[k]
        if word.kind in {"adv", "prep"} and k + 1 < phrase.noun and word.low not in {"behind", "near", "far"}:
            k += 1
            continue
        if word.kind in {"comma", "cc", "num", "det"}:
            start = k = k + 1
            continue
        if word.kind == "poss":
            found = []
            if words[k - 1].kind != "det" or phrase.start < k:
                found.append(Modifier(phrase.first, k + 1, "possessor"))
            start = k = k + 1
            continue
        end = _merged(words, k, phrase.noun)
        if _descriptive(words, k, end):
            found.append(
                Modifier(start, end, _kind_of(words, start, end), _doubt(words, k, end, phrase.noun))
            )
        start = k = end
    return found


def _merged(words: Sequence[Word], k: int, noun: int) -> int:
    """The end of the attribute that begins at `k`: shades with colours, "short sleeve", "light colored"."""
    end = k + 1
    while end < noun:
        last, word = words[end - 1], words[end]
        shade = last.low in lx.SHADES | lx.COLORS and word.low in lx.COLORS | (lx.SHADES & {"neon"})
        two = (
            word.low == "and" and last.low in lx.COLORS and end + 1 < noun and words[end + 1].low in lx.COLORS
        )
        graded = last.low == "solid" and k > 0 and words[k - 1].kind == "adv"
        shade = shade or (graded and word.low in lx.COLORS)  # "mostly solid black"
        rank = last.low in lx.ORDINALS and word.low.endswith("est")
        part = last.kind in {"adj", "place", "ed"} and word.low in lx.PARTS and word.kind == "noun"
        corner = last.low in lx.PLACE_ADJECTIVES and word.low in _SECOND_PLACE and last.low != word.low
        ends = word.low in lx.COMPOUND_ENDS or (last.kind == "place" and word.low == "most")
        if two:
            end += 2
        elif shade or rank or part or corner or ends:
            end += 1
        else:
            break
    return end


_SECOND_PLACE = frozenset({"left", "right", "leftmost", "rightmost", "center", "middle", "corner"})


def _descriptive(words: Sequence[Word], k: int, end: int) -> bool:
    word = words[k]
    if k and words[k - 1].low == "of":
        return True  # "out of focus"
    if " ".join(w.low for w in words[k : k + 2]) in lx.NAMES_OF_THINGS:
        return False
    if end == k + 1 and (word.low in lx.NEVER_ALONE or word.low in lx.DEGREES):
        return False
    compound = word.related(frozenset({"compound"})) and not word.low.endswith(("er", "est", "ed"))
    return (
        (word.kind != "noun" and not (compound and word.kind == "adj" and "-" not in word.low))
        or word.low in lx.ATTRIBUTIVE_NOUNS
        or "-" in word.low
        or end > k + 1
    )


def _doubt(words: Sequence[Word], k: int, end: int, noun: int) -> int:
    """1 where the attribute may belong to a part of a compound noun ("main facade window")."""
    last = words[end - 1]
    inner = sum(end <= g < noun and words[g].kind == "noun" for g in last.governors)
    named = last.tag.startswith("JJ") and any(t.startswith("N") for t in last.tags) and "-" not in last.low
    follows = end < noun and words[end].kind == "noun" and words[end].low not in lx.ATTRIBUTIVE_NOUNS
    return int(
        (2 * inner > len(last.governors) and follows) or (named and last.low not in lx.ATTRIBUTIVE_NOUNS)
    )


def _kind_of(words: Sequence[Word], start: int, end: int) -> str:
    last = words[end - 1]
    if any(w.low in lx.ORDINALS for w in words[start:end]):
        return "ordinal"
    if any(w.low.startswith("non-") for w in words[start:end]):
        return "negated"
    if last.low in lx.PLACE_ADJECTIVES:
        return "location"
    graded = last.low.endswith(("er", "est")) and last.tag in {"JJR", "JJS", "RBR", "RBS"}
    return "comparison" if graded or words[start].low in {"more", "most", "less", "least"} else "attribute"
