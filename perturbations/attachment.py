"""Whether a chunk goes on with what stands before it or tells something new of the referent.

Rules by class decide where language leaves no choice (a person wears, a garment doesn't); elsewhere
the parses are asked, and what they don't agree on is doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perturbations import lexicon as lx
from perturbations.chunks import Chunk
from perturbations.words import Word


@dataclass(frozen=True, slots=True)
class Verdict:
    """join: goes on with the unit before it. part: as one of several joined by and, or, a comma.

    sure: whether rules or all parses agree. votes: parses that hang it on the unit before, of all.
    """

    join: bool
    sure: bool = True
    part: bool = False
    votes: str = ""


JOIN, NEW, PART = Verdict(True), Verdict(False), Verdict(True, part=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a verdict is given on: the words, the chunks of the unit so far, and the referent's noun."""

    words: Sequence[Word]
    unit: Sequence[Chunk]
    head: str

    @property
    def last(self) -> Chunk:
        """The chunk just before."""
        return self.unit[-1]

    @property
    def noun(self) -> Word | None:
        """The last noun that the chunk just before names."""
        return None if self.last.noun is None else self.words[self.last.noun]

    listed: str = ""
    """The "and" or "or" by which a later chunk joins a noun: commas before it then are those of a list."""

    @property
    def animate(self) -> bool:
        """Whether the referent is a person or animal, who can wear, hold and look."""
        return self.head in lx.ANIMATES

    @property
    def relative(self) -> bool:
        """Whether the unit is a relative clause."""
        return self.unit[0].kind == "relative"

    @property
    def rival(self) -> bool:
        """Whether the last noun is one that what follows can tell of as well as of the referent."""
        inside = self.words[self.last.key : self.last.end] if self.last.noun is not None else []
        toy = len(inside) > 1 and inside[-2].low in {"teddy", "toy"}
        same = self.noun is not None and self.noun.low.rstrip("s") == self.head.rstrip("s")
        return (self.named(lx.ANIMATES) and not toy) or same or any(w.low in lx.GROUPS for w in inside)

    @property
    def placed(self) -> bool:
        """Whether the last noun is a place in the picture."""
        return self.noun is not None and (self.noun.low in lx.PLACE_NOUNS or _side(self.noun.low))

    def named(self, names: frozenset[str]) -> bool:
        """Whether the last noun is one of these."""
        return self.noun is not None and self.noun.low in names


def verdict(setting: Setting, chunk: Chunk) -> Verdict:
    """Where the chunk belongs."""
    if (bound := _bound(setting, chunk)) is not None:
        return bound
    if chunk.joint:
        return _joined(setting, chunk)
    if chunk.comma:
        return _after_comma(setting, chunk)
    if chunk.kind == "contrast":
        return NEW
    if chunk.end - chunk.start > 1 and all(w.kind == "place" for w in setting.words[chunk.start : chunk.end]):
        return NEW  # "with carrots bottom left"
    if (inside := _inside_with(setting, chunk)) is not None:
        return inside
    by_kind = {"prep": _prep, "verb": _verb, "relative": _relative, "grade": _grade}
    return by_kind.get(chunk.kind, _odd)(setting, chunk)


def _bound(setting: Setting, chunk: Chunk) -> Verdict | None:
    """What can only go on: "of …", "than …", and whatever an open verb or preposition still needs."""
    key = setting.words[chunk.key].low
    if not chunk.comma and not chunk.joint:
        if not setting.last.whole or key in {"of", "than", "as", "who's"}:
            return JOIN
        if setting.named(frozenset({"one", "ones"})) and chunk.kind != "contrast":
            return JOIN
        if setting.last.kind == "grade" and chunk.kind == "prep" and not _located(setting, chunk):
            return JOIN
        compared = setting.words[setting.last.end - 1]
        graded = compared.low in lx.COMPARATIVES or compared.tag in {"JJR", "RBR"}
        graded = graded or (setting.last.kind == "grade" and compared.low in {"left", "right", "close"})
        if graded and key in {"to", "from", "by", "in", "on", "at", "above", "below"}:
            return JOIN
    if key in {"as", "than"} and chunk.joint == "":
        return JOIN
    return None


