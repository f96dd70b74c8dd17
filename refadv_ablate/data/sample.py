"""A random sample of a data set's images, each with all of its examples.

Intervals take the image as their unit, so whole images are drawn: what a sample says of the data set is
then as uncertain as its intervals say.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from refadv_ablate.seeding import digest
from refadv_ablate.types import Data, Example, Json


@dataclass(frozen=True)
class SampledImages:
    """The examples of `images` images of `whole`, in their stored order; all where it has no more.

    An image is drawn by a digest of the seed and its key alone, so a larger sample of one seed holds the
    smaller, and the order of the data doesn't matter.
    """

    whole: Data
    images: int
    seed: int
    _drawn: list[tuple[frozenset[str], int]] = field(default_factory=list, init=False, repr=False)

    @property
    def name(self) -> str:
        """That of the whole: the sample is told by the key `images`."""
        return self.whole.name

    @property
    def excluded(self) -> Mapping[str, int]:
        """What the whole leaves out, by reason."""
        found: Mapping[str, int] = getattr(self.whole, "excluded", {})
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the whole, and how many images were drawn."""
        own: Any = getattr(self.whole, "notes", ())
        kept, of = self._choice()
        told = f"a random sample of {len(kept):,} of {of:,} images of the data (seed {self.seed})"
        return (*own, *([told] if len(kept) < of else []))

    def __iter__(self) -> Iterator[Example]:
        kept, _ = self._choice()
        return (example for example in self.whole if example.image.key in kept)

    def fingerprint(self) -> Mapping[str, Json]:
        """That of the whole, with the sample's size and seed."""
        return {**self.whole.fingerprint(), "images": self.images, "images_seed": self.seed}

    def _choice(self) -> tuple[frozenset[str], int]:
        """The keys of the drawn images, and how many images there are; one pass over the data, once."""
        if not self._drawn:
            keys = {example.image.key for example in self.whole}
            kept = heapq.nsmallest(self.images, keys, key=lambda key: digest("images", self.seed, key))
            self._drawn.append((frozenset(kept), len(keys)))
        return self._drawn[0]


def sampled(data: Data, images: int | None, seed: int) -> Data:
    """The data, or a sample of so many of its images."""
    return data if images is None else SampledImages(data, images, seed)


def whole(data: Data) -> Data:
    """The data set that a sample is of; others are themselves."""
    return data.whole if isinstance(data, SampledImages) else data
