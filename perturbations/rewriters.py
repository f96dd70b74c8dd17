"""The seam between deleting a descriptor and what understands language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from refadv_ablate.types import Json


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A part of an expression that narrows down what is meant.

    `text` as a person reads it ("second … from the right"); `spans` are its character ranges in the
    expression, end exclusive, where known; `cuts` are what goes when it is deleted, a conjunction or
    comma included. doubt: 0 where nothing speaks against these borders, 1 where most of the parses are
    for them, 2 where they may be wrong. votes: for each border that was voted on, parses of all that
    hang what follows on what stands before.
    """

    text: str
    kind: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()
    doubt: int = 0
    votes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an expression is made of. No descriptors: `reason` says why."""

    head: str
    descriptors: tuple[Descriptor, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The rewriter could not be reached: says nothing about the expression, never a result."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Job:
    """A deletion that is asked for."""

    expression: str
    extraction: Extraction
    descriptor: Descriptor


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The expression without the descriptor; `fault` says why it can't be used ("" if it can)."""

    text: str
    fault: str = ""
    detail: Mapping[str, Json] = field(default_factory=dict)


@runtime_checkable
class Rewriter(Protocol):
    """Finds descriptors and deletes one. Results in the order of what was asked, one for each."""

    @property
    def batch(self) -> int:
        """How many expressions it likes to get at once."""

    def extract(self, expressions: Sequence[str]) -> Sequence[Extraction | Unanswered]:
        """Head and descriptors of each expression. Raises UserError where it can't work at all."""

    def rewrite(self, jobs: Sequence[Job]) -> Sequence[Rewrite | Unanswered]:
        """Each expression without its descriptor."""

    def identity(self) -> Mapping[str, Json]:
        """What determines its results, without secrets. JSON."""


@runtime_checkable
class Changer(Protocol):
    """A rewriter that can also say something else in place of a descriptor."""

    def change(self, jobs: Sequence[Job]) -> Sequence[Rewrite | Unanswered]:
        """Each expression with its descriptor changed so that another thing of the same kind is meant."""

    def change_identity(self) -> Mapping[str, Json]:
        """What determines the changes besides `identity`. JSON."""
