"""What is asked: the original of each example, then each operator's draws, side by side.

Every condition of an example is planned next to the others, so that a server's image cache and an
engine's shared preprocessing can be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from refadv_ablate.errors import ImageUnreadable, UserError
from refadv_ablate.prompting import prompts
from refadv_ablate.running.ask import Keys
from refadv_ablate.storage.jsonl import FieldError
from refadv_ablate.storage.records import perturbed_from_json
from refadv_ablate.types import (
    EMPTY,
    ORIGINAL,
    Data,
    Example,
    Json,
    Model,
    ModelSpec,
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
    repeats: frozenset[str] = frozenset()
    """Labels of no-op arms, asked past the store."""
    limit: int | None = None
    retry: bool = False
    """One further turn that asks for the box alone, after an answer without a readable box."""
    durable: bool = True
    """False for models that answer in microseconds: nothing is stored."""
    notice: Mapping[str, Callable[[Request], float | None]] = field(default_factory=dict)
    """Name → a fact of an original request, such as the chance level; averaged where it is known."""
    about: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Labels kept beside stored answers."""


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
    streams = {label: read() for label, read in plan.texts.items()}
    for example in examples(plan.data, plan.limit):
        yield _planned(plan, keys, Perturbed(example, example, "unchanged"), ORIGINAL, 0)
        for label, stream in streams.items():
            for draw in range(plan.draws[label]):
                yield _planned(plan, keys, _perturbed(stream, label, example), label, draw)


def _perturbed(stream: Iterator[Mapping[str, Json]], label: str, example: Example) -> Perturbed:
    """The next text, for this example; UserError where the texts are of other examples."""
    try:
        line = next(stream, None)
        if line is not None:
            return perturbed_from_json(line, example)
        reason = f"there is none for {example.id!r}"
    except FieldError as error:
        reason = str(error)
    raise UserError(
        f"the texts of {label} were made for other examples than the data has now ({reason}): images or rows "
        "came or went since; give another out=, or delete the file of these texts under out/texts"
    )


def _planned(plan: Plan, keys: Keys, perturbed: Perturbed, condition: str, draw: int) -> Planned:
    if perturbed.status == "not_perturbable":
        return Planned(condition, draw, perturbed)
    repeat = draw + 1 if condition in plan.repeats else 0
    try:
        request = prompts.build(plan.spec, plan.style, perturbed, condition, draw, repeat)
        return Planned(condition, draw, perturbed, request, keys(request))
    except ImageUnreadable as error:  # this example's alone: the others are asked
        return Planned(condition, draw, perturbed, unaskable=str(error))
