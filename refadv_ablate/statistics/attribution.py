"""What each descriptor is worth to a model, from its answers to subsets of them (operator `subsets`).

An answer to some descriptors is a hit (1) or not (0): v(S). The whole set N is the original expression, the
empty set the head noun alone.

necessity: v(N) − v(N without the descriptor). sufficiency: v(the descriptor alone) − v(∅). shapley: the
descriptor's mean gain over all orders in which descriptors can be added (Shapley 1953); those of one
expression sum to v(N) − v(∅). It is had only where every subset was asked and answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import factorial

import numpy as np

from refadv_ablate.statistics.estimates import difference
from refadv_ablate.types import Json, Score

NAMES = ("necessity", "sufficiency", "shapley")
Kept = frozenset[int]
Worth = Mapping[Kept, float]
"""v: places of the descriptors that were kept → whether the answer was a hit."""


@dataclass
class Subsets:
    """Answers to subsets, by example; takes records in any order."""

    _kinds: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _worth: dict[int, dict[Kept, float]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, example: int, trace: Mapping[str, Json], hit: bool) -> None:
        """One answer; one whose trace lists no descriptors says nothing here."""
        kinds, kept = trace.get("kinds"), trace.get("kept")
        if not isinstance(kinds, list) or not isinstance(kept, list):
            return
        self._kinds[example] = tuple(map(str, kinds))
        self._worth[example][frozenset(kept)] = float(hit)

    def __bool__(self) -> bool:
        return bool(self._worth)

    def scores(self, originals: Mapping[int, tuple[float, int]]) -> tuple[Score, ...]:
        """By kind of descriptor. originals: example → whether the original was a hit, and its image.

        Several descriptors of one kind in an expression are averaged first; intervals are clustered by image.
        """
        found: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
        for example in sorted(self._worth.keys() & originals.keys()):
            hit, image = originals[example]
            kinds = self._kinds[example]
            worth = {**self._worth[example], frozenset(range(len(kinds))): hit}
            own: dict[tuple[str, str], list[float]] = defaultdict(list)
            for name, place, value in _values(worth, len(kinds)):
                own[name, kinds[place]].append(value)
            for key, values in own.items():
                found[key].append((float(np.mean(values)), image))
        order = sorted(found, key=lambda key: (NAMES.index(key[0]), key[1]))
        return tuple(_score(*key, found[key]) for key in order)


def _score(name: str, kind: str, rows: Sequence[tuple[float, int]]) -> Score:
    values, images = zip(*rows, strict=True)
    return Score(name, "drop", difference(np.round(values, 12), np.array(images, np.uint64)), kind)


def _values(worth: Worth, count: int) -> Iterator[tuple[str, int, float]]:
    """Name, place and value of everything that these answers tell of the descriptors."""
    whole, none = frozenset(range(count)), frozenset[int]()
    complete = len(worth) == 2**count
    for place in range(count):
        one = frozenset([place])
        if whole - one in worth:
            yield "necessity", place, worth[whole] - worth[whole - one]
        if one in worth and none in worth:
            yield "sufficiency", place, worth[one] - worth[none]
        if complete:
            yield "shapley", place, shapley(worth, count, place)


def shapley(worth: Worth, count: int, place: int) -> float:
    """The mean gain of one of `count` descriptors over all orders; needs the worth of every subset."""
    total, one = 0.0, frozenset([place])
    others = [other for other in range(count) if other != place]
    for size in range(count):
        weight = factorial(size) * factorial(count - size - 1) / factorial(count)
        for before in combinations(others, size):
            total += weight * (worth[frozenset(before) | one] - worth[frozenset(before)])
    return total
