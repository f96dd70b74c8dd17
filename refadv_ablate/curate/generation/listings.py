"""The forms of the paper's Listings 1 and 2 (arXiv 2602.23898, appendix C), and what they must mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from refadv_ablate.curate.generation.schemas import Phrase, Polarity, Strict, pair_fault, same_phrase

POLARITY: dict[str, Polarity] = {"only_positive": "positive", "only_negative": "negation", "both": "both"}
"""`inpair_phrase` → the polarity as this project calls it."""

Two = Annotated[list[int], Field(min_length=2, max_length=2)]
Ids = Annotated[list[str], Field(min_length=1, max_length=6)]


class SimilarGroup(Strict):
    """ids: the numbers of the two most similar objects, i and j."""

    ids: Two
    label: Literal["A"]


class Groups(Strict):
    """A: the similar pair; B: all other objects."""

    A: list[int]
    B: list[int]


class GroupDiscriminator(Strict):
    """A property that tells group A from group B, with a phrase for each side."""

    id: Literal["G1", "G2"]
    name: Phrase
    A: Phrase
    B: Phrase


class InPairDiscriminator(Strict):
    """A property that tells the two objects of group A from each other, with a phrase for each."""

    id: Literal["P1", "P2", "P3", "P4"]
    name: Phrase
    i: Phrase
    j: Phrase
    noticeability: Literal["noticeable", "unnoticeable"]


class Listing1(Strict):
    """Answer to query 1."""

    similar_group: SimilarGroup
    groups: Groups
    group_discriminators: Annotated[list[GroupDiscriminator], Field(min_length=2, max_length=2)]
    in_pair_discriminators: Annotated[list[InPairDiscriminator], Field(min_length=4, max_length=4)]

    @property
    def pair(self) -> list[int]:
        """The two most similar objects, i and j, by their numbers."""
        return self.similar_group.ids

    def phrases(self) -> list[str]:
        """Every phrase that an expression may take over."""
        groups = [phrase for d in self.group_discriminators for phrase in (d.A, d.B)]
        return groups + [phrase for d in self.in_pair_discriminators for phrase in (d.i, d.j)]


class Expression(Strict):
    """One expression; inpair_phrase says which of the two in-pair phrases its text uses."""

    id: Literal["E1", "E2", "E3", "E4"]
    target_id: int
    group_dids: Ids
    pair_dids: Ids
    inpair_positive_phrase: Phrase
    inpair_negative_phrase: Phrase
    inpair_phrase: Literal["only_positive", "only_negative", "both"]
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]


class Listing2(Strict):
    """Answer to query 2."""

    expressions: Annotated[list[Expression], Field(min_length=4, max_length=4)]


def listing1_fault(answer: Listing1, objects: int) -> str:
    """Why a judgement means nothing for a scene with so many objects; "" if it does."""
    if fault := pair_fault(answer.pair, objects):
        return fault
    if sorted(answer.groups.A) != sorted(answer.pair):
        return f"groups.A must be the ids of similar_group, {sorted(answer.pair)}"
    rest = sorted(set(range(1, objects + 1)) - set(answer.pair))
    if sorted(answer.groups.B) != rest:
        return f"groups.B must be exactly {rest}"
    groups, pairs = answer.group_discriminators, answer.in_pair_discriminators
    for name, ids in (("group", [d.id for d in groups]), ("in_pair", [p.id for p in pairs])):
        if len(set(ids)) < len(ids):
            return f"an id stands twice in {name}_discriminators"
    noticeable = sum(one.noticeability == "noticeable" for one in pairs)
    if noticeable != 2:
        return f"exactly 2 in_pair_discriminators must be noticeable and 2 unnoticeable, not {noticeable}"
    sides = [(d.id, d.A, d.B) for d in groups] + [(p.id, p.i, p.j) for p in pairs]
    for key, one, other in sides:
        if same_phrase(one, other):
            return f"the two phrases of {key} are the same"
    for number, (key, one, _) in enumerate(sides):
        for earlier, before, _ in sides[:number]:
            if key[0] == earlier[0] and same_phrase(one, before):
                return f"{key} says the same as {earlier}"
    return ""


def expression_fault(one: Expression, judgement: Listing1, target: int, used: set[str]) -> str:
    """Why an expression doesn't go with its judgement and target. `used`: ids of those before it."""
    if one.target_id != target:
        return f"it is meant for another object: target_id is {one.target_id}, asked for was {target}"
    if one.id in used:
        return f"its id stands twice: {one.id}"
    known: set[str] = {d.id for d in judgement.group_discriminators}
    known_pairs: dict[str, InPairDiscriminator] = {p.id: p for p in judgement.in_pair_discriminators}
    for name, ids, among in (
        ("group_dids", one.group_dids, known),
        ("pair_dids", one.pair_dids, set(known_pairs)),
    ):
        if strange := [key for key in ids if key not in among]:
            return f"{name} names an unknown id: {strange[0]!r}, known are {', '.join(sorted(among))}"
        if len(ids) != 1:
            return f"{name} must name exactly one discriminator: it names {len(ids)}"
    pair = known_pairs[one.pair_dids[0]]
    own, other = (pair.i, pair.j) if target == judgement.pair[0] else (pair.j, pair.i)
    if same_phrase(one.inpair_positive_phrase, other):
        return f"inpair_positive_phrase is that of the other object: {other!r}"
    if same_phrase(one.inpair_negative_phrase, own):
        return f"inpair_negative_phrase is that of the target: {own!r}"
    if same_phrase(one.inpair_positive_phrase, one.inpair_negative_phrase):
        return "the two in-pair phrases are the same"
    return ""
