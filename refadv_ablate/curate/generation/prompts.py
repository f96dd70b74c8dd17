"""What each way of asking the LLM has to do, and what its answers become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from refadv_ablate.curate.generation.checks import Checks
from refadv_ablate.curate.generation.schemas import Polarity
from refadv_ablate.curate.generation.texts import Stage
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.types import Json

PER_TARGET = 4
"""Expressions that query 2 asks for."""


class Paired(Protocol):
    """A judgement of any form. pair: the numbers of the two most similar candidates."""

    @property
    def pair(self) -> Sequence[int]:
        """Two candidate numbers, from 1."""
        ...


@dataclass(frozen=True, slots=True)
class Made:
    """One expression as the LLM gave it.

    combination: the discriminators that it is made from; () where the form names none. fields: what is
    recorded besides the expression. fault: why it can't be used, found while its form was read. negates:
    whether a phrase that it was given negates by itself ("without a handle").
    """

    expression: str
    combination: tuple[str, ...] = ()
    polarity: Polarity | None = None
    fields: Mapping[str, Json] = field(default_factory=dict)
    fault: str = ""
    negates: bool = False


class Prompts(Protocol):
    """One option of conf/curate/prompts: texts, the form of the answers, and what an answer must mean."""

    @property
    def name(self) -> str:
        """As records and tables show it."""
        ...

    @property
    def judgement(self) -> type[BaseModel]:
        """The form of an answer to query 1."""
        ...

    @property
    def composition(self) -> type[BaseModel]:
        """The form of an answer to query 2."""
        ...

    def texts(self, stage: str) -> Stage:
        """Of judge, compose or one_step. Raises UserError where they aren't there or aren't right."""
        ...

    def judge(self, scene: Scene) -> str:
        """Query 1."""
        ...

    def judgement_fault(self, answer: Any, scene: Scene, checks: Checks) -> str:
        """Why a well-formed judgement means nothing for the scene; "" if it does."""
        ...

    def compose(self, scene: Scene, judgement: Any, target: int) -> str:
        """Query 2 for one member of the pair, by its number."""
        ...

    def made(self, tree: Mapping[str, Any], judgement: Any, target: int) -> Iterator[Made]:
        """The expressions in an answer's JSON, each read by itself: a bad one spoils no other."""
        ...

    def set_fault(self, made: Sequence[Made]) -> str:
        """What the expressions of an answer lack together; "" for nothing."""
        ...
