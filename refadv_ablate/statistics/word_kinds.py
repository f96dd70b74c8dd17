"""Which words matter: Δ by the kind of descriptor taken away, with intervals and Holm over the kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Arm, Columns
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.seeding import generator
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.estimates import difference_of
from refadv_ablate.statistics.pairing import together
from refadv_ablate.statistics.samples import ByImage
from refadv_ablate.types import Estimate

ATTRIBUTE = "removed"
FEWEST = 10
"""Images that a kind needs to be tested."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Δ of Acc@0.5 on the examples that lost a descriptor of this kind."""

    name: str
    delta: Estimate
    p: float | None
    p_holm: float | None


def by_kind(original: Arm, perturbed: Arm, metric: str = "acc50", seed: int = 0) -> list[Kind]:
    """The kinds from the most frequent one; empty where the records don't say what was removed.

    Draws of one example may have lost different kinds: each counts where it belongs.
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
    labels, value_of = after.attributes(ATTRIBUTE), metric_of(metric)
    if labels is None:
        return
    before = before.where(before.answered)
    example, codes = np.unique(before.example, return_inverse=True)
    first = np.bincount(codes, value_of(before.iou)) / np.bincount(codes)
    answered = after.answered & np.isin(after.example, example)
    for name in sorted({str(label) for label in labels if label is not None}):
        rows = after.where(np.asarray(labels == name, bool) & answered)
        ids, at, codes = np.unique(rows.example, return_index=True, return_inverse=True)
        if not len(ids):
            continue
        mean = np.bincount(codes, value_of(rows.iou)) / np.bincount(codes)
        yield name, np.round(mean - first[np.searchsorted(example, ids)], 12), rows.image[at]
