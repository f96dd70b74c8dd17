"""Which words matter: Δ by the kind of descriptor taken away or word displaced, intervals, Holm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Arm, Columns, Mask
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.seeding import generator
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.estimates import difference_of
from refadv_ablate.statistics.pairing import together
from refadv_ablate.statistics.samples import ByImage
from refadv_ablate.types import Estimate

REMOVED, DISPLACED = "removed", "displaced"
"""Attributes of answers: the kind of what was taken away, and the kinds of words without old neighbours."""
FEWEST = 10
"""Images that a kind needs to be tested."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Δ of Acc@0.5 on the examples that lost a descriptor of this kind, or had words of it displaced."""

    name: str
    delta: Estimate
    p: float | None
    p_holm: float | None


def by_kind(original: Arm, perturbed: Arm, metric: str = "acc50", seed: int = 0) -> list[Kind]:
    """The kinds from the most frequent one; empty where the records don't say what became of which words.

    Draws of one example may have lost different kinds: each counts where it belongs. Words of several kinds
    may be displaced in one text: it counts for each of them.
    """
    gathered = ByImage()
    for before, after in together(original, perturbed):
        for name, change, images in _changes(before, after, metric):
            gathered.add(name, change, images)
    found, samples = [], gathered.samples()
    for name in sorted(map(str, samples)):
        rng = np.random.default_rng(generator(seed, "word kinds", name).getrandbits(128))
        delta, p = difference_of(samples[name]), None
        if delta.images >= FEWEST:
            p = inference.sign_flip_p(samples[name].clusters, rng, 10_000)
        found.append((name, delta, p))
    adjusted = inference.holm([p for _, _, p in found])
    made = [Kind(*each, holm) for each, holm in zip(found, adjusted, strict=True)]
    return sorted(made, key=lambda kind: (-kind.delta.n, kind.name))


def _changes(
    before: Columns, after: Columns, metric: str
) -> Iterator[tuple[str, Floats, NDArray[np.uint64]]]:
    """For each kind: the changes of the examples that lost it, and their images."""
    value_of = metric_of(metric)
    before = before.where(before.answered)
    example, codes = np.unique(before.example, return_inverse=True)
    first = np.bincount(codes, value_of(before.iou)) / np.bincount(codes)
    answered = after.answered & np.isin(after.example, example)
    for name, own in _kinds(after):
        rows = after.where(own & answered)
        ids, at, codes = np.unique(rows.example, return_index=True, return_inverse=True)
        if not len(ids):
            continue
        mean = np.bincount(codes, value_of(rows.iou)) / np.bincount(codes)
        yield name, np.round(mean - first[np.searchsorted(example, ids)], 12), rows.image[at]


def _kinds(after: Columns) -> Iterator[tuple[str, Mask]]:
    """Each kind with the rows that it is about."""
    removed, displaced = after.attributes(REMOVED), after.attributes(DISPLACED)
    if removed is not None:
        for name in sorted({str(label) for label in removed if label is not None}):
            yield name, np.asarray(removed == name, bool)
    if displaced is not None:
        each = [frozenset(filter(None, str(label or "").split(","))) for label in displaced]
        for name in sorted(frozenset().union(*each)):
            yield f"{name}, displaced", np.array([name in kinds for kinds in each], bool)
