"""Where a model fails: shares of the answers by where they landed, in both conditions, and the flow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.landing import LANDINGS
from refadv_ablate.parsing.scoring import Arm, Columns
from refadv_ablate.statistics.estimates import difference_of, fraction_of
from refadv_ablate.statistics.pairing import together
from refadv_ablate.statistics.samples import Gathered, Sample
from refadv_ablate.storage.columns import Spool, pieces
from refadv_ablate.types import Estimate

ATTRIBUTE = "landed"


@dataclass(frozen=True, slots=True)
class Share:
    """Of all paired examples: how many answers landed so in each condition, and the change."""

    kind: str
    original: Estimate
    perturbed: Estimate
    change: Estimate


@dataclass(frozen=True, slots=True)
class Flow:
    """`moved[i, j]`: examples whose answer went from kind i to kind j, draws as fractions of an example."""

    kinds: tuple[str, ...]
    shares: tuple[Share, ...]
    moved: Floats

    def of_misses(self, kind: str) -> tuple[float | None, float | None]:
        """The kind's part of the misses, original and perturbed; None where nothing was missed."""
        place, hit = self.kinds.index(kind), self.kinds.index("referent")
        parts = []
        for totals in (self.moved.sum(axis=1), self.moved.sum(axis=0)):
            misses = float(totals.sum() - totals[hit])
            parts.append(float(totals[place]) / misses if misses > 0 else None)
        return parts[0], parts[1]


def flow(original: Arm, perturbed: Arm) -> Flow | None:
    """Over the examples answered in both arms; None where the records don't say where answers landed."""
    size = len(LANDINGS)
    moved, rows = np.zeros((size, size)), Spool({"image": "Q", "before": f"{size}d", "after": f"{size}d"})
    for both in together(original, perturbed):
        before, after = (_shares(columns) for columns in both)
        if before is None or after is None:
            return None
        _, left, right = np.intersect1d(before.example, after.example, return_indices=True)
        one, two, image = before.rows[left], after.rows[right], before.image[left]
        moved += one.T @ two
        rows.extend({"image": image, "before": one, "after": two})
    if not moved.any():
        return None
    samples = _samples(rows)
    kinds = [i for i in range(size) if moved[i].any() or moved[:, i].any() or i == 0]
    shares = tuple(
        Share(
            LANDINGS[i],
            fraction_of(samples["original", i]),
            fraction_of(samples["perturbed", i]),
            difference_of(samples["change", i]),
        )
        for i in kinds
    )
    return Flow(tuple(LANDINGS[i] for i in kinds), shares, moved[np.ix_(kinds, kinds)])


def _samples(rows: Spool) -> Mapping[tuple[str, int], Sample]:
    """Of the shares of each kind in both conditions, and of their change, by image."""
    found: dict[tuple[str, int], Gathered] = defaultdict(Gathered)
    for table in rows.parted("image", pieces(len(rows))):
        _, image = np.unique(table["image"], return_inverse=True)
        for i in range(len(LANDINGS)):
            one, two = table["before"][:, i], table["after"][:, i]
            found["original", i].add(one, image)
            found["perturbed", i].add(two, image)
            found["change", i].add(np.round(two - one, 12), image)
    return {key: gathered.sample() for key, gathered in found.items()}


@dataclass(frozen=True, slots=True)
class _Rows:
    example: NDArray[np.uint64]
    image: NDArray[np.uint64]
    rows: Floats
    """(examples, kinds): which part of an example's answers landed so."""


def _shares(columns: Columns) -> _Rows | None:
    labels = columns.attributes(ATTRIBUTE)
    if labels is None:
        return None
    place: Mapping[str, int] = {kind: i for i, kind in enumerate(LANDINGS)}
    codes = np.array([place.get(str(label), -1) for label in labels], int)
    keep = (codes >= 0) & columns.answered
    example, first, rows = np.unique(columns.example[keep], return_index=True, return_inverse=True)
    counts = np.zeros((len(example), len(LANDINGS)))
    np.add.at(counts, (rows, codes[keep]), 1.0)
    return _Rows(example, columns.image[keep][first], counts / counts.sum(axis=1, keepdims=True))
