"""The splits of one data set as one: what the paper's columns of RefCOCO, RefCOCO+ and RefCOCOg are over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from refadv_ablate.report.loading import published
from refadv_ablate.report.loading.rows import Row
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.types import ORIGINAL, Comparison

ENDING = "_all_splits"


def pooled(found: Mapping[str, tuple[Cell, Comparison]]) -> dict[str, tuple[Cell, Comparison]]:
    """For each published data set that is there in several splits with its predictions: all of them.

    No family of tests: a pooled column repeats what its splits say.
    """
    splits: dict[str, list[tuple[Cell, Comparison]]] = {}
    for data, (cell, comparison) in found.items():
        key = published.dataset_key(data)
        if key in published.DATASETS:
            splits.setdefault(key, []).append((cell, comparison))
    joined = {}
    for key, parts in splits.items():
        operator = parts[0][1].operator
        if len(parts) > 1 and all(operator in cell.arms for cell, _ in parts):
            cell = _joined([cell for cell, _ in parts], key + ENDING)
            joined[key + ENDING] = cell, _compared(cell, operator, [c for _, c in parts])
    return joined


def _joined(cells: Sequence[Cell], name: str) -> Cell:
    """Their predictions one after another. Ids may repeat between splits; an image that does is one image."""

    def read() -> Iterator[Row]:
        for cell in cells:
            prefix = f"{cell.names.data}:"
            for record in cell.records():
                yield Row(replace(record, example_id=prefix + record.example_id))

    first = cells[0]
    return Cell(replace(first.names, data=name), first.path, read, config=first.config).load()


def _compared(cell: Cell, operator: str, parts: Sequence[Comparison]) -> Comparison:
    return stats.compare(
        cell.arms[ORIGINAL],
        cell.arms[operator],
        model=cell.names.model,
        data=cell.names.data,
        prompt=cell.names.prompt,
        operator=operator,
        planned=sum(part.planned for part in parts),
        n_boot=0,
        metrics=("acc50",),
    )
