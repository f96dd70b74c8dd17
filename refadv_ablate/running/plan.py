"""What is asked: the original of each example, then each operator's draws, side by side.

Every condition of an example is planned next to the others, so that a server's image cache and an
engine's shared preprocessing can be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from refadv_ablate.data.expressions import unusable
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.prompting import prompts
from refadv_ablate.running.ask import Keys
from refadv_ablate.running.perturbed_texts import OtherImages, Stream
from refadv_ablate.types import (
    EMPTY,
    ORIGINAL,
    ORIGINAL_OR_NONE,
    Data,
    Example,
    Json,
    Model,
    ModelSpec,
    Operator,
    Perturbed,
    Request,
)


@dataclass(frozen=True)
class Plan:
    """One model, one data set, one prompt style, any number of operators."""

    data: Data
    spec: ModelSpec
    model: Model
    style: prompts.Style
    texts: Mapping[str, Callable[[], Iterator[Mapping[str, Json]]]]
    """Operator label → its perturbed texts, each draw of each example in the order of the data."""
    draws: Mapping[str, int]
    """Operator label → texts of one example; 0: as many as there are."""
    repeats: frozenset[str] = frozenset()
    """Labels of no-op arms, asked past the store."""
    or_none: frozenset[str] = frozenset()
    """Labels whose question allows the answer "none", as does the original that they are compared with."""
    limit: int | None = None
    retry: bool = False
    """One further turn that asks for the box alone, after an answer without a readable box."""
    durable: bool = True
    """False for models that answer in microseconds: nothing is stored."""
    notice: Mapping[str, Callable[[Request], float | None]] = field(default_factory=dict)
    """Name → a fact of an original request, such as the chance level; averaged where it is known."""
    about: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Labels kept beside stored answers."""

    def original_of(self, label: str) -> str:
        """The original condition that an operator is compared with."""
        return ORIGINAL_OR_NONE if label in self.or_none else ORIGINAL

    def originals(self) -> tuple[str, ...]:
        """Those that the operators of this plan need, in the order in which they are asked."""
        return tuple(sorted({self.original_of(label) for label in self.texts}))


def traits(operators: Mapping[str, Operator]) -> dict[str, Any]:
    """What a plan needs to know of its operators: `draws`, `repeats` and `or_none`."""
    return {
        "draws": {label: operator.draws for label, operator in operators.items()},
        "repeats": frozenset(label for label, o in operators.items() if getattr(o, "repeat", False)),
        "or_none": frozenset(label for label, o in operators.items() if getattr(o, "or_none", False)),
    }


@dataclass(frozen=True, slots=True)
class Planned:
    """One answer of the plan; without a request where no perturbed text exists."""

    condition: str
    draw: int
    perturbed: Perturbed
    request: Request | None = None
    key: str = ""
    unaskable: str = ""
    """Why nothing is sent although there is a text, such as an image that the model can't take."""


def examples(data: Data, limit: int | None) -> Iterator[Example]:
    """The first `limit` examples of the data, or all."""
    for index, example in enumerate(data):
        if limit is not None and index >= limit:
            return
        yield example


def planned(plan: Plan, keys: Keys) -> Iterator[Planned]:
    """Every answer that is wanted, example by example: the original, then each operator's draws."""
    streams = {label: Stream(read(), label) for label, read in plan.texts.items()}
    images, originals = OtherImages(plan.data), plan.originals()
    for example in examples(plan.data, plan.limit):
        for condition in originals:
            yield _planned(plan, keys, Perturbed(example, example, "unchanged"), condition, 0)
        for label, stream in streams.items():
            for draw, perturbed in enumerate(stream.of(example, plan.draws[label], images)):
                yield _planned(plan, keys, perturbed, label, draw)


def _planned(plan: Plan, keys: Keys, perturbed: Perturbed, condition: str, draw: int) -> Planned:
    if perturbed.status == "changed" and (problem := unusable(perturbed.example.expression)):
        perturbed = replace(perturbed, status="not_perturbable", reason=f"in its perturbed text, {problem}")
    if perturbed.status == "not_perturbable":
        return Planned(condition, draw, perturbed)
    repeat = draw + 1 if condition in plan.repeats else 0
    style = plan.style
    if condition == ORIGINAL_OR_NONE or condition in plan.or_none:
        style = replace(style, or_none=True)
    try:
        request = prompts.build(plan.spec, style, perturbed, condition, draw, repeat)
        return Planned(condition, draw, perturbed, request, keys(request))
    except ImageUnreadable as error:  # this example's alone: the others are asked
        return Planned(condition, draw, perturbed, unaskable=str(error))
