"""Noun phrases: where one ends, which word is its noun, and what stands before the noun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perturbations import lexicon as lx
from perturbations.words import Word

_BEFORE = frozenset({"adj", "place", "ing", "ed", "adv", "noun", "num", "poss", "fin"})
"""Kinds of words that can stand before a noun."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words start … end (exclusive); `first` is the first after articles and numbers; `noun` the noun.

    nominal: whether there is a noun; without one the last adjective stands for it ("the left").
    """

    start: int
    first: int
    noun: int
    end: int
    nominal: bool = True


def noun_phrase(words: Sequence[Word], i: int, loose: bool = False) -> Phrase | None:
    """The noun phrase that begins at `i`; None where none does.

    loose: captions without articles, in which a garment or place may follow the noun on its own
    ("guy black shirt").
    """
    first = i
    while first < len(words) and words[first].kind in {"det", "poss", "num"}:
        first += 1
    k, noun = first, None
    while k < len(words):
        step = _step(words, k, first, noun, loose)
        if step == "stop":
            break
        if step == "noun":
            noun = k
        elif step == "owner":
            noun = None
        k += 1
        if words[k - 1].kind == "pron":
            break
    if noun is not None:
        return Phrase(i, first, noun, noun + 1)
    return _without_noun(words, i, first, k)


def _without_noun(words: Sequence[Word], i: int, first: int, k: int) -> Phrase | None:
    while k > first and words[k - 1].kind in {"adv", "comma", "cc"}:
        k -= 1
    if k > first and words[k - 1].kind in {"adj", "place", "num"}:
        return Phrase(i, first, k - 1, k, nominal=False)
    if (first > i and words[first - 1].kind in {"num", "poss"}) or (
        first > i and words[first - 1].low in _PRONOUNS
    ):
        return Phrase(i, first - 1, first - 1, first)
    return None


_PRONOUNS = frozenset({"that", "this", "these", "those", "both", "all", "any", "some", "another", "each"})


def _step(words: Sequence[Word], k: int, first: int, noun: int | None, loose: bool) -> str:
    """What the word at `k` is to the phrase: "noun", "on" (before the noun), "owner", or "stop"."""
    word, kind = words[k], words[k].kind
    if noun is None:
        return _before_noun(words, k, first)
    if kind == "poss":
        return "owner"
    if kind == "ing" and word.low in lx.TRANSITIVE | lx.ALONE_VERBS:
        return "stop"  # "man holding hand puppets", "batter in red helmet swinging"
    if kind == "ing" and word.tag.startswith("N") and words[noun].low not in lx.ANIMATES:
        return "noun"  # "a soft head covering"
    if kind == "place" and k + 1 < len(words) and words[k + 1].low in {"left", "right"}:
        return "stop"  # "bowl with carrots bottom left"
    after_person = loose and words[noun].low in lx.ANIMATES
    if kind == "noun" or (kind == "num" and k + 1 == len(words)):
        return "stop" if after_person and word.low in lx.WORN | lx.BODY | lx.PLACE_NOUNS else "noun"
    if (
        kind == "place"
        and word.low in _PLACES
        and not loose
        and words[k - 1].kind in {"noun", "adj", "place", "ed"}
    ):
        return "noun"  # "on the left hand side", "a dark sleeve top"
    garment = (
        word.low == "top" and loose and words[noun].low not in lx.ANIMATES and words[k - 1].kind == "noun"
    )
    if garment and not (k + 1 < len(words) and words[k + 1].kind == "place"):
        return "noun"
    if kind in _BEFORE and nominal_follows(words, k):
        if loose and (after_person or kind == "place"):
            return "stop"
        return "on" if _leans_right(words, k) else "stop"
    return "stop"


_PLACES = frozenset(
    {"side", "corner", "top", "center", "centre", "front", "foreground", "background", "middle", "bottom"}
)


def _before_noun(words: Sequence[Word], k: int, first: int) -> str:
    word, kind = words[k], words[k].kind
    if word.low in {"adult", "human", "male", "female"} and _named_later(words, k):
        return "on"  # "adult formal party dress"
    if kind in {"noun", "pron"}:
        return "noun"
    if kind == "adj" and word.low in _FARTHER and k > first and words[k - 1].low == "top":
        return "stop"  # "in black top farther back"
    if kind == "poss":
        return "owner"
    if kind in {"adj", "num"}:
        return "on"
    follows = nominal_follows(words, k)
    if kind == "place":
        return "on"
    if kind in {"adv", "ing", "ed", "fin"}:
        after = words[k + 1] if k + 1 < len(words) else None
        graded = kind == "adv" and after is not None and after.kind in {"adj", "place", "adv", "ed"}
        behind = kind == "adv" and after is not None and after.low in {"behind", "out"} and k > 0
        if behind and _bare_noun_follows(words, k + 1):
            return "on"
        return "on" if follows or graded else "stop"
    if kind in {"comma", "cc"} and k > first and word.low not in {"but", "nor"}:
        ready = words[k - 1].kind in {"adj", "place", "ed", "ing", "noun"}
        return (
            "on"
            if ready and follows and words[k + 1].kind in {"adj", "place", "ed", "ing", "adv"}
            else "stop"
        )
    if kind == "prep" and k and _bare_noun_follows(words, k if word.low == "out" else k - 1):
        return "on"  # "out of focus flower"
    if kind == "prep" and follows and k > first - 1 and words[k + 1].kind in {"noun", "adj", "place"}:
        graded = (
            k > 0 and words[k - 1].kind in {"det", "adv"} and word.low not in {"of", "in", "on", "to", "with"}
        )
        return "on" if graded else "stop"
    if kind == "prep" and word.low in {"inside", "outside"} and k > 0 and words[k - 1].kind in {"det", "adj"}:
        return "noun"  # "with a red inside"
    return "stop"


_FARTHER = frozenset({"farther", "further", "closer", "nearer", "farthest", "furthest", "closest"})


def _named_later(words: Sequence[Word], k: int) -> bool:
    """Whether adjectives and then a noun follow without a break."""
    after = words[k + 1 : k + 4]
    return bool(after) and after[0].kind == "adj" and any(w.kind == "noun" for w in after[1:])


def _bare_noun_follows(words: Sequence[Word], k: int) -> bool:
    """ "slightly behind pedestrian", "out of focus flower": no article between."""
    run = words[k + 1 : k + 5]
    stop = next((i for i, w in enumerate(run) if w.kind not in _BEFORE and w.low not in {"of"}), len(run))
    named = sum(w.kind == "noun" for w in run[:stop])
    return (words[k].low == "behind" and named > 0) or (
        words[k].low == "out" and bool(run) and run[0].low == "of" and named > 1
    )


def nominal_follows(words: Sequence[Word], k: int) -> bool:
    """Whether a noun ends the run of words after `k` that can stand before one."""
    for word in words[k + 1 :]:
        if word.kind in {"noun", "place"}:
            return True
        joined = word.kind in {"comma", "cc"} and words[k].kind in {
            "adj",
            "ed",
            "ing",
            "comma",
            "cc",
            "adv",
            "place",
        }
        if word.kind not in _BEFORE and not joined:
            return False
    return False


def _leans_right(words: Sequence[Word], k: int) -> bool:
    """Whether most parses hang the word on a noun after it, with nothing but modifiers between."""
    end = k + 1
    while end < len(words) and words[end].kind in _BEFORE:
        end += 1
    rights = sum(k < g < end for g in words[k].governors)
    return 2 * rights > len(words[k].governors)


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
    if words[k - 1].low == "of":
        return True  # "out of focus"
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
    if any(w.low.startswith(("non-", "un")) and w.low.startswith("non-") for w in words[start:end]):
        return "negated"
    if last.low in lx.PLACE_ADJECTIVES:
        return "location"
    graded = last.low.endswith(("er", "est")) and last.tag in {"JJR", "JJS", "RBR", "RBS"}
    return "comparison" if graded or words[start].low in {"more", "most", "less", "least"} else "attribute"
