"""Cells on the part of their examples that was asked for: changed texts, or what all cells have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import NOT_SCORED
from refadv_ablate.report.loading.rows import Row
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.types import ORIGINAL, Record

CHOICES = ("all", "changed", "common")


def restricted(cells: Sequence[Cell], examples: str) -> list[Cell]:
    """all: as they are. changed: perturbed answers to texts that differ from the original ones.

    common: examples that every condition of every cell on the same data answered, each draw of them, so
    that all operators and models stand on the same ones. Raises UserError where nothing is left.
    """
    if examples == "all":
        return list(cells)
    if examples == "changed":
        return [_kept(cell, lambda r: r.condition == ORIGINAL or r.status == "changed") for cell in cells]
    common = {data: _common([c for c in cells if c.names.data == data]) for data in _datasets(cells)}
    return [_kept(cell, _within(common[cell.names.data])) for cell in cells]


def _datasets(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.names.data for cell in cells))


def _within(ids: set[str]) -> Callable[[Record], bool]:
    return lambda record: record.example_id in ids


def _common(cells: Sequence[Cell]) -> set[str]:
    """An example with a lacking draw is in no cell's common part."""
    found: set[str] | None = None
    for cell in cells:
        answered: dict[str, set[str]] = {}
        lacking: set[str] = set()
        for record in cell.records():
            answered.setdefault(record.condition, set()).add(record.example_id)
            if record.outcome in NOT_SCORED:
                lacking.add(record.example_id)
        own = set.intersection(*answered.values()) - lacking
        found = own if found is None else found & own
    return found or set()


def _kept(cell: Cell, keep: Callable[[Record], bool]) -> Cell:
    def read() -> Iterator[Row]:
        return (row for row in cell.read() if keep(row.record))

    try:
        return replace(cell, read=read, arms={}, answers={}, planned=0, warnings=list(cell.warnings)).load()
    except UserError as error:
        raise UserError(f"{cell.path}: no example is left with the examples that were asked for") from error