def _located(setting: Setting, chunk: Chunk) -> bool:
    """ "visible on the left": a place of its own after an adjective that compares nothing."""
    graded = setting.words[setting.last.end - 1]
    if any(setting.words[c.key].low in {"with", "without"} for c in setting.unit):
        return False  # "with lettering visible on the back"
    if graded.low in lx.SIDES and setting.words[chunk.key].low in {
        "with",
        "without",
        "in",
        "on",
        "near",
        "wearing",
    }:
        return True
    compares = graded.low in lx.COMPARATIVES | lx.ORDINALS | lx.PLACE_ADJECTIVES or graded.tag in {
        "JJR",
        "RBR",
    }
    return not compares and chunk.noun is not None and setting.words[chunk.noun].low in lx.SIDES


# ── after "and", "or" and commas ────────────────────────────────────────────────────────────────


def _joined(setting: Setting, chunk: Chunk) -> Verdict:
    denied = any(c.negated for c in setting.unit)
    if chunk.joint in {"or", "nor"}:
        return JOIN  # one negation, or one choice, for all
    if chunk.joint == "but" and setting.last.negated and not chunk.negated and len(setting.unit) > 1:
        return JOIN  # "not straight up but angled"
    inside = setting.words[setting.last.end - 1]
    if setting.last.kind == "prep" and inside.kind == "ing" and setting.words[chunk.key].kind == "ing":
        return PART  # "for pouring and mixing"
    if chunk.kind in {"noun", "contrast", "odd"}:
        return JOIN if chunk.joint == "but" else PART
    if chunk.kind == "relative":
        return NEW
    if any(c.kind == "relative" for c in setting.unit[1:]) and not setting.relative:
        return Verdict(True, sure=False)  # "with feathers that are not black and not white"
    if chunk.kind == "clause":
        return NEW
    if setting.relative:
        spread = denied and not chunk.negated and chunk.kind != "finite" and chunk.joint == "and"
        return Verdict(True, sure=not spread, part=True)
    if chunk.kind == "finite":
        return Verdict(False, sure=False)
    if denied and not chunk.negated and chunk.joint == "and" and setting.unit[0].kind == chunk.kind:
        return Verdict(False, sure=False)
    having = {"with", "without"}
    if setting.words[chunk.key].low in having and setting.words[setting.unit[0].key].low not in having:
        return NEW if not setting.rival else Verdict(False, sure=False)  # "built in 1910 and without a sign"
    if chunk.kind == "prep" and setting.last.kind == "prep" and len(setting.unit) > 1:
        return Verdict(True, sure=False)  # "a time after 12 and before 6"
    verbs = sum(c.kind == "verb" for c in setting.unit)
    if (
        chunk.kind == "verb"
        and setting.rival
        and not chunk.comma
        and (setting.unit[0].kind != "verb" or verbs > 1)
    ):
        return _by_vote(setting, chunk)
    return NEW


def _after_comma(setting: Setting, chunk: Chunk) -> Verdict:
    unit = setting.words[setting.unit[0].start : setting.last.end]
    if any(w.low == "neither" for w in unit) and not any(w.low == "nor" for w in unit):
        return JOIN
    if setting.relative and chunk.kind == "finite":
        return PART
    if chunk.kind == "noun" and chunk.noun is not None and setting.listed:
        listed = setting.words[chunk.start + 1].kind != "det" or setting.words[chunk.key].low in {"a", "an"}
        named = setting.last.noun is not None and setting.last.kind in {"prep", "verb", "noun", "relative"}
        if listed and named and setting.listed == "or":
            return JOIN
        return Verdict(True, sure=False, part=True) if listed and named else NEW
    if chunk.kind == "grade" and chunk.negated:
        return Verdict(False, sure=True)
    return NEW


