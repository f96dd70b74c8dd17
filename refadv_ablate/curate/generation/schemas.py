"""The forms of answers to `prompts=default`, and whether a judgement means something for its scene."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=120)]
Polarity = Literal["positive", "negation", "both"]


class Strict(BaseModel):
    """An answer without fields of its own, in which a number is a number and a text a text."""

    model_config = ConfigDict(extra="forbid", strict=True)


class GroupDiscriminator(Strict):
    """A property that tells the pair (group A) from all other candidates (group B)."""

    property: Phrase
    phrase_a: Phrase
    phrase_b: Phrase


class PairDiscriminator(Strict):
    """A property that tells the two members of the pair from each other."""

    property: Phrase
    noticeable: bool
    phrase_first: Phrase
    phrase_second: Phrase


class Judgement(Strict):
    """Answer to query 1. pair: the two most similar candidates (group A), by their numbers."""

    pair: Annotated[list[int], Field(min_length=2, max_length=2)]
    others: list[int]
    group_discriminators: Annotated[list[GroupDiscriminator], Field(min_length=2, max_length=2)]
    pair_discriminators: Annotated[list[PairDiscriminator], Field(min_length=4, max_length=4)]


class Composed(Strict):
    """One expression. group: 1 or 2, pair: 1 to 4: which discriminators it was made from."""

    group: Annotated[int, Field(ge=1, le=2)]
    pair: Annotated[int, Field(ge=1, le=4)]
    polarity: Polarity
    expression: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]


class Composition(Strict):
    """Answer to query 2: expressions for one target."""

    expressions: Annotated[list[Composed], Field(min_length=4, max_length=4)]


class OneStepTarget(Strict):
    """Expressions for one member of the pair, in the single-step ablation."""

    target: int
    expressions: Annotated[list[Phrase], Field(min_length=4, max_length=4)]


class OneStep(Strict):
    """Answer of the single-step ablation: the pair and all of its expressions at once."""

    pair: Annotated[list[int], Field(min_length=2, max_length=2)]
    targets: Annotated[list[OneStepTarget], Field(min_length=2, max_length=2)]


def judgement_fault(answer: Judgement, candidates: int) -> str:
    """Why a judgement means nothing for a scene with so many candidates; "" if it does."""
    if fault := pair_fault(answer.pair, candidates):
        return fault
    if len(set(answer.others)) != len(answer.others):
        return "a number stands twice in others"
    if set(answer.pair) & set(answer.others):
        return "pair and others share a number"
    expected = set(range(1, candidates + 1)) - set(answer.pair)
    if set(answer.others) != expected:
        return f"others must be exactly {sorted(expected)}"
    noticeable = sum(d.noticeable for d in answer.pair_discriminators)
    if noticeable != 2:
        return f"exactly 2 pair discriminators must be noticeable and 2 unnoticeable, not {noticeable}"
    for group in answer.group_discriminators:
        if same_phrase(group.phrase_a, group.phrase_b):
            return f"the phrases of {group.property!r} for A and for B are the same"
    for one in answer.pair_discriminators:
        if same_phrase(one.phrase_first, one.phrase_second):
            return f"the phrases of {one.property!r} for the two of the pair are the same"
    for name, phrases in (
        ("group", [d.phrase_a for d in answer.group_discriminators]),
        ("pair", [d.phrase_first for d in answer.pair_discriminators]),
    ):
        if len({plain_phrase(p) for p in phrases}) < len(phrases):
            return f"two {name} discriminators say the same"
    return ""


def pair_fault(pair: Sequence[int], candidates: int) -> str:
    """Why these are no two candidates of the scene."""
    for number in pair:
        if not 1 <= number <= candidates:
            return f"there is no candidate {number}; they are 1 to {candidates}"
    return "the pair must be two different candidates" if pair[0] == pair[1] else ""


def one_step_fault(answer: OneStep, candidates: int) -> str:
    """As `judgement_fault`, for the single-step ablation."""
    if fault := pair_fault(answer.pair, candidates):
        return fault
    targets = [one.target for one in answer.targets]
    return "" if sorted(targets) == sorted(answer.pair) else f"targets must be the pair {answer.pair}"


def plain_phrase(text: str) -> str:
    """What two phrases share that say the same to the letter."""
    return " ".join(text.casefold().split())


def same_phrase(a: str, b: str) -> bool:
    """Whether two phrases say the same to the letter."""
    return plain_phrase(a) == plain_phrase(b)
