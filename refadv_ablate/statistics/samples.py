"""Values of examples, taken in block by block, as what every estimate and test needs of them.

That is the sum and the size of each image and a few totals, so that a million examples take no more memory
than the images that they lie on; of many images those that are alike are counted together.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.inference import Clusters
from refadv_ablate.storage.columns import Spool, pieces


@dataclass(frozen=True, slots=True)
class Sample:
    """Values on images. hits: each is 0 or 1. some: one is not 0. squares: Σ v². apart: Σ (v − mean)²."""

    clusters: Clusters
    hits: bool
    some: bool
    squares: float
    apart: float

    @classmethod
    def of(cls, values: Floats, images: NDArray[Any]) -> Sample:
        """All values at once; `images` as `Clusters.of` takes them."""
        return Gathered().add(values, images).sample()


@dataclass
class Gathered:
    """A sample in the making."""

    _parts: list[Clusters] = field(default_factory=list)
    _listed: int = 0
    _n: int = 0
    _mean: float = 0.0
    _apart: float = 0.0
    _squares: float = 0.0
    _hits: bool = True
    _some: bool = False

    def add(self, values: Floats, images: NDArray[Any]) -> Gathered:
        """A block of examples; no image of it may be in another block."""
        values = np.asarray(values, float)
        if not len(values):
            return self
        self._parts.append(Clusters.of(values, images))
        self._listed += len(self._parts[-1].sizes)
        if self._listed > inference.MOST:
            self._parts = [Clusters.joined(self._parts)]
            self._listed = 0
        self._hits = self._hits and bool(np.all((values == 0) | (values == 1)))
        self._some = self._some or bool(np.any(values))
        self._squares += float(values @ values)
        self._spread(values)
        return self

    def _spread(self, values: Floats) -> None:
        """Chan, Golub and LeVeque's sum of two blocks."""
        n, mean = len(values), float(values.mean())
        away = values - mean
        apart, step = float(np.sum(away * away)), mean - self._mean
        whole = self._n + n
        self._apart += apart + step**2 * self._n * n / whole
        self._mean = mean if not self._n else self._mean + step * n / whole
        self._n = whole

    def sample(self) -> Sample:
        """Of all that was added."""
        none = Clusters(np.zeros(0), np.zeros(0))
        clusters = Clusters.joined(self._parts) if self._parts else none
        return Sample(clusters, self._hits, self._some, self._squares, self._apart)


class ByImage:
    """Values of examples under keys, in blocks of any examples; their samples, brought together by image."""

    def __init__(self) -> None:
        self._rows = Spool({"image": "Q", "key": "H", "value": "d"})
        self._keys: dict[Hashable, int] = {}

    def add(self, key: Hashable, values: Floats, images: NDArray[np.uint64]) -> None:
        """`images`: hashes. Within an image the order of the values shows in the last digit."""
        code = self._keys.setdefault(key, len(self._keys))
        self._rows.extend({"image": images, "key": np.full(len(images), code), "value": values})

    def samples(self) -> Mapping[Hashable, Sample]:
        """By key."""
        gathered = {code: Gathered() for code in self._keys.values()}
        for rows in self._rows.parted("image", pieces(len(self._rows))):
            _, images = np.unique(rows["image"], return_inverse=True)
            for code in np.unique(rows["key"]).tolist():
                own = rows["key"] == code
                gathered[code].add(rows["value"][own], images[own])
        return {key: gathered[code].sample() for key, code in self._keys.items()}
