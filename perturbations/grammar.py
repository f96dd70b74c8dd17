"""Simple checks that a shortened expression still reads as one, and the repairs it may need.

English, by closed word classes; a fault is reported only where the shortened text has it and the
original had not, so that odd captions are not blamed on the deletion.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _set("a an the")
CONJUNCTIONS = _set("and or but nor")
RELATIVES = _set("who whom whose which that where")
COPULAS = _set("is are was were be been being has have had")
NEGATIONS = _set("not no never n't without neither non")
PREPOSITIONS = _set(
    "of in on at to from with without by near for between among behind beside besides above below under "
    "over across against along around into onto through toward towards beneath beyond inside outside "
    "within off per than as like atop amid via before after until"
)
DEGREES = _set("more most less least very slightly fairly rather")
FUNCTION_WORDS = ARTICLES | CONJUNCTIONS | RELATIVES | COPULAS | PREPOSITIONS

_COUNT = re.compile(r"\d+(?:st|nd|rd|th)?|first|second|third|fourth|fifth|last|half|one|two|three")
_WORD = re.compile(r"[^\W_]+(?:['’\-.][^\W_]+)*", re.UNICODE)
_VOWEL_SOUND = re.compile(r"(?:[aeiou]|hour|honest|heir|[fhlmnrsx](?=[-.]|\b(?!\w)))", re.I)
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n|m|d)|use|usu|uten|ufo|one\b|once|eu|u(?=[-.]))", re.I)

_BAD_PAIRS = (
    (ARTICLES, ARTICLES | CONJUNCTIONS | PREPOSITIONS | RELATIVES | COPULAS | frozenset({"not"})),
    (CONJUNCTIONS, CONJUNCTIONS),
    (PREPOSITIONS, PREPOSITIONS | CONJUNCTIONS | frozenset({"who", "that", "is", "are", "not"})),
    (RELATIVES, RELATIVES | CONJUNCTIONS | PREPOSITIONS),
    (COPULAS, CONJUNCTIONS | RELATIVES | frozenset({"is", "are", "has"})),
    (frozenset({"not", "no", "never"}), CONJUNCTIONS | RELATIVES | frozenset({"not", "is", "are"})),
    (DEGREES, PREPOSITIONS | CONJUNCTIONS | RELATIVES | ARTICLES),
)
_NO_END = FUNCTION_WORDS | NEGATIONS | DEGREES
_NO_START = CONJUNCTIONS | RELATIVES | COPULAS | frozenset({"of", "than", "as"})


def words(text: str) -> list[str]:
    """Lower-case words of a text, hyphenated ones whole."""
    return [w.casefold() for w in _WORD.findall(text)]


def fault(original: str, text: str, head: str = "") -> str:
    """Why `text` can't stand for `original` with a descriptor removed; "" if it can."""
    old, new = words(original), words(text)
    if not new:
        return "nothing is left"
    if text.strip() == original.strip() or new == old:
        return "the text is unchanged"
    if set(new) <= FUNCTION_WORDS | NEGATIONS:
        return "no content word is left"
    if len(new) == 1 and _COUNT.fullmatch(new[0]):
        return "only a number is left"
    if head and not set(words(head)) <= set(new):
        return f"the head noun {head!r} is gone"
    return _word_fault(old, new) or _mark_fault(original, text)


def _word_fault(old: list[str], new: list[str]) -> str:
    if new[-1] in _NO_END and new[-1] != old[-1]:
        return f"{new[-1]!r} is left dangling at the end"
    if new[0] in _NO_START and new[0] != old[0]:
        return f"it starts with {new[0]!r}"
    known = set(pairwise(old))
    for left, right in pairwise(new):
        if (left, right) in known:
            continue
        if left == right:
            return f"{left!r} is doubled"
        if any(left in first and right in second for first, second in _BAD_PAIRS):
            return f"{left!r} is left dangling before {right!r}"
    return ""


def _mark_fault(original: str, text: str) -> str:
    if re.search(r"[,;:]\s*[,;:.]|^\s*[,;:.]|[,;:]\s*$|\s[,;:.](?:\s|$)", text):
        return "punctuation is left dangling"
    for opening, closing in ("()", "[]", "“”", '""'):
        before, after = Counter(original), Counter(text)
        if opening == closing:
            broken = (before[opening] - after[opening]) % 2 != 0
        else:
            broken = before[opening] - after[opening] != before[closing] - after[closing]
        if broken:
            return f"a {opening} has lost its partner"
    return ""


def tidy(text: str) -> str:
    """White space and commas after a deletion put right, and a/an where it lost its word."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\s+([,;:.!?])", r"\1", text)
    text = re.sub(r"([,;:])(?:\s*[,;:])+", r"\1", text)
    text = re.sub(r"(?:[,;:]\s*)+([.!?])", r"\1", text)
    text = re.sub(r"^[\s,;:]+|[\s,;:]+$", "", text)
    return re.sub(r"\b(and|or|but)\s*,", r"\1", text)


def articles(text: str, at: int) -> str:
    """The text with "a" or "an" just before character `at` as the word that now follows needs it."""
    match = re.search(r"\b(a|an)(\s+)$", text[:at], re.I)
    following = _WORD.match(text, at)
    if not match or not following:
        return text
    right = "an" if vowel_sound(following.group()) else "a"
    written = right.capitalize() if match.group(1)[0].isupper() else right
    return text[: match.start()] + written + match.group(2) + text[at:]


def vowel_sound(word: str) -> bool:
    """Whether English says "an" before this word."""
    return bool(_VOWEL_SOUND.match(word)) and not _CONSONANT_SOUND.match(word)
