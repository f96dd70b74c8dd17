"""What follows the noun, cut where each phrase or clause begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perturbations import lexicon as lx
from perturbations.labels import label_end
from perturbations.noun_phrase import noun_phrase
from perturbations.telegraphic import segment
from perturbations.words import Word


@dataclass(frozen=True, slots=True)
class Chunk:
    """Words start … end (exclusive); those up to `key` join or deny it (comma, and, not, slightly).

    kind: prep, verb, relative, finite, grade (adjectives and comparatives), contrast ("not the one"),
    noun (a bare noun phrase) or odd. noun: the last noun that it names, None where there is none.
    whole: whether it says something without what follows.
    """

    start: int
    key: int
    end: int
    kind: str
    noun: int | None = None
    whole: bool = True
    comma: bool = False
    joint: str = ""
    negated: bool = False


def chunks(words: Sequence[Word], i: int, loose: bool = False, animate: bool | None = None) -> list[Chunk]:
    """Every word from `i` on, in chunks.

    animate: of a caption in a hurry, whether what is meant is a person or animal; None for other texts.
    """
    found: list[Chunk] = []
    while i < len(words):
        chunk = _chunk(words, i, loose, animate)
        found.append(chunk)
        i = chunk.end
    return found


def _chunk(words: Sequence[Word], start: int, loose: bool, animate: bool | None) -> Chunk:
    k, comma, joint, negated = start, False, "", False
    while k < len(words) and words[k].kind in {"comma", "cc", "punct"}:
        comma = comma or words[k].kind == "comma"
        joint = words[k].low if words[k].kind == "cc" else joint
        k += 1
    if joint == "nor":
        negated = True
    while k < len(words) - 1 and (words[k].kind == "neg" or (words[k].kind == "adv" and _leads(words, k))):
        negated = negated or words[k].kind == "neg"
        k += 1
    if k >= len(words):
        return Chunk(start, start, len(words), "odd", comma=comma, joint=joint)
    short = None if animate is None else segment(words, k, animate)
    kind, end, noun, whole = short or _core(words, k, negated, loose)
    if short is not None and negated and kind == "noun":
        kind = "contrast"
    denied = negated or (label_end(words, k) == k and _denies(words[k:end]))
    return Chunk(start, k, max(end, k + 1), kind, noun, whole, comma, joint, denied)


def _leads(words: Sequence[Word], k: int) -> bool:
    """Whether an adverb opens what follows it ("mostly obscured", "directly above", "just not")."""
    follows = words[k + 1]
    return follows.kind in {"prep", "ing", "ed", "adj", "adv", "neg", "place", "fin", "aux"}


def _denies(words: Sequence[Word]) -> bool:
    return any(w.kind == "neg" or w.low in {"no", "without", "nothing", "none", "nobody"} for w in words)


Core = tuple[str, int, int | None, bool]
"""Kind, end, noun, whole."""


def _core(words: Sequence[Word], k: int, negated: bool, loose: bool) -> Core:
    word = words[k]
    if word.kind == "rel":
        return _relative(words, k)
    if word.kind in {"aux", "fin"}:
        return _finite(words, k, "finite")
    if word.low in {"left", "right"} and k + 1 < len(words) and words[k + 1].low in {"of", "to"}:
        return "grade", k + 1, None, True
    if word.kind == "prep" or word.low in {"nearest"}:
        return _preposition(words, k)
    if word.kind in {"ing", "ed"} and not (negated and _names(words, k)):
        return _verb(words, k)
    state = word.low in _STATES and k + 1 < len(words) and words[k + 1].kind not in {"noun", "adj", "place"}
    if word.kind in {"adj", "adv", "part", "place"} and (state or not _names(words, k)):
        return "grade", _graded(words, k), None, True
    phrase = noun_phrase(words, k, loose)
    if phrase is None:
        return "odd", k + 1, None, True
    own_clause = phrase.end < len(words) and words[phrase.end].kind in {"aux", "fin"}
    if own_clause and not negated:  # "its color is not silver", "both doors are open"
        _, end, noun, whole = _finite(words, phrase.end, "finite")
        return "clause", end, noun, whole
    return ("contrast" if negated else "noun"), phrase.end, phrase.noun, True


_STATES = frozenset({"visible", "closed", "open", "alone", "upright", "shown"})


def _names(words: Sequence[Word], k: int) -> bool:
    """Whether a noun phrase begins at an adjective or participle ("blue pants", "striped shirt")."""
    phrase = noun_phrase(words, k)
    if phrase is None or not phrase.nominal:
        return False
    inside = words[k + 1 : phrase.noun + 1]
    if words[k].kind in {"ing", "ed"} and not any(g > k for g in words[k].governors):
        return False
    return not any(w.kind in {"det", "poss"} for w in inside)


def _relative(words: Sequence[Word], k: int) -> Core:
    """ "who is …", "that has …", "whose hair is …", "that the child is looking at"."""
    after = k + 1
    if (
        words[k].low == "whose"
        or (after < len(words) and words[after].kind in {"det", "pron", "poss", "num"})
        or (after < len(words) and words[after].kind in {"noun", "adj"} and words[k].low not in {"who"})
    ):
        subject = noun_phrase(words, after)
        after = subject.end if subject else after
        while after < len(words) and words[after].kind == "prep":  # "whose label on the lid is red"
            phrase = noun_phrase(words, after + 1)
            if phrase is None:
                break
            after = phrase.end
    _, end, noun, whole = _finite(words, after, "relative")
    return "relative", end, noun, whole


def _finite(words: Sequence[Word], k: int, kind: str) -> Core:
    """Auxiliaries and negations, then the first predicate."""
    while k < len(words) and (
        words[k].kind in {"aux", "neg"} or (words[k].kind == "adv" and k + 1 < len(words))
    ):
        k += 1
    if k >= len(words):
        return kind, k, None, True
    word = words[k]
    if word.kind in {"fin", "ing", "ed"}:
        _, end, noun, whole = _verb(words, k)
        return kind, end, noun, whole
    if word.kind == "prep":
        _, end, noun, whole = _preposition(words, k)
        return kind, end, noun, whole
    if word.kind in {"adj", "adv", "part", "place"} and not _names(words, k):
        return kind, _graded(words, k), None, True
    phrase = noun_phrase(words, k)
    if phrase is None:
        return kind, k, None, False
    return kind, phrase.end, phrase.noun, True


def _verb(words: Sequence[Word], k: int) -> Core:
    """A participle with its particles and its object."""
    verb, end = words[k], k + 1
    while end < len(words) and (
        (words[end].low in lx.PARTICLES and not _opens_phrase(words, end))
        or (words[end].kind == "adv" and not _leads_on(words, end))
        or (
            words[end].low in {"to", "be", "being", "been"}
            and words[end - 1].kind != "noun"
            and end + 1 < len(words)
            and words[end + 1].kind in {"fin", "aux", "ed"}
        )
    ):
        end += 1
    if verb.low in _SEEMING:
        return "verb", _graded(words, end), None, end < len(words)
    phrase = noun_phrase(words, end) if end < len(words) and _object(words, k, end) else None
    if phrase is not None:
        return "verb", phrase.end, phrase.noun, True
    if (
        end < len(words)
        and words[end].kind in {"ing", "ed"}
        and words[end - 1].low in {"being", "be", "been"}
    ):
        return _verb(words, end)
    return "verb", end, None, verb.low in lx.ALONE_VERBS or end > k + 1 or verb.kind == "ed"


_SEEMING = frozenset({"looks", "appears", "seems", "look", "appear", "seem"})


def _object(words: Sequence[Word], verb: int, k: int) -> bool:
    """Whether what begins at `k` is the object of the verb and no adjective that follows it."""
    if words[k].kind in {"det", "poss", "noun", "pron", "num"}:
        return True
    if words[k].kind in {"adj", "place", "ed", "ing"}:
        return _names(words, k) or words[verb].low in {"wearing", "facing"}
    return words[k].kind == "adv" and noun_phrase(words, k) is not None and not _leads_on(words, k)


def _opens_phrase(words: Sequence[Word], k: int) -> bool:
    return words[k].kind == "prep" and k + 1 < len(words) and noun_phrase(words, k + 1) is not None


def _leads_on(words: Sequence[Word], k: int) -> bool:
    return k + 1 < len(words) and words[k + 1].kind in {"prep", "ing", "ed"} and words[k].low in lx.DEGREES


def _preposition(words: Sequence[Word], k: int) -> Core:
    """Prepositions in a row with the noun phrase after them; a clause after "without" or "which"."""
    end = k + 1
    while end < len(words) and (
        (words[end].kind == "prep" and words[end].low != "of")
        or (words[end].low == "of" and words[end - 1].low in {"out", "inside", "outside", "instead", "off"})
        or words[end].kind in {"neg"}
        or (words[end].kind == "adv" and end + 1 < len(words) and words[end + 1].kind == "prep")
    ):
        end += 1
    if end < len(words) and words[end].kind == "rel":
        return _relative(words, end)
    if words[k].low in {"inside", "outside"} and end < len(words) and words[end].low in lx.COMPARATIVES:
        return "prep", k + 1, None, True  # "with liquid inside farthest from the camera"
    phrase = noun_phrase(words, end) if end < len(words) else None
    if phrase is not None:
        return "prep", phrase.end, phrase.noun, True
    if end < len(words) and words[end].kind in {"ing", "ed"}:
        _, end, noun, whole = _verb(words, end)
        return "prep", end, noun, whole
    alone = words[k].low in {"inside", "outside", "behind", "above", "below", "down", "up", "across", "next"}
    return "prep", end, None, alone or end > k + 1


def _graded(words: Sequence[Word], k: int) -> int:
    """The end of a run of adjectives and adverbs."""
    while k < len(words) and words[k].kind in {"adj", "adv", "part", "place", "num"}:
        k += 1
    return k
