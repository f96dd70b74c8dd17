"""Words for left and right, and where they may not mean a side of the picture."""

from __future__ import annotations

import re

_LEFT = (
    "left",
    "leftmost",
    "left-most",
    "lefthand",
    "left-hand",
    "leftward",
    "leftwards",
    "leftside",
    "leftest",
)
_SWAP = {word: word.replace("left", "right") for word in _LEFT}
_SWAP |= {right: left for left, right in _SWAP.items()}


def _any(words: str) -> str:
    """A pattern for any of some words that white space separates; "_" stands for a space."""
    return "(?:" + "|".join(re.escape(word).replace("_", r"\s+") for word in words.split()) + ")"


def _whole(pattern: str) -> re.Pattern[str]:
    """The pattern where no letter or hyphen continues it."""
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


_SIDE = _whole("|".join(sorted(_SWAP, key=len, reverse=True)))
_PLACES = _any(
    "next_to beside in_front behind above below under over on_top near by at against between across "
    "beneath underneath there here now after before up down out in_the_middle in_the_center in_the_centre"
)
_END = r"(?=\s*(?:$|[,.;!?]))"
_REFUSED = tuple(
    (_whole(pattern), reason)
    for pattern, reason in (
        (rf"right\s+{_PLACES}", "“right” may stand for “directly”"),
        (rf"{_any('all just is are looks seems')}\s+right{_END}", "“right” may stand for “correct”"),
        (
            rf"right[\s-]{_any('angle angled answer size color colour kind choice click triangle way')}s?",
            "“right” may stand for “correct”",
        ),
        (rf"{_any('human civil equal')}\s+rights|rights|copyright", "“right” may stand for “entitlement”"),
        (
            rf"left\s+{_any('behind over alone out open off unattended untouched empty uneaten standing')}",
            "“left” may stand for “leaving”",
        ),
        (
            rf"{_any('is are was were has have had been just one ones slice slices piece pieces food')}"
            rf"\s+left{_END}",
            "“left” may stand for “remaining”",
        ),
        (r"leftovers?|left-overs?", "“left” may stand for “remaining”"),
        (
            rf"(?:{_any('his her its their my your our whose')}|\w+['’]s?)\s+(?:left|right)",
            "this may be a side of the body",
        ),
        (
            r"(?:left|right)[\s-]"
            + _any(
                "arm leg foot eye ear wrist knee shoulder elbow thumb shoe glove sleeve paw wing hoof cheek"
            )
            + "s?",
            "this may be a side of the body",
        ),
        (r"(?:left|right)\s+hands?(?!\s+side)|(?:left|right)-?handed", "this may be a side of the body"),
        (
            _any(
                "letter letters lettering word words text writing written reads reading says saying sign "
                "signs logo numbered number numbers numeral clock labeled labelled label printed brand "
                "caption plate"
            ),
            "a mirror makes legible things illegible",
        ),
    )
)
_LEGIBLE = re.compile(
    r"[\"“”]|(?<!\w)['‘][^'’]{1,40}['’](?!\w)|#\s*\d|(?<![\w-])(?-i:(?!LEFT|RIGHT)[A-Z]{2,})(?![\w-])"
)


def swapped(text: str) -> str:
    """Left for right and right for left, each in the case in which it stands; twice is the identity."""
    return _SIDE.sub(lambda match: _cased(match.group(), _SWAP[match.group().lower()]), text)


def sided(text: str) -> bool:
    """Whether a word for a side stands in the text, in whatever sense."""
    return _SIDE.search(text) is not None


def why_not(text: str) -> str:
    """Why the text may be about something else than sides of the picture, or about legible things; "" if not.

    What can't be told is refused, not guessed: "right next to", "left behind", "his left hand".
    """
    for pattern, reason in _REFUSED:
        if found := pattern.search(text):
            return f"{found.group()!r}: {reason}"
    if not text.isupper() and (found := _LEGIBLE.search(text)):
        return f"{found.group()!r}: a mirror makes legible things illegible"
    return ""


def _cased(old: str, new: str) -> str:
    if old.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new
