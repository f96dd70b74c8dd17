"""Words that deny, and how far each of them reaches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perturbations import lexicon as lx
from perturbations.grammar import ARTICLES, COPULAS, FUNCTION_WORDS, PREPOSITIONS, RELATIVES

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
    """Each negation with what it must govern. Where the end of it can't be told from the words alone, what
    is denied reaches on: a deletion that parts the two there is not certain."""
    cues = [i for i, word in enumerate(words) if is_cue(word) and not _numbers(words, i)]
    return [Scope(i, frozenset(_denied(words, i))) for i in cues]


def _numbers(words: Sequence[str], cue: int) -> bool:
    """Whether "no" is short for number ("player no. 7")."""
    return words[cue] == "no" and cue + 1 < len(words) and words[cue + 1].isdecimal()


def _denied(words: Sequence[str], cue: int) -> list[int]:
    if words[cue] in _ALONE:
        return [cue - 1] if cue and words[cue - 1] not in FUNCTION_WORDS else []
    ends = _reach(words, cue)
    found: list[int] = []
    listing = words[cue] == "neither"
    for i in range(cue + 1, len(words)):
        word = words[i]
        if word in {"or", "nor"}:
            listing = word == "or" and listing
            continue
        joined = words[i - 1] in {"or", "nor"} or listing
        if found and not joined and ends(words, i, found):
            break
        if word not in FUNCTION_WORDS and word not in {",", ";"} and not is_cue(word):
            found.append(i)
    graded = words[cue] == "no" and list(words[max(cue - 2, 0) : cue]) in (["little", "to"], ["few", "to"])
    return [cue - 2, *found] if graded else found


def _reach(words: Sequence[str], cue: int) -> Callable[[Sequence[str], int, Sequence[int]], bool]:
    """How the end of what is denied is found."""
    follows = [w for w in words[cue + 1 : cue + 4] if w not in ARTICLES]
    if words[cue] == "not" and follows[:1] in (["one"], ["ones"]):
        return _contrast_ends  # "not the one on the level with many glasses"
    if words[cue] in {"neither", "nor"}:
        return _pair_ends
    behind = [w for w in words[max(cue - 2, 0) : cue] if w != ","]
    if behind and behind[-1] in RELATIVES | COPULAS | _DOES and set(behind) & RELATIVES:
        return _clause_ends  # "that is not being used as a lid to cover the pot"
    return _not_ends if words[cue] == "not" else _ends


_DOES = frozenset({"do", "does", "did", "can", "could", "will"})


def _contrast_ends(words: Sequence[str], i: int, found: Sequence[int]) -> bool:
    del found
    return words[i] in {",", ";", "but"} or is_cue(words[i])


def _pair_ends(words: Sequence[str], i: int, found: Sequence[int]) -> bool:
    """Both halves of "neither … nor", with the clauses inside them."""
    return words[i] in {",", ";", "and", "&", "but"} or _another_verb(words, i, found)


def _clause_ends(words: Sequence[str], i: int, found: Sequence[int]) -> bool:
    """A relative clause goes on through its prepositions."""
    return (
        words[i] in {",", ";", "and", "&"}
        or words[i] in _TEMPTING
        or is_cue(words[i])
        or _another_verb(words, i, found)
    )


def _not_ends(words: Sequence[str], i: int, found: Sequence[int]) -> bool:
    """A lone adjective or verb goes on through the preposition after it ("not visible against the sky")."""
    if words[i] in {"in", "on", "at"} and found and words[found[-1]] not in lx.LOCATIVE:
        place = [w for w in words[i + 1 : i + 4] if w not in ARTICLES | {"far"}][:1]
        if place and place[0] in lx.SIDES | {"row"} and words[found[-1]].endswith("ing"):
            return True  # "not smiling in back"
    if words[i] in lx.SIDES | {"far"} and found and words[found[-1]].endswith("ing"):
        return words[found[-1]] not in lx.LOCATIVE  # "not smiling front row"
    alone = sum(not words[k].endswith("ly") for k in found) == 1 and words[i] in PREPOSITIONS
    return False if alone and i - 1 in found else _ends(words, i, found)


def _ends(words: Sequence[str], i: int, found: Sequence[int]) -> bool:
    """Whether the phrase of a negation ends before token `i`."""
    word = words[i]
    if word in {",", ";", "and", "&"} or word in _TEMPTING or is_cue(word):
        return True
    if word in PREPOSITIONS and set(words[i + 1 : i + 2]) & _OWN:
        return False  # "without a tag on it"
    if word in PREPOSITIONS or word in COPULAS:
        verb = len(found) == 1 and words[found[0]].endswith(("ing", "ed", "n"))
        return not verb and word != "of"
    return _another_verb(words, i, found)


_OWN = frozenset({"it", "its", "his", "her", "their", "them"})


def _another_verb(words: Sequence[str], i: int, found: Sequence[int]) -> bool:
    """Whether a participle after a noun begins something new ("not wearing a hat holding a cup")."""
    return words[i].endswith("ing") and i - 1 in found and words[i - 1] not in FUNCTION_WORDS
