"""Where a phrase or clause belongs by what kind it is: rules by class of word, else the parses' votes."""

from __future__ import annotations

from dataclasses import replace

from perturbations import lexicon as lx
from perturbations.chunks import Chunk
from perturbations.setting import JOIN, NEW, Setting, Verdict, by_vote, compares, side, votes_for


def inside_with(setting: Setting, chunk: Chunk) -> Verdict | None:
    """What a with-phrase says of its noun ("with hands not pressed together", "with zipper open")."""
    span = setting.words[setting.unit[0].start : setting.last.end]
    has = setting.relative and any(w.low in {"has", "have", "having"} for w in span)
    held = has or setting.words[setting.unit[0].key].low in {"with", "without"}
    opened = [
        c for c in setting.unit if setting.words[c.key].low in {"with", "without"} and c.noun is not None
    ]
    opened += [c for c in setting.unit[1:] if held and c.kind == "noun" and c.joint and c.noun is not None]
    if not opened or (setting.unit[-1] is not opened[-1] and setting.last.kind not in {"grade", "verb"}):
        return None
    words, noun = setting.words, setting.words[opened[-1].noun]  # type: ignore[index]  # kept above
    key = words[chunk.key]
    own = any(w.low in {"his", "her", "its", "their"} for w in words[opened[-1].key : opened[-1].end])
    body = noun.low in lx.BODY or own
    if chunk.kind == "grade":
        return JOIN if body or key.low in _STATES or not compares(words, chunk) else None
    if chunk.kind == "verb":
        if (
            key.low in lx.PERSON_VERBS - {"leaning", "bent", "pushing", "looking", "touching"}
            and setting.animate
        ):
            return None
        if body or key.kind == "ed":
            doubt = not body and setting.last is not opened[-1]
            return Verdict(True, sure=not doubt)
        return by_vote(setting, chunk)
    if chunk.kind == "prep" and chunk.noun is None and key.low in {"on", "off", "up", "down", "inside"}:
        return JOIN
    if chunk.kind == "prep" and chunk.negated and key.low not in {"with", "without"} and body:
        return JOIN
    return None


_STATES = frozenset(
    {"visible", "open", "closed", "raised", "up", "down", "forward", "out", "apart", "together", "full"}
)


def prep(setting: Setting, chunk: Chunk) -> Verdict:
    """A phrase with a preposition."""
    words, key = setting.words, setting.words[chunk.key].low
    told = None if chunk.noun is None else words[chunk.noun].low
    garbed = told in lx.COLORS | lx.WORN or (key != "in" and told in lx.BODY)
    dressed = key in {"with", "without", "in"} and garbed
    posed = setting.last.kind == "verb" and setting.words[setting.last.key].low in lx.ALONE_VERBS
    if dressed and posed and setting.noun is None and setting.animate and setting.last.whole:
        return NEW  # "sitting without glasses", "squatting in white"
    if setting.noun is None:  # a verb or adjective without a noun of its own yet
        return JOIN if setting.last.kind in {"verb", "relative", "finite", "prep"} else NEW
    if any(w.low in {"it", "them"} for w in words[chunk.key : chunk.end]):
        return JOIN
    inside = {w.low for w in words[chunk.key : chunk.end]}
    own = inside & {"his", "her", "its", "their", "both", "one", "two"}
    if key == "with" and own and told in lx.TOOLS and words[setting.unit[0].key].low in _HANDLING:
        return JOIN
    if setting.rival:
        return by_vote(setting, chunk, leaning=1 if side(told) else 2)
    if side(told) and inside & {"left", "right"} and not setting.named(lx.BODY):
        return Verdict(False, sure=votes_for(setting, chunk) == 0)
    if key in {"with", "without"} and (told in lx.BODY | lx.WORN or inside & _PERSONAL):
        of_garment = setting.named(lx.WORN) and told in _OF_GARMENTS
        return Verdict(True, sure=False) if of_garment else NEW
    if key in {"with", "without"} and compares(words, chunk):
        return Verdict(False, sure=votes_for(setting, chunk) == 0)
    if chunk.negated and not setting.rival and key not in {"with", "without"}:
        return NEW
    if setting.named(lx.WORN):
        return _after_garment(setting, chunk, key, told)
    if setting.named(lx.BODY):
        placed = told in lx.FIELDS if setting.named(lx.TOOLS) else side(told)
        if key in {"in", "on"} and (placed or told in lx.WORN):
            return Verdict(
                False, sure=told in lx.WORN or "the" in {w.low for w in words[chunk.key : chunk.end]}
            )
        close = key not in {"with", "without", "by", "beside", "in"}
        return JOIN if close else by_vote(setting, chunk, leaning=key == "in")
    if setting.placed and side(told):
        return NEW
    if setting.placed:
        opening = words[setting.unit[0].key].low
        if setting.noun is not None and side(setting.noun.low) and opening not in {"with", "without"}:
            return Verdict(False, sure=key in {"with", "without", "in"} or votes_for(setting, chunk) == 0)
        return (
            NEW
            if key in {"with", "without", "in"} or votes_for(setting, chunk) == 0
            else by_vote(setting, chunk)
        )
    said = by_vote(setting, chunk)
    return replace(said, sure=said.sure and key not in {"with", "without"})


