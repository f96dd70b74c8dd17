"""Examples answered in two arms, brought together by id and then by image, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Arm, Columns, Mask
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.storage.columns import Spool, Table, pieces


@dataclass(frozen=True, slots=True)
class Pairs:
    """Examples answered in both arms, sorted by id: draws averaged within the example.

    `draws` is the perturbed value per draw, shape (number of draws, examples), NaN where not answered; empty
    where there is one draw. In a block of `Paired.blocks`, `image` numbers the images, and no other block has
    examples on them.
    """

    example: NDArray[np.uint64]
    image: NDArray[np.uint64] | NDArray[np.intp]
    original: Mapping[str, Floats]
    perturbed: Mapping[str, Floats]
    draws: Mapping[str, Floats]
    marks: Mapping[str, Mask]

    def where(self, rows: Mask) -> Pairs:
        """Some of the examples; without marks."""
        return Pairs(
            self.example[rows],
            self.image[rows],
            {name: values[rows] for name, values in self.original.items()},
            {name: values[rows] for name, values in self.perturbed.items()},
            {name: values[:, rows] for name, values in self.draws.items()},
            {},
        )


def together(original: Arm, perturbed: Arm) -> Iterator[tuple[Columns, Columns]]:
    """Pieces of two arms that hold the same examples, ascending by example."""
    number = pieces(max(len(original), len(perturbed)))
    return zip(original.parts(number), perturbed.parts(number), strict=True)


def examples(columns: Columns) -> tuple[NDArray[np.uint64], NDArray[np.intp], NDArray[np.intp]]:
    """Sorted distinct examples, the example of each row, the first row of each example."""
    example, first, codes = np.unique(columns.example, return_index=True, return_inverse=True)
    return example, codes, first


def mean_by(codes: NDArray[np.intp], n: int, values: Floats) -> Floats:
    """Mean of the values of each code, 0 … n − 1."""
    means: Floats
    if len(codes) == n:
        means = np.empty(n)
        means[codes] = values
        return means
    order = np.lexsort((values, codes))  # the order of the answers must not show in the last digit
    means = np.bincount(codes[order], weights=values[order], minlength=n) / np.bincount(codes, minlength=n)
    return means


def pair(before: Columns, after: Columns, metrics: Sequence[str], draws: Sequence[int] = ()) -> Pairs:
    """The rows of both that are of the same examples; `draws`: those to keep apart as well."""
    ids_before, codes_before, first_before = examples(before)
    ids_after, codes_after, _ = examples(after)
    both, left, right = np.intersect1d(ids_before, ids_after, assume_unique=True, return_indices=True)
    original, perturbed, by_draw = {}, {}, {}
    for name in metrics:
        value_of = metric_of(name)
        values = value_of(after.iou)
        original[name] = mean_by(codes_before, len(ids_before), value_of(before.iou))[left]
        perturbed[name] = mean_by(codes_after, len(ids_after), values)[right]
        grid = np.full((len(draws), len(ids_after)), np.nan)
        if len(draws):
            grid[np.searchsorted(draws, after.draw), codes_after] = values
        by_draw[name] = grid[:, right]
    return Pairs(both, before.image[first_before][left], original, perturbed, by_draw, {})


def answered(before: Columns, after: Columns, metric: str) -> Pairs:
    """The pairs of what was answered in both, by one metric."""
    return pair(before.where(before.answered), after.where(after.answered), (metric,))


class Paired:
    """The pairs of two arms, kept in columns. marks: names of the parts that an example may belong to."""

    def __init__(self, metrics: Sequence[str], draws: Sequence[int] = (), marks: Sequence[str] = ()) -> None:
        self.metrics, self.marks = tuple(metrics), tuple(marks)
        self.draws = tuple(draws) if len(draws) > 1 else ()
        each = [f"{side} {name}" for name in metrics for side in ("original", "perturbed", *self.draws)]
        types = {"example": "Q", "image": "Q", **dict.fromkeys(each, "d"), **dict.fromkeys(self.marks, "B")}
        self._rows = Spool(types)
        self._known: list[Pairs] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self, before: Columns, after: Columns, marks: Mapping[str, NDArray[np.uint64]] | None = None
    ) -> None:
        """A piece of each arm. marks: name → the examples that belong to it."""
        found = pair(before, after, self.metrics, self.draws)
        columns: dict[str, NDArray[np.generic]] = {"example": found.example, "image": found.image}
        for name in self.metrics:
            columns[f"original {name}"] = found.original[name]
            columns[f"perturbed {name}"] = found.perturbed[name]
            for draw, values in zip(self.draws, found.draws[name], strict=True):
                columns[f"{draw} {name}"] = values
        for mark in self.marks:
            columns[mark] = np.isin(found.example, (marks or {})[mark])
        self._rows.extend(columns)

    def blocks(self) -> Iterator[Pairs]:
        """All pairs, in blocks by image."""
        number = pieces(len(self._rows))
        if number == 1:  # gone through once for every metric and part
            self._known = self._known or [self._pairs(self._rows.all())]
            yield from self._known
            return
        yield from map(self._pairs, self._rows.parted("image", number))

    def _pairs(self, rows: Table) -> Pairs:
        values = {
            side: {name: np.ascontiguousarray(rows[f"{side} {name}"]) for name in self.metrics}
            for side in ("original", "perturbed")
        }
        draws = {
            name: np.array([rows[f"{draw} {name}"] for draw in self.draws]).reshape(
                len(self.draws), len(rows)
            )
            for name in self.metrics
        }
        _, image = np.unique(rows["image"], return_inverse=True)
        marks = {mark: rows[mark] == 1 for mark in self.marks}
        return Pairs(rows["example"], image, values["original"], values["perturbed"], draws, marks)


def paired_values(
    original: Arm, perturbed: Arm, metric: str = "acc50"
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], Floats, Floats]:
    """Example, image and the metric in both conditions, of the examples answered in both, by example."""
    found = [answered(before, after, metric) for before, after in together(original, perturbed)]
    return (
        np.concatenate([each.example for each in found]),
        np.concatenate([each.image.astype(np.uint64) for each in found]),
        np.concatenate([each.original[metric] for each in found]),
        np.concatenate([each.perturbed[metric] for each in found]),
    )
