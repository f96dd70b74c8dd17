"""The words of an expression with what several parses of it say: tags, governors, and a coarse class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from perturbations import lexicon as lx

Token = Any
"""spacy.tokens.Token; spaCy publishes no types and is loaded only where it is used."""
Doc = Any

OUTSIDE = -1
"""Governor of a word that hangs on the frame sentence and not on another word of the expression."""
_NAME = re.compile(r"(?<=\s)[A-Z][\w.]*(?:\s+[A-Z][\w.]*)+")
_STOPS = ',;:.()“”"!?[]'
_QUOTATION = re.compile(r"(?<!\w)(?:“.+?”|\".+?\"|['‘].+?['’])(?!\w)")
_LINKED = re.compile(r"[\w.%#$&@]+(?:[-–/'’][\w.]+)*")


@dataclass(frozen=True)
class Word:
    """`low` is how it is read (short forms spelled out); `start` and `end` are characters of the text.

    tags, governors and relations: one of each parse; a governor is the index of a word, or OUTSIDE.
    """

    index: int
    text: str
    low: str
    start: int
    end: int
    tags: tuple[str, ...]
    governors: tuple[int, ...]
    relations: tuple[str, ...]

    @cached_property
    def tag(self) -> str:
        """The tag that most parses give."""
        return Counter(self.tags).most_common(1)[0][0]

    @cached_property
    def kind(self) -> str:
        """det poss num adj place adv noun pron ing ed fin aux prep rel neg cc comma punct part."""
        return _closed(self) or _open(self)

    def related(self, names: frozenset[str]) -> bool:
        """Whether most parses give it one of these relations to its governor."""
        return 2 * sum(r in names for r in self.relations) > len(self.relations)


def _closed(word: Word) -> str:
    low = word.low
    if " " in word.text:
        return ""  # a name or a quotation
    if not any(c.isalnum() for c in low):
        return "comma" if low in {",", ";"} else "cc" if low in {"&", "/"} else "punct"
    if low == "non":
        return "adv"
    if low in lx.NEGATIONS - {"nor", "without", "no", "nobody", "nothing", "none"}:
        return "neg"
    for words, kind in _CLOSED:
        if low in words:
            return kind
    if len(low) > 2 and low.endswith(("'s", "’s", "s'", "s’")):
        return "poss"
    return ""


_CLOSED = (
    (lx.RELATIVES, "rel"),
    (lx.CONJUNCTIONS, "cc"),
    (lx.DETERMINERS, "det"),
    (lx.AUXILIARIES, "aux"),
    (lx.PLACE_ADJECTIVES - {"near", "far"}, "place"),
    (lx.PREPOSITIONS, "prep"),
    (
        frozenset({"hand", "hands", "head", "heads", "hair", "arm", "arms", "leg", "legs", "ear", "eye"}),
        "noun",
    ),
    (frozenset({"nobody", "nothing", "none", "one", "ones", "someone"}), "noun"),
    (lx.COMPARATIVES - {"more", "most", "less", "least"}, "adj"),
    (lx.DEGREES, "adv"),
    (lx.COLORS | lx.TEXTURES | lx.ORDINALS | lx.STATES, "adj"),
    (lx.ANIMATES | lx.WORN | lx.NOUNS_TAKEN_FOR_VERBS, "noun"),
    (
        frozenset(
            v for v in lx.PERSON_VERBS | lx.TRANSITIVE | lx.ALONE_VERBS | {"facing"} if v.endswith("ing")
        ),
        "ing",
    ),
    (frozenset({"seated", "parked", "located", "mounted", "dressed", "worn", "held"}), "ed"),
    (frozenset({"visible", "closed", "open", "alone", "upright"}), "adj"),
)


def _open(word: Word) -> str:
    graded = any(t in {"JJR", "RBR", "JJS"} for t in word.tags) or word.related(frozenset({"amod"}))
    if word.low.endswith(("ier", "iest")) and graded:
        return "adj"
    if (word.text[0] in "“\"'‘" and len(word.text) > 2) or " " in word.text:
        return "noun"
    if "-" in word.low:
        return "noun" if word.tag.startswith("N") and word.related(_NOMINAL) else "adj"
    for prefix, kind in _TAGS:
        if word.tag.startswith(prefix):
            return kind
    return "noun" if word.tag.startswith(("N", "FW", "XX", "$", "UH")) else "adv"


_FINITE = frozenset({"VB", "VBP", "VBZ"})
_NOMINAL = frozenset({"attr", "dobj", "pobj", "ROOT", "nsubj", "conj", "appos", "nsubjpass"})
_TAGS = (
    ("JJ", "adj"),
    ("AFX", "adj"),
    ("VBG", "ing"),
    ("VBN", "ed"),
    ("VBD", "ed"),
    ("VBZ", "fin"),
    ("VBP", "fin"),
    ("VB", "fin"),
    ("CD", "num"),
    ("PRP", "pron"),
    ("EX", "pron"),
    ("RP", "part"),
    ("RB", "adv"),
    ("TO", "prep"),
    ("IN", "prep"),
    ("MD", "aux"),
    ("POS", "poss"),
)


def words_of(
    text: str, docs: Sequence[Doc], offsets: Sequence[tuple[int, int]], lead: Sequence[int]
) -> list[Word]:
    """The words of `text`.

    docs: its parses, one for each frame sentence. offsets: characters of each token of the text.
    lead: how many tokens stand before the text in each parse.
    """
    groups = _groups(text, offsets)
    owner = {token: i for i, group in enumerate(groups) for token in group}
    words: list[Word] = []
    for i, group in enumerate(groups):
        tags, governors, relations = [], [], []
        for doc, skip in zip(docs, lead, strict=True):
            told = next(
                (t for t in reversed(group) if any(c.isalnum() for c in doc[t + skip].text)), group[-1]
            )
            root = next(
                (doc[t + skip] for t in group if owner.get(doc[t + skip].head.i - skip) != i),
                doc[group[-1] + skip],
            )
            tags.append(doc[told + skip].tag_)
            governors.append(OUTSIDE if root.head == root else owner.get(root.head.i - skip, OUTSIDE))
            relations.append(root.dep_)
        if all(w.tag == "NN" for w in words):  # no caption begins with a finite verb ("stop sign", "oven …")
            tags = ["NN" if tag in _FINITE and (i == 0 or len(words) < 2) else tag for tag in tags]
        start, end = offsets[group[0]][0], offsets[group[-1]][1]
        low = "".join(docs[0][t + lead[0]].lower_ for t in group)
        words.append(
            Word(i, text[start:end], low, start, end, tuple(tags), tuple(governors), tuple(relations))
        )
    return words


def _groups(text: str, offsets: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Tokens that make one word: joined by hyphens and the like, a possessive, or a quotation."""
    quoted = [m.span() for m in _QUOTATION.finditer(text)] + [m.span() for m in _NAME.finditer(text)]
    groups: list[list[int]] = []
    for i, (start, end) in enumerate(offsets):
        if groups:
            before = offsets[groups[-1][-1]]
            inside = any(a <= before[0] and end <= b for a, b in quoted)
            if inside or (before[1] == start and _glued(text[before[0] : before[1]], text[start:end])):
                groups[-1].append(i)
                continue
        groups.append([i])
    return groups


def _glued(left: str, right: str) -> bool:
    if left in _STOPS or right in _STOPS:
        return False
    return right.lower() not in {"n't", "n’t"} and left not in {"&"} and right not in {"&"}
