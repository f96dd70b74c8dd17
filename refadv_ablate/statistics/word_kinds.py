"""Which words matter: Δ by the kind of descriptor taken away, with intervals and Holm over the kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.seeding import generator
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.estimates import difference
from refadv_ablate.statistics.inference import Clusters
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
    labels = perturbed.attribute(ATTRIBUTE)
    if labels is None:
        return []
    before, after, value_of = original.columns(), perturbed.columns(), metric_of(metric)
    before = before.where(before.answered)
    example, codes = np.unique(before.example, return_inverse=True)
    first = np.bincount(codes, value_of(before.iou)) / np.bincount(codes)
    kinds, found = sorted({str(label) for label in labels if label is not None}), []
    for name in kinds:
        rows = after.where((labels == name) & after.answered & np.isin(after.example, example))
        ids, at, codes = np.unique(rows.example, return_index=True, return_inverse=True)
        if not len(ids):
            continue
        mean = np.bincount(codes, value_of(rows.iou)) / np.bincount(codes)
        change = np.round(mean - first[np.searchsorted(example, ids)], 12)
        images = np.unique(rows.image[at], return_inverse=True)[1]
        rng = np.random.default_rng(generator(seed, "word kinds", name).getrandbits(128))
        delta = difference(change, images)
        p = None
        if delta.images >= FEWEST:
            p = inference.sign_flip_p(Clusters.of(change, images), rng, 10_000)
        found.append((name, delta, p))
    adjusted = inference.holm([p for _, _, p in found])
    made = [Kind(*each, holm) for each, holm in zip(found, adjusted, strict=True)]
    return sorted(made, key=lambda kind: (-kind.delta.n, kind.name))
