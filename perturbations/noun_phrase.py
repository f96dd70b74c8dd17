"""Noun phrases: where one ends, which word is its noun, and what stands before the noun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perturbations import lexicon as lx
from perturbations.labels import label_end
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
        if step in {"noun", "owned"}:
            noun = k
        elif step == "owner":
            noun = None
        k += 1
        if words[k - 1].kind == "pron":
            break
    if noun is not None:
        return Phrase(i, first, noun, noun + 1)
    return _without_noun(words, i, first, k, loose)


def _without_noun(words: Sequence[Word], i: int, first: int, k: int, loose: bool) -> Phrase | None:
    while k > first and words[k - 1].kind in {"adv", "comma", "cc"}:
        k -= 1
    rest = words[i + 1 : k]
    told = all(w.kind in {"place", "adv", "ed"} or w.low in lx.COLORS for w in rest)
    if loose and k > i and words[i].kind == "adj" and told and _stands_for_a_thing(words, i):
        return Phrase(i, i, i, i + 1)
    if k > first and words[k - 1].kind in {"adj", "place", "num"}:
        return Phrase(i, first, k - 1, k, nominal=False)
    if (first > i and words[first - 1].kind in {"num", "poss"}) or (
        first > i and words[first - 1].low in _PRONOUNS
    ):
        return Phrase(i, first - 1, first - 1, first)
    return None


def _stands_for_a_thing(words: Sequence[Word], i: int) -> bool:
    """ "remote in left hand", "orange on plate": an adjective at the beginning with no noun after it."""
    if "-" in words[i].low:
        return False
    return words[i].low == "orange" or words[i].low not in lx.COLORS | lx.ORDINALS | lx.COMPARATIVES


_PRONOUNS = frozenset({"that", "this", "these", "those", "both", "all", "any", "some", "another", "each"})


def _step(words: Sequence[Word], k: int, first: int, noun: int | None, loose: bool) -> str:
    """What the word at `k` is to the phrase: "noun", "on" (before the noun), "owner", or "stop"."""
    word, kind = words[k], words[k].kind
    if noun is None:
        return _before_noun(words, k, first)
    if loose and label_end(words, k) > k:
        return "stop"  # "player #12", "batter number 7"
    if loose and kind == "adj" and word.low not in lx.MATERIALS and "-" not in words[noun].low:
        return "stop"  # "bus double decker"
    if loose and k == first + 1 and word.low in lx.BODY and words[noun].low in lx.OWNERS:
        return "owned"  # "guys arm"
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
