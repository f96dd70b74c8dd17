"""What an expression must keep to, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from refadv_ablate.curate.generation.schemas import Polarity

_TAG = re.compile(
    r"\b(?:tag|tags|tagged|label|labels|labell?ed|number|numbers|numbered|mark|marked|marker|id|ids|"
    r"bounding|box|boxes|boxed|candidate|candidates|group\s+[ab]|highlighted|annotated|annotation)\b",
    re.I,
)
_NUMBER = re.compile(r"\d|[\u2460-\u24ff\u2776-\u2793]")
_COUNT = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?=\s*(?:$|[,;.]))"
_CONTRAST = re.compile(r"\b(?:unlike|(?:as )?opposed to)\b", re.I)
"""What says in a composed expression which one is not meant, though it is no negation by itself."""
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Checks:
    """min_words, max_words: of an expression. allowed: words that the scene's own things are called by
    though they usually speak of tags, such as "box" for parcels or "label" for bottles."""

    min_words: int = 3
    max_words: int = 30
    allowed: tuple[str, ...] = ()

    def fault(self, text: str, category: str = "") -> str:
        """Why the expression can't be used; "" if it can."""
        words = _WORD.findall(text)
        if not self.min_words <= len(words) <= self.max_words:
            wanted = f"{self.min_words} to {self.max_words} are wanted"
            return f"it is too short or too long: {len(words)} words; {wanted}"
        if not text.isprintable() or "  " in text or any(c in text for c in "<>{}[]|\\"):
            return "it holds characters that no expression has"
        return self.tag_fault(text, category)

    def tag_fault(self, text: str, category: str = "") -> str:
        """Whether the text names the tags that were drawn on the image; "" if it doesn't."""
        if _NUMBER.search(text):
            return "it holds a digit"
        named = {w.casefold() for w in (*self.allowed, *category.split())}
        for match in _TAG.finditer(text):
            if not {match.group().casefold(), match.group().casefold().rstrip("s")} & named:
                return f"it speaks of tags: {match.group()!r}"
        noun = re.escape(category.split()[-1]) if category.split() else "object"
        if counted := re.search(rf"\b(?:{noun}|object)\s+{_COUNT}", text, re.I):
            return f"it names a candidate by its number: {counted.group()!r}"
        return ""

    def phrases_fault(self, phrases: Sequence[str], category: str) -> str:
        """The first phrase that names a tag; expressions made from it would, too."""
        for phrase in phrases:
            if fault := self.tag_fault(phrase, category):
                return f"the phrase {phrase!r} can't be used ({fault})"
        return ""

    def polarity_fault(self, text: str, polarity: Polarity) -> str:
        """Whether the expression negates as its polarity says."""
        from refadv_ablate.data.negation import negated

        has = negated(text) or bool(_CONTRAST.search(text))
        if polarity == "positive" and has and _firm(text):
            return "it negates, though its polarity is positive"
        return (
            "" if polarity == "positive" or has else f"it negates nothing, though its polarity is {polarity}"
        )


def duplicates(texts: Sequence[str]) -> list[int]:
    """Indices of texts that repeat an earlier one, case, white space and final marks aside."""
    seen: set[str] = set()
    repeated = []
    for i, text in enumerate(texts):
        key = plain(text)
        if key in seen:
            repeated.append(i)
        seen.add(key)
    return repeated


def plain(text: str) -> str:
    """What two texts share that say the same to the letter."""
    return " ".join(_WORD.findall(text.casefold()))


def _firm(text: str) -> bool:
    """Whether a negation is more than a comparative of inferiority ("the less tilted cup")."""
    from refadv_ablate.data.negation import cues

    return any(cue.kind != "inferiority" for cue in cues(text))
