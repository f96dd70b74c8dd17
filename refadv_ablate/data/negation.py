"""Whether an expression negates: by explicit cues on spaCy's English tokens, with lexical guards.

Cues, by kind:

- negator: not (n't, cannot), no, without, never, neither, nor, none, nobody, nothing, nowhere
- contrast: rather than, instead of, other than, except, excluding
- absence: lack, lacks, lacking, lacked
- affix: non- and non before a word ("non-white")
- inferiority: less, least, fewer, fewest ("the less visible one"): what the referent has not as much of

Guards, where a cue is none: "at least", "more or less", "not only", "nothing but", "whether or not";
"no" before a number ("no. 5"); what a sign says ("no parking sign", the capitals of "a Do Not Enter
sign") and what stands in double quotes. docs/negation.md has the agreement with human flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

Kind = Literal["negator", "contrast", "absence", "affix", "inferiority"]

NEGATORS = [
    "not",
    "no",
    "without",
    "never",
    "neither",
    "nor",
    "none",
    "nobody",
    "nothing",
    "nowhere",
    "cannot",
]

# spaCy Matcher patterns; NORM maps n't, n’t and nt to "not"
CUES: dict[Kind, list[list[dict[str, Any]]]] = {
    "negator": [[{"NORM": {"IN": NEGATORS}}], [{"LOWER": {"IN": NEGATORS}}]],
    "contrast": [
        [{"LOWER": "rather"}, {"LOWER": "than"}],
        [{"LOWER": "instead"}, {"LOWER": "of"}],
        [{"LOWER": "other"}, {"LOWER": "than"}],
        [{"LOWER": {"IN": ["except", "excluding"]}}],
    ],
    "absence": [[{"LOWER": {"IN": ["lack", "lacks", "lacking", "lacked"]}}]],
    "affix": [[{"LOWER": "non"}]],
    "inferiority": [[{"LOWER": {"IN": ["less", "least", "fewer", "fewest"]}}]],
}

GUARDS: list[list[dict[str, Any]]] = [
    [{"LOWER": "at"}, {"LOWER": "least"}],
    [{"LOWER": "more"}, {"LOWER": "or"}, {"LOWER": "less"}],
    [{"LOWER": "not"}, {"LOWER": "only"}],
    [{"LOWER": "nothing"}, {"LOWER": "but"}],
    [{"LOWER": "whether"}, {"LOWER": "or"}, {"LOWER": "not"}],
    [{"LOWER": "no"}, {"ORTH": ".", "OP": "?"}, {"LIKE_NUM": True}],
    [
        {"LOWER": "no"},
        {"ORTH": "-", "OP": "?"},
        {"LOWER": {"REGEX": r"^(\w+ing|entry|exit|u)$"}},
        {"IS_PUNCT": True, "OP": "?"},
        {"LOWER": {"IN": ["sign", "signs", "symbol", "symbols", "zone", "turn", "marking"]}},
    ],
]

_QUOTED = re.compile(r"[\"“”«][^\"“”«»]*[\"“”»]")


@dataclass(frozen=True, slots=True)
class Cue:
    """A negation cue. start, end: characters of the expression."""

    kind: Kind
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """The rule against flags that people set, over n expressions."""

    n: int
    both: int
    rule_only: int
    flag_only: int

    @property
    def precision(self) -> float | None:
        """Share of the rule's positives that are flagged; None without any."""
        found = self.both + self.rule_only
        return self.both / found if found else None

    @property
    def recall(self) -> float | None:
        """Share of the flagged that the rule finds; None without any."""
        flagged = self.both + self.flag_only
        return self.both / flagged if flagged else None


def negated(text: str) -> bool:
    """Whether the expression has a negation cue."""
    return bool(cues(text))


def cues(text: str) -> tuple[Cue, ...]:
    """The negation cues of an expression, in order."""
    return cues_of(next(tokenised([text])))


def tokenised(texts: Iterable[str]) -> Iterator[Any]:
    """spaCy Docs of the expressions, in order: tokens of the English tokeniser, no pipeline."""
    nlp, _, _ = _pipeline()
    return iter(nlp.tokenizer.pipe(texts))


def cues_of(doc: Any) -> tuple[Cue, ...]:
    """The negation cues of a Doc made by `tokenised`."""
    nlp, matcher, guard = _pipeline()
    found = {(start, end): nlp.vocab.strings[kind] for kind, start, end in matcher(doc)}
    if not found:
        return ()
    guarded = {i for _, start, end in guard(doc) for i in range(start, end)}
    quoted = [match.span() for match in _QUOTED.finditer(doc.text)]
    return tuple(
        _cue(kind, doc[start:end])
        for (start, end), kind in sorted(found.items())
        if not guarded & set(range(start, end))
        and not _on_a_sign(doc, start)
        and not any(left <= doc[start].idx < right for left, right in quoted)
    )


def agreement(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """Over (by rule, by flag)."""
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for rule, flag in pairs:
        counts[rule, flag] += 1
    return Agreement(sum(counts.values()), counts[True, True], counts[True, False], counts[False, True])


def _cue(kind: str, span: Any) -> Cue:
    return Cue(kind, span.text, span.start_char, span.end_char)  # type: ignore[arg-type] # a key of CUES


def _on_a_sign(doc: Any, at: int) -> bool:
    """Whether a capitalised cue within the expression stands beside another capitalised word.

    An expression that is all capitals says nothing by its capitals.
    """
    if at == 0 or not doc[at].text[0].isupper() or doc.text.isupper():
        return False
    beside = [doc[i] for i in (at - 1, at + 1) if 0 <= i < len(doc)]
    return any(token.text[0].isupper() for token in beside)


@lru_cache(maxsize=1)
def _pipeline() -> tuple[Any, Any, Any]:
    from spacy.lang.en import English
    from spacy.matcher import Matcher

    nlp = English()
    matcher, guard = Matcher(nlp.vocab), Matcher(nlp.vocab)
    for kind, patterns in CUES.items():
        matcher.add(kind, patterns)
    guard.add("guard", GUARDS)
    return nlp, matcher, guard
