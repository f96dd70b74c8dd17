"""Whether a chunk goes on with what stands before it or tells something new of the referent.

Rules by class decide where language leaves no choice (a person wears, a garment doesn't); elsewhere
the parses are asked, and what they don't agree on is doubtful.
"""

from __future__ import annotations

from perturbations import border_rules as rules
from perturbations import lexicon as lx
from perturbations.chunks import Chunk
from perturbations.setting import JOIN, NEW, PART, Setting, Verdict, by_vote
from perturbations.telegraphic_borders import border


def verdict(setting: Setting, chunk: Chunk) -> Verdict:
    """Where the chunk belongs."""
    if setting.hurried and (said := border(setting, chunk)) is not None:
        return said
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
    if (inside := rules.inside_with(setting, chunk)) is not None:
        return inside
    by_kind = {
        "prep": rules.prep,
        "verb": rules.verb,
        "relative": rules.relative,
        "grade": rules.grade,
    }
    return by_kind.get(chunk.kind, rules.odd)(setting, chunk)


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
        return by_vote(setting, chunk)
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
