"""The same thing said otherwise, by rules: a model that understands gives the same box.

Each rule is a pure function of the text and returns the new text, or None where it has nothing to change
or can't be sure that the meaning stays. English.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from perturbations import lexicon as lx
from perturbations.base import Parts, refused, result
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Example, Perturbed

Rule = Callable[[str], str | None]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_IMPERATIVES = _set(
    "please find locate show point mark click select detect box give look see identify where which what who "
    "whom whose is are can could would there this that these those here i it"
)
_PRONOUNS = _set(
    "he she they we you him her them us someone somebody anyone anybody everyone everybody something "
    "anything everything nobody nothing none"
)
_STRAY = _set("only just also far close near nearest closest next one ones other others same rest")
_NO_NOUN_PHRASE = (
    _IMPERATIVES
    | _STRAY
    | lx.PREPOSITIONS
    | lx.CONJUNCTIONS
    | lx.NEGATIONS
    | lx.RELATIVES
    | lx.AUXILIARIES
    | lx.DEGREES
)
_OPEN = _NO_NOUN_PHRASE | _PRONOUNS | lx.DETERMINERS
"""First words before which no article can be set, or left out, without knowing more."""
_PLURALS = _set("men women people children guys girls boys kids ladies players adults persons")
_WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_GERUND = r"[^\W\d_]{2,}ing"
_NO_GERUND = _set(
    "thing something anything nothing everything king ring string wing ceiling building morning evening "
    "clothing awning railing painting darling sibling duckling lightning pudding wedding red-wing"
)
_REDUCIBLE = re.compile(
    rf"\b(?:that|which|who) (?:is|are)(?P<not> not)? (?={_GERUND}\b|in\b|on\b|at\b|near\b|behind\b|beside\b|"
    r"under\b|next to\b|left of\b|to the (?:left|right) of\b|above\b|below\b)",
    re.I,
)
_WEARING = re.compile(rf"\b(?P<noun>{_WORD}) (?P<verb>(?:not )?(?:wearing|holding|carrying|riding))\b", re.I)
_APART = {
    "isn't": "is not", "aren't": "are not", "doesn't": "does not", "don't": "do not", "hasn't": "has not",
    "haven't": "have not", "wasn't": "was not", "weren't": "were not", "who's": "who is",
    "that's": "that is", "can't": "cannot", "isn’t": "is not", "aren’t": "are not", "doesn’t": "does not",
    "don’t": "do not", "who’s": "who is", "that’s": "that is",
}  # fmt: skip
_TOGETHER = {long: short for short, long in _APART.items() if short.endswith("n't")}


def article(text: str) -> str | None:
    """Leaves out a "the" that comes first, or sets one where no determiner stands; "a" becomes "the"."""
    first, _, rest = text.partition(" ")
    low = first.casefold()
    if low == "the" and _starts_a_noun_phrase(rest):
        return _cased(rest, text)
    if low in ("a", "an") and _starts_a_noun_phrase(rest):
        return f"{'THE' if text.isupper() else 'The' if first[0].isupper() else 'the'} {rest}"
    if not _starts_a_noun_phrase(text) or low.endswith("ing") or not "a" <= first[0] <= "z":
        return None  # a capital may begin a name, and "sitting on the bench" takes no article
    return f"the {text}"


def relative(text: str) -> str | None:
    """ "that is wearing a hat" for "wearing a hat", and the other way round; siblings too ("who is on the
    left", "holding a cup"). One place is changed, the first that can be."""
    if found := _REDUCIBLE.search(text):
        following = re.match(_WORD, text[found.end() :])
        if following and following.group().casefold() not in _NO_GERUND and found.start():
            kept = "not " if found["not"] else ""
            return text[: found.start()] + kept + text[found.end() :]
    for found in _WEARING.finditer(text):
        verb = _copula(found["noun"].casefold(), text[: found.start()])
        if verb:
            return f"{text[: found.start('verb')]}that {verb} {text[found.start('verb') :]}"
    return None


def contraction(text: str) -> str | None:
    """ "is not" for "isn't", and the other way round: every one in the text."""
    for table in (_APART, _TOGETHER):
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, table))})(?!\w)")
        new = pattern.sub(lambda match, table=table: table[match.group()], text)  # type: ignore[misc]  # the default binds this turn's table
        if new != text:
            return new
    return None


def punctuation(text: str) -> str | None:
    """Sets a full stop at the end, or takes it away."""
    if text.endswith(".") and not text.endswith("..") and not re.search(r"\b(?:\w\.)+$|\betc\.$", text):
        return text[:-1].rstrip() or None
    return f"{text}." if text and text[-1].isalnum() else None


def frame(text: str) -> str | None:
    """Asks politely for it: "please find the red ball"."""
    first = text.partition(" ")[0].casefold().strip("'\"“”,.;:")
    if first in _NO_NOUN_PHRASE or text[-1] in "?!" or not any(c.isalpha() for c in first):
        return None
    bare = text[0].lower() + text[1:] if first in lx.DETERMINERS else text
    return f"please find {bare}"


RULES: dict[str, Rule] = {
    "article": article,
    "relative": relative,
    "contraction": contraction,
    "punctuation": punctuation,
    "frame": frame,
}


@dataclass(frozen=True, slots=True)
class Paraphrase(Parts):
    """Each rule that applies gives one sub-condition in which the same object is meant.

    rules: which of `article`, `relative`, `contraction`, `punctuation`, `frame`. Consistency is whether the
    answer stays on the box of the model's own original answer; `worst` counts an example where all of its
    paraphrases do. Not perturbable: a text to which no rule applies.
    """

    does: ClassVar[str] = "when the same is said in other words"

    rules: Sequence[str] = tuple(RULES)

    def __post_init__(self) -> None:
        for rule in self.rules:
            if rule not in RULES:
                raise UserError(f"perturb.paraphrase.rules has no {rule!r}; {nearest(str(rule), RULES)}.")
        if not self.rules:
            raise UserError(f"perturb.paraphrase.rules is empty: name some of {', '.join(RULES)}.")

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """In the order of `RULES`; white space around the expression is no part of it."""
        text = example.expression.strip()
        if not re.search("[A-Za-z]", text) or not text.isprintable():
            return [refused(example, "no English words that a rule could change")]
        made = [
            result(example, new, {"rule": name}, expectation="invariant", part=name)
            for name, rule in RULES.items()
            if name in self.rules and (new := rule(text)) is not None and new != example.expression
        ]
        return made or [refused(example, "no rule applies without perhaps changing what is meant")]


def _starts_a_noun_phrase(text: str) -> bool:
    """Whether an article may stand before the text, as its first word tells."""
    first = re.match(rf"({_WORD})(?:[\s.,;!?]|$)", text)
    return first is not None and first.group(1).casefold() not in _OPEN


def _cased(new: str, old: str) -> str:
    return new[0].upper() + new[1:] if old[0].isupper() and old[1:2].islower() else new


def _copula(noun: str, before: str) -> str:
    """ "is" or "are" as the noun before a participle needs it; "" where that can't be told, or where another
    noun that stands between could be taken for the one that wears."""
    said = [word.casefold() for word in re.findall(_WORD, before)]
    if noun in (_OPEN | lx.PARTICLES) - {"one"} or noun.endswith("ing"):
        return ""
    if any(word in _NO_NOUN_PHRASE - _STRAY or word.endswith("ing") for word in said):
        return ""
    if noun in _PLURALS:
        return "are"
    return "" if noun.endswith(("s", "ly")) else "is"