_PERSONAL = frozenset({"hair", "lip", "lips", "skin", "face", "facial", "eyes"})
_OF_GARMENTS = frozenset({"chest", "back", "neck", "shoulder", "shoulders", "waist", "body", "front"})


_HANDLING = lx.TRANSITIVE - {"wearing", "riding", "showing", "containing", "wears", "has", "having"}


def _after_garment(setting: Setting, chunk: Chunk, key: str, told: str | None) -> Verdict:
    if told in lx.PATTERNS and key in {"with", "without"}:
        return JOIN
    if key in {"with", "without"}:
        return by_vote(setting, chunk)
    if told in lx.BODY and key in {"on", "over", "around", "in"}:
        return JOIN
    if setting.animate or side(told):
        return NEW if told not in lx.PATTERNS | lx.WORN else by_vote(setting, chunk)
    return by_vote(setting, chunk)


def verb(setting: Setting, chunk: Chunk) -> Verdict:
    """A participle with its object."""
    verb = setting.words[chunk.key]
    has = {w.low for w in setting.words[setting.unit[0].key : setting.last.end]} & {"have", "has", "having"}
    if has and setting.relative and verb.kind == "ed":
        return JOIN  # "that has one foot lifted"
    if setting.rival:
        if verb.low in lx.PERSON_VERBS | {"facing"} or setting.words[setting.last.key].low != "by":
            return by_vote(setting, chunk, leaning=1)
        return JOIN
    if verb.low in lx.PERSON_VERBS and (setting.animate or not setting.rival):
        others = any(c.noun is not None and setting.words[c.noun].low in lx.ANIMATES for c in setting.unit)
        return Verdict(False, sure=not others)
    if setting.named(lx.WORN | lx.SIDES | lx.BODY) and verb.kind == "ing" and setting.animate:
        return NEW
    if setting.noun is None:
        return NEW if setting.last.whole else JOIN
    return by_vote(setting, chunk)


def relative(setting: Setting, chunk: Chunk) -> Verdict:
    """A relative clause."""
    word = setting.words[chunk.key].low
    if setting.named(frozenset({"it", "them"})):
        return Verdict(False, sure=False)  # "a string tied to it that is not blue"
    if setting.noun is None:
        return NEW
    named = {w.low for w in setting.words[chunk.key : chunk.end]}
    if word == "whose" and setting.animate and named & lx.BODY and not setting.rival:
        return NEW
    if word in {"who", "whom"} and not setting.rival:
        return NEW
    if setting.placed:
        return NEW
    does = {w.low for w in setting.words[chunk.key : chunk.end] if w.kind == "ing"}
    if (
        setting.animate
        and setting.named(lx.BODY | lx.WORN)
        and does & (lx.PERSON_VERBS | {"flying", "facing"})
    ):
        return NEW
    standing = {w.low for w in setting.words[chunk.key : chunk.end]} & _STANDING
    if (standing or compares(setting.words, chunk)) and not setting.rival:
        return Verdict(False, sure=bool(standing))
    if setting.named(lx.BODY) and setting.animate and word in {"who", "whose"}:
        return NEW
    return by_vote(setting, chunk, leaning=1 if setting.named(lx.ANIMATES | lx.WORN) else 0)


_STANDING = frozenset({"sits", "appears", "looks", "seems", "stands", "lies"})


def grade(setting: Setting, chunk: Chunk) -> Verdict:
    """Adjectives, comparatives and places."""
    key = setting.words[chunk.key].low
    if setting.noun is None:
        return JOIN if not setting.last.whole or setting.last.kind == "verb" else NEW
    if key in _STATES and not compares(setting.words, chunk):
        return by_vote(setting, chunk)
    if setting.named(lx.WORN | lx.SIDES | lx.PLACE_NOUNS | lx.BODY):
        return NEW
    return by_vote(setting, chunk)


def odd(setting: Setting, chunk: Chunk) -> Verdict:
    """Nouns on their own and what fits no kind."""
    if chunk.kind == "noun":
        return NEW if setting.words[chunk.key].kind in {"place", "adj", "ed"} else Verdict(True, sure=False)
    return Verdict(True, sure=False)
