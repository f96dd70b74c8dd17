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
from refadv_ablate.running import perturbed_texts as texts
from refadv_ablate.running.run import Job, Reader, examples, run
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
    from refadv_ablate.running import parts as composed

    parts = composed.parts_of(config)
    model = composed.model_of(parts)
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


def _records(parts: Any, model: Silent) -> Iterator[Record]:
    from refadv_ablate.storage.answers import Store

    settings = parts.settings
    job = Job(
        data=parts.data,
        spec=parts.spec,
        model=model,
        style=parts.style,
        texts={label: texts.read(path) for label, path in _texts(parts).items()},
        draws={label: operator.draws for label, operator in parts.operators.items()},
        repeats=frozenset(label for label, op in parts.operators.items() if getattr(op, "repeat", False)),
        limit=settings.limit,
        retry=settings.retry == "format",
    )
    with Store(settings.store) as store:
        yield from run(job, store, Reader(job, _Unwatched()))


def _texts(parts: Any) -> dict[str, Path]:
    """The perturbed texts of the run; made again where their files are gone."""
    settings, data = parts.settings, parts.data
    files = {}
    for label, operator in parts.operators.items():
        place = (settings.out / "texts", data.fingerprint(), label, operator, settings.seed, settings.limit)
        files[label] = texts.ensure(
            texts.texts_path(*place), lambda: examples(data, settings.limit), label, operator, settings.seed
        )
    return files


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