# ── by kind ─────────────────────────────────────────────────────────────────────────────────────


def _inside_with(setting: Setting, chunk: Chunk) -> Verdict | None:
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
        return JOIN if body or key.low in _STATES or not _compares(words, chunk) else None
    if chunk.kind == "verb":
        if (
            key.low in lx.PERSON_VERBS - {"leaning", "bent", "pushing", "looking", "touching"}
            and setting.animate
        ):
            return None
        if body or key.kind == "ed":
            doubt = not body and setting.last is not opened[-1]
            return Verdict(True, sure=not doubt)
        return _by_vote(setting, chunk)
    if chunk.kind == "prep" and chunk.noun is None and key.low in {"on", "off", "up", "down", "inside"}:
        return JOIN
    if chunk.kind == "prep" and chunk.negated and key.low not in {"with", "without"} and body:
        return JOIN
    return None


_STATES = frozenset(
    {"visible", "open", "closed", "raised", "up", "down", "forward", "out", "apart", "together", "full"}
)


def _compares(words: Sequence[Word], chunk: Chunk) -> bool:
    return any(
        w.low in lx.COMPARATIVES | lx.ORDINALS or w.tag in {"JJR", "RBR"}
        for w in words[chunk.key : chunk.end]
    )


def _prep(setting: Setting, chunk: Chunk) -> Verdict:
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
        return _by_vote(setting, chunk, leaning=1 if _side(told) else 2)
    if _side(told) and inside & {"left", "right"} and not setting.named(lx.BODY):
        return Verdict(False, sure=_votes(setting, chunk) == 0)
    if key in {"with", "without"} and (told in lx.BODY | lx.WORN or inside & _PERSONAL):
        of_garment = setting.named(lx.WORN) and told in _OF_GARMENTS
        return Verdict(True, sure=False) if of_garment else NEW
    if key in {"with", "without"} and _compares(words, chunk):
        return Verdict(False, sure=_votes(setting, chunk) == 0)
    if chunk.negated and not setting.rival and key not in {"with", "without"}:
        return NEW
    if setting.named(lx.WORN):
        return _after_garment(setting, chunk, key, told)
    if setting.named(lx.BODY):
        placed = told in lx.FIELDS if setting.named(lx.TOOLS) else _side(told)
        if key in {"in", "on"} and (placed or told in lx.WORN):
            return Verdict(
                False, sure=told in lx.WORN or "the" in {w.low for w in words[chunk.key : chunk.end]}
            )
        close = key not in {"with", "without", "by", "beside", "in"}
        return JOIN if close else _by_vote(setting, chunk, leaning=key == "in")
    if setting.placed and _side(told):
        return NEW
    if setting.placed:
        opening = words[setting.unit[0].key].low
        if setting.noun is not None and _side(setting.noun.low) and opening not in {"with", "without"}:
            return Verdict(False, sure=key in {"with", "without", "in"} or _votes(setting, chunk) == 0)
        return (
            NEW
            if key in {"with", "without", "in"} or _votes(setting, chunk) == 0
            else _by_vote(setting, chunk)
        )
    said = _by_vote(setting, chunk)
    return replace(said, sure=said.sure and key not in {"with", "without"})


_PERSONAL = frozenset({"hair", "lip", "lips", "skin", "face", "facial", "eyes"})
_OF_GARMENTS = frozenset({"chest", "back", "neck", "shoulder", "shoulders", "waist", "body", "front"})


def _side(low: str | None) -> bool:
    """Whether a noun is a place in the picture that locates by itself ("left", "bottom-center")."""
    return low is not None and any(part in lx.SIDES for part in low.split("-"))


_HANDLING = lx.TRANSITIVE - {"wearing", "riding", "showing", "containing", "wears", "has", "having"}


