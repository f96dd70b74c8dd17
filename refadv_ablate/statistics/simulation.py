"""Paired experiments with a known Δ, to see whether the inference keeps its word.

A hit is a normal variable below a threshold. It has a part that all examples of an image share and a
part of the example's own, and of each of these a share that the two conditions have in common. The
thresholds fix both accuracies exactly, so the true Δ is known whatever the dependence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.errors import UserError

_BLOCK = 2_000_000
"""Examples simulated at once."""


@dataclass(frozen=True, slots=True)
class Design:
    """One kind of experiment.

    per_image: mean number of examples on an image (1 + Poisson). within: share of the variance that
    examples of one image have in common. agreement: share of the variance that the two conditions have.
    """

    images: int
    per_image: float = 3.0
    baseline: float = 0.6
    delta: float = 0.0
    within: float = 0.4
    agreement: float = 0.5
    sizes: tuple[int, ...] = ()
    """Examples on each image, where they are fixed; `per_image` is their mean then."""

    def __post_init__(self) -> None:
        if self.sizes:
            object.__setattr__(self, "images", len(self.sizes))
            object.__setattr__(self, "per_image", sum(self.sizes) / len(self.sizes))
        if not 0 < self.baseline < 1 or not 0 < self.baseline + self.delta < 1:
            raise UserError(
                f"baseline {self.baseline} and Δ {self.delta}: both accuracies must lie between 0 and 1."
            )


@dataclass(frozen=True, slots=True)
class Experiment:
    """One simulated run: per example its image, and whether it was hit in each condition."""

    image: NDArray[np.intp]
    before: Floats
    after: Floats

    @property
    def change(self) -> Floats:
        """−1, 0 or 1 per example."""
        return self.after - self.before


def experiments(design: Design, times: int, rng: np.random.Generator) -> Iterator[Experiment]:
    """`times` independent experiments of one design."""
    block = max(1, int(_BLOCK / (design.images * design.per_image)))
    for start in range(0, times, block):
        count = min(block, times - start)
        sizes = _sizes(design, count, rng)
        image = np.repeat(np.arange(count * design.images), sizes.ravel())
        before, after = _hits(design, image, count * design.images, rng)
        ends = np.cumsum(sizes.sum(axis=1))
        for index, end in enumerate(ends):
            rows = slice(ends[index - 1] if index else 0, end)
            yield Experiment(image[rows] - index * design.images, before[rows], after[rows])


def _sizes(design: Design, times: int, rng: np.random.Generator) -> NDArray[np.intp]:
    if design.sizes:
        return np.tile(np.array(design.sizes, np.intp), (times, 1))
    return np.asarray(1 + rng.poisson(design.per_image - 1, size=(times, design.images)), np.intp)


def _hits(
    design: Design, image: NDArray[np.intp], images: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    within, agreement = design.within, design.agreement
    both = np.sqrt(agreement) * (
        np.sqrt(within) * rng.standard_normal(images)[image]
        + np.sqrt(1 - within) * rng.standard_normal(len(image))
    )

    def arm(rate: float) -> Floats:
        own = np.sqrt(within) * rng.standard_normal(images)[image]
        own += np.sqrt(1 - within) * rng.standard_normal(len(image))
        latent = both + np.sqrt(1 - agreement) * own
        return np.asarray(latent < NormalDist().inv_cdf(rate), np.float64)

    return arm(design.baseline), arm(design.baseline + design.delta)


def correlations(design: Design, rng: np.random.Generator, images: int = 60_000) -> tuple[float, float]:
    """What `power` asks for, measured on one very large experiment of the design.

    The correlation of hits between the conditions, and that of changes between examples of one image.
    """
    found = next(experiments(replace(design, images=images), 1, rng))
    agreement = np.corrcoef(found.before, found.after)[0, 1]
    change = found.change - found.change.mean()
    sums, counts = np.bincount(found.image, change), np.bincount(found.image)
    within = np.sum(sums**2 - np.bincount(found.image, change**2)) / np.sum(counts * (counts - 1))
    return float(agreement), float(within / change.var())
