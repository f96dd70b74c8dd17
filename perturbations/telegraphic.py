"""Captions as people type them ("giraffe on right looking left"): cut where the class of word changes.

Without articles and commas a parser hangs one phrase on the other almost at random, so here the words
decide: a place, an action or pose, a colour or state, what is worn or had, a number and a relation each
begin a phrase of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from perturbations import lexicon as lx
from perturbations.labels import label_end
from perturbations.words import Word

Core = tuple[str, int, int | None, bool]
"""Kind, end, noun, whole; see `Chunk`."""


@dataclass(frozen=True, slots=True)
class Thing:
    """A noun phrase: its noun, or the colour or place that stands for one, and one past its end."""

    noun: int
    end: int
    nominal: bool = True


def telegraphic(words: Sequence[Word], loose: bool) -> bool:
    """Whether a text is a caption in a hurry: short, and hardly with an article ("on right", "w/ hat")."""
    inside = sum(w.low in {"a", "an", "the"} for w in words[1:])
    if loose:
        return len(words) <= _LONGEST and inside <= 1
    bare = any(a.kind == "prep" and b.kind == "place" for a, b in pairwise(words))
    short = any(w.low != w.text.lower() for w in words)
    return len(words) <= _LONGEST and inside == 0 and (bare or short)


_LONGEST = 14
"""Words of a caption; a longer text is a sentence without its beginning."""


def segment(words: Sequence[Word], k: int, animate: bool) -> Core | None:
    """The phrase that begins at `k`; None where it is a clause or nothing that is known here.

    animate: whether the referent is a person or animal, on whom a "top" is a garment and no place.
    """
    word = words[k]
    if (end := label_end(words, k)) > k:
        return "grade", end, None, True
    if word.kind in {"ing", "ed"} or word.low == "being":
        return None if _attributive(words, k, animate) else _action(words, k, animate)
    if word.kind == "prep":
        return _preposition(words, k, animate)
    if word.low in {"left", "right", "front", "back"} and _low(words, k + 1) in {"of", "to"}:
        return ("noun", k + 1, k, True) if (word.low, _low(words, k + 1)) == ("back", "to") else None
    if word.low in lx.ORDINALS:
        end = k + 1
        while end < len(words) and (words[end].low in _LOCAL_NOUNS or words[end].low in lx.COMPARATIVES):
            end += 1
        return "grade", end, None, True
    if word.low == "upside" and _low(words, k + 1) == "down":
        return "grade", k + 2, None, True
    if (end := place_end(words, k)) > k and not _on_body(words, end):
        return None if _low(words, end) == "of" else ("grade", end, None, True)
    return _had_or_state(words, k, animate)


# ── places ──────────────────────────────────────────────────────────────────────────────────────

_LOCAL_NOUNS = frozenset(
    {"row", "side", "corner", "edge", "half", "end", "part", "section", "line", "column", "level", "area"}
)


def place_end(words: Sequence[Word], k: int) -> int:
    """One past a run of words of place from `k` ("far bottom left corner", "row 2"); `k` if there is none."""
    end = k
    while end < len(words) and (
        (words[end].kind == "place" and (end == k or words[end - 1].low not in _LOCAL_NOUNS - {"side"}))
        or (
            end == k
            and words[end].low in {"far", "way"}
            and end + 1 < len(words)
            and words[end + 1].kind == "place"
        )
        or (
            end > k
            and words[end].low in _LOCAL_NOUNS | {"most", "foreground", "background"}
            and not _half(words, end)
        )
        or (end > k and words[end].kind == "num" and words[end - 1].low in {"row", "column", "line"})
    ):
        end += 1
    if end > k and words[end - 1].low in _DISTANCES and _low(words, end) in {"out", "up", "down"}:
        end += 1  # "boat farthest out"
    return end


def _half(words: Sequence[Word], k: int) -> bool:
    """ "half eaten", "half full": a degree and no place."""
    return words[k].low == "half" and k + 1 < len(words) and words[k + 1].kind in {"ed", "adj"}


def _on_body(words: Sequence[Word], k: int) -> bool:
    """Whether the place tells which limb or garment it is ("left arm up", "front paws crossed")."""
    return k < len(words) and words[k].low in lx.TOOLS | {"arm", "leg", "legs", "ear", "eye", "wing"}


# ── things ──────────────────────────────────────────────────────────────────────────────────────


def thing(words: Sequence[Word], k: int, animate: bool) -> Thing | None:
    """The noun phrase at `k`, ended by the first word of another class ("blue jeans left")."""
    j = k
    while j < len(words) and words[j].kind in {"det", "poss", "num"}:
        j += 1
    if j > k and words[j - 1].low in {"his", "her"} and j == len(words):
        return Thing(j - 1, j)
    if (label := label_end(words, j)) > j:
        return Thing(label - 1, label)
    place = place_end(words, j)
    if place > j and not _garment(words, place - 1, animate and j > k):
        if _on_body(words, place) or _located_thing(words, place):
            return _nouns(words, place, animate)
        return Thing(place - 1, place, nominal=False)
    first = j
    while j < len(words) and _qualifies(words, j, animate):
        j += 1
    if j < len(words) and words[j].kind in {"noun", "pron"}:
        return _nouns(words, j, animate)
    if j < len(words) and j > first and _garment(words, j, animate):
        return Thing(j, j + 1)
    shade = first
    while shade < j and words[shade].low in lx.SHADES:
        shade += 1
    if shade < len(words) and words[shade].low in lx.COLORS | lx.TEXTURES | {"uniform"}:
        return Thing(shade, shade + 1, nominal=False)
    return Thing(j - 1, j) if j > k and words[j - 1].kind == "num" else None


_WORN = lx.WORN | lx.BODY


def _located_thing(words: Sequence[Word], k: int) -> bool:
    """Whether a noun follows a place that belongs to it ("on left couch"), as most parses have it."""
    if k >= len(words) or words[k].kind != "noun" or words[k].low in _WORN or label_end(words, k) > k:
        return False
    hung = sum(g == k for g in words[k - 1].governors)
    return 2 * hung > len(words[k - 1].governors) and all(t.startswith("N") for t in words[k].tags)


def _qualifies(words: Sequence[Word], k: int, animate: bool) -> bool:
    """Whether the word can stand before a noun that follows without another class between."""
    after = k + 1
    while after < len(words) and words[after].kind in {"adj", "adv", "ed"}:
        after += 1
    if after >= len(words):
        return False
    follows = words[after].kind == "noun" or _garment(words, after, animate)
    if words[k].kind in {"ing", "ed"}:
        return words[k].low not in _VERBS and follows
    return words[k].kind in {"adj", "adv"} and follows and label_end(words, k) == k


_VERBS = lx.PERSON_VERBS | lx.TRANSITIVE | (lx.ALONE_VERBS - {"folded", "bent", "raised"}) | lx.DIRECTED


def _garment(words: Sequence[Word], k: int, animate: bool) -> bool:
    """ "black top" of a person, unless a place goes on ("black top left")."""
    alone = k + 1 >= len(words) or (words[k + 1].kind != "place" and words[k + 1].low not in _LOCAL_NOUNS)
    return animate and k < len(words) and words[k].low == "top" and alone


def _nouns(words: Sequence[Word], k: int, animate: bool) -> Thing:
    """A noun with the nouns that it forms a compound with ("tennis shoes", "tank top")."""
    end = k + 1
    while end < len(words) and words[k].kind != "pron" and label_end(words, end) == end:
        word, before = words[end], words[end - 1]
        owner = word.kind == "poss" or before.kind == "poss"
        both = before.low in lx.WORN and word.low in _WORN and (before.low, word.low) not in _DRESS
        compound = word.kind == "noun" and not both
        compound = compound and before.low not in lx.ANIMATES | lx.PLACE_NOUNS
        tank = word.low == "top" and before.low in _TOPS
        limb = word.low in lx.BODY and end + 1 < len(words) and before.low not in lx.BODY
        if limb and (words[end + 1].low in lx.POSED or words[end + 1].kind in {"ed", "fin"}):
            break  # "in water wings spread"
        if not (owner or compound or tank):
            break
        end += 1
    return Thing(end - 1, end)


_DRESS = frozenset({("dress", "shoes"), ("dress", "shirt"), ("dress", "pants"), ("suit", "jacket")})
_TOPS = frozenset({"tank", "crop", "tube", "halter", "pajama", "bikini", "box", "mountain", "table", "roof"})


# ── phrases ─────────────────────────────────────────────────────────────────────────────────────


def _preposition(words: Sequence[Word], k: int, animate: bool) -> Core | None:
    end = k + 1
    while end < len(words) and words[end].kind == "prep" and words[end].low != "of":
        end += 1
    if words[k].low == "out" and _low(words, k + 1) == "of":
        end = k + 2
    if end < len(words) and words[end].kind not in {"rel", "ing", "neg"}:
        found = thing(words, end, animate)
        if found is not None:
            if words[k].low in {"with", "without"}:
                return "prep", _posed(words, found), found.noun, True
            return "prep", found.end, found.noun, True
    return None


def _posed(words: Sequence[Word], found: Thing) -> int:
    """The end of a noun with how it is held ("arms crossed", "lid up", "hair down")."""
    end = found.end
    if not found.nominal or end >= len(words):
        return end
    held = words[end].low in lx.POSED and not (
        words[end].kind == "ing" and end + 1 < len(words) and words[end + 1].kind not in {"place", "prep"}
    )
    body = (
        words[found.noun].low in lx.BODY
        and words[end].kind in {"ed", "fin"}
        and words[end].low not in {"held", "seated"}
    )
    far = words[end].low == "held" and _low(words, end + 1) in {"up", "closer", "together", "out", "high"}
    end += held or body or far
    while far and _low(words, end) in {"up", "closer", "together", "out", "high"}:
        end += 1
    return end


def _action(words: Sequence[Word], k: int, animate: bool) -> Core:
    if words[k].low == "being" and k + 1 < len(words) and words[k + 1].kind in {"ed", "ing"}:
        k += 1
    verb, end = words[k], k + 1
    if verb.low in lx.DIRECTED and (place := place_end(words, end)) > end and words[place - 1].low in _WAYS:
        return "verb", end + 1, None, True
    while end < len(words) and (
        (words[end].low in _PARTICLES and not _object_follows(words, end + 1, animate))
        or (
            words[end].kind == "adv"
            and (end + 1 == len(words) or words[end].low in {"away", "together", "sideways"})
        )
    ):
        end += 1
    takes = verb.kind == "ing" and verb.low not in lx.INTRANSITIVE
    if takes and _object_follows(words, end, animate):
        found = thing(words, end, animate)
        if found is not None:
            return "verb", found.end, found.noun, True
    alone = verb.low in lx.ALONE_VERBS | lx.INTRANSITIVE or end > k + 1 or verb.kind == "ed"
    return "verb", end, None, alone and verb.low not in _PUT


_PUT = frozenset({"positioned", "located", "placed", "situated", "set"})
"""Verbs that say nothing without a place."""
_WAYS = frozenset({"left", "right", "center", "front", "back"})
_PARTICLES = frozenset(
    {"down", "up", "off", "out", "away", "over", "back", "forward", "together", "apart", "around"}
)


def _object_follows(words: Sequence[Word], k: int, animate: bool) -> bool:
    """Whether what begins at `k` is a noun phrase with a noun."""
    if k >= len(words) or words[k].kind == "place" or label_end(words, k) > k:
        return False
    found = thing(words, k, animate)
    return found is not None and (found.nominal or words[k - 1].low == "wearing")


def _attributive(words: Sequence[Word], k: int, animate: bool) -> bool:
    """Whether a participle stands before a noun ("faded jeans")."""
    return words[k].kind == "ed" and _qualifies(words, k, animate)


def _had_or_state(words: Sequence[Word], k: int, animate: bool) -> Core | None:
    found = thing(words, k, animate)
    if found is not None and found.nominal and words[found.noun].kind != "num":
        return "noun", _posed(words, found), found.noun, True
    if words[k].kind in {"adj", "adv", "part", "place"}:
        end = k + 1
        if words[k].low in _DISTANCES and end < len(words) and words[end].kind in {"place", "adv", "part"}:
            end += 1
        shades = lx.SHADES | lx.DEGREES
        while end < len(words) and words[end].low in lx.COLORS and words[end - 1].low in shades:
            end += 1
        return "grade", end, None, True
    return None


_DISTANCES = frozenset({"farther", "further", "farthest", "furthest"})


def _low(words: Sequence[Word], k: int) -> str:
    return words[k].low if 0 <= k < len(words) else ""
