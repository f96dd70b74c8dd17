"""Records from the prediction store alone: the plan of a run, and no question asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refadv_ablate import assets
from refadv_ablate.errors import UserError
from refadv_ablate.report.loading.rows import Row
from refadv_ablate.report.loading.sources import Cell, Names
from refadv_ablate.running.loaded_model import model_of
from refadv_ablate.running.measure import plan_of, texts_of
from refadv_ablate.running.parts import Parts, parts_of
from refadv_ablate.running.reading import Reader
from refadv_ablate.running.record import as_original
from refadv_ablate.running.run import run
from refadv_ablate.running.settings import store_of
from refadv_ablate.types import Json, Model, Reading, Record, Reply, Request

LACKS = "the store has no answer to it"


@dataclass(frozen=True, slots=True)
class Silent:
    """A model with the name of another that answers nothing: what the store lacks stays missing."""

    model: Model

    def identity(self) -> Mapping[str, Json]:
        """Of the model that did answer, so that its answers are found."""
        return self.model.identity()

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Nothing is known."""
        return ((request, Reply("", finish="error", error=LACKS)) for request in requests)

    def close(self) -> None:
        """Closes what it stands for."""
        self.model.close()


def from_store(config: Any) -> Cell:
    """The cell of the composed config (model, data, prompt, perturb, seed), loaded.

    Raises UserError where the store has none of its answers.
    """
    parts = parts_of(config)
    model = model_of(parts)
    if not getattr(model, "durable", True):
        raise UserError(
            f"{parts.spec.name} answers anew each time and keeps nothing in the store; use source=files"
        )
    names = Names(parts.spec.name, parts.data.name, parts.style.name, parts.spec.checkpoint)
    rows = [Row(record) for record in _records(parts, Silent(model))]
    cell = Cell(names, Path(parts.settings.store), lambda: iter(rows), config=assets.plain(config)).load()
    if all(row.record.outcome in ("missing", "not_perturbable") for row in rows):
        raise UserError(
            f"the store {parts.settings.store} has no answers of {parts.spec.name} to {parts.data.name} with "
            f"this prompt; give the same model, data, prompt, perturb and seed as the run did"
        )
    return cell


def _records(parts: Parts, model: Silent) -> Iterator[Record]:
    files = texts_of(parts, parts.operators)
    plan = plan_of(parts, model, parts.operators, files)
    with store_of(parts.settings) as store:
        yield from map(as_original, run(plan, store, Reader(plan, _Unwatched())))


class _Unwatched:
    """Nobody looks on."""

    def phase(self, name: str, total: int) -> None:
        """Not shown."""

    def reply(
        self, condition: str, reading: Reading | None, score: float | None, reply: Reply, stored: bool
    ) -> None:
        """Not shown."""

    def warn(self, text: str) -> None:
        """Not shown: the cell's summary has it."""