def _after_garment(setting: Setting, chunk: Chunk, key: str, told: str | None) -> Verdict:
    if told in lx.PATTERNS and key in {"with", "without"}:
        return JOIN
    if key in {"with", "without"}:
        return _by_vote(setting, chunk)
    if told in lx.BODY and key in {"on", "over", "around", "in"}:
        return JOIN
    if setting.animate or _side(told):
        return NEW if told not in lx.PATTERNS | lx.WORN else _by_vote(setting, chunk)
    return _by_vote(setting, chunk)


def _verb(setting: Setting, chunk: Chunk) -> Verdict:
    verb = setting.words[chunk.key]
    has = {w.low for w in setting.words[setting.unit[0].key : setting.last.end]} & {"have", "has", "having"}
    if has and setting.relative and verb.kind == "ed":
        return JOIN  # "that has one foot lifted"
    if setting.rival:
        if verb.low in lx.PERSON_VERBS | {"facing"} or setting.words[setting.last.key].low != "by":
            return _by_vote(setting, chunk, leaning=1)
        return JOIN
    if verb.low in lx.PERSON_VERBS and (setting.animate or not setting.rival):
        others = any(c.noun is not None and setting.words[c.noun].low in lx.ANIMATES for c in setting.unit)
        return Verdict(False, sure=not others)
    if setting.named(lx.WORN | lx.SIDES | lx.BODY) and verb.kind == "ing" and setting.animate:
        return NEW
    if setting.noun is None:
        return NEW if setting.last.whole else JOIN
    return _by_vote(setting, chunk)


def _relative(setting: Setting, chunk: Chunk) -> Verdict:
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
    if (standing or _compares(setting.words, chunk)) and not setting.rival:
        return Verdict(False, sure=bool(standing))
    if setting.named(lx.BODY) and setting.animate and word in {"who", "whose"}:
        return NEW
    return _by_vote(setting, chunk, leaning=1 if setting.named(lx.ANIMATES | lx.WORN) else 0)


_STANDING = frozenset({"sits", "appears", "looks", "seems", "stands", "lies"})


def _grade(setting: Setting, chunk: Chunk) -> Verdict:
    key = setting.words[chunk.key].low
    if setting.noun is None:
        return JOIN if not setting.last.whole or setting.last.kind == "verb" else NEW
    if key in _STATES and not _compares(setting.words, chunk):
        return _by_vote(setting, chunk)
    if setting.named(lx.WORN | lx.SIDES | lx.PLACE_NOUNS | lx.BODY):
        return NEW
    return _by_vote(setting, chunk)


def _odd(setting: Setting, chunk: Chunk) -> Verdict:
    if chunk.kind == "noun":
        return NEW if setting.words[chunk.key].kind in {"place", "adj", "ed"} else Verdict(True, sure=False)
    return Verdict(True, sure=False)


# ── the parses' say ─────────────────────────────────────────────────────────────────────────────


def _votes(setting: Setting, chunk: Chunk) -> int:
    """How many parses hang the chunk on the unit before it."""
    start = setting.unit[0].start
    low = 0
    for governor in _governors(setting.words, chunk):
        low += start <= governor < chunk.start
    return low


def _governors(words: Sequence[Word], chunk: Chunk) -> list[int]:
    """Where each parse hangs the chunk: up from its first word until the governor is outside of it."""
    found = []
    for parse in range(len(words[chunk.key].governors)):
        at, seen = chunk.key, 0
        while chunk.start <= at < chunk.end and seen < len(words):
            at, seen = words[at].governors[parse], seen + 1
        found.append(at)
    return found


def _by_vote(setting: Setting, chunk: Chunk, leaning: int = 0) -> Verdict:
    """The majority of the parses; sure where all agree and nothing leans the other way."""
    n = len(setting.words[chunk.key].governors)
    low = _votes(setting, chunk)
    leaning += any(w.low in lx.GROUPS for w in setting.words[setting.last.key : setting.last.end])
    join = 2 * (low + leaning) > n
    risky = setting.rival or leaning or any(c.joint for c in setting.unit[1:])
    sure = not join and low == 0 and not risky
    return Verdict(join, sure=sure, votes=f"{low}/{n}")
