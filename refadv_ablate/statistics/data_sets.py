"""Counts over a data set: expressions, words, distractors, instance sizes, negation, authorship.

They are the columns of the paper's Table 1, computed over annotations alone, in one pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Any

import numpy as np

from refadv_ablate.data.negation import Agreement, agreement, cues_of, tokenised
from refadv_ablate.statistics import contrasts
from refadv_ablate.statistics.contrasts import Contrast, Side
from refadv_ablate.storage.columns import hashed
from refadv_ablate.types import Data, Estimate, Example, Json

MEASURES: Mapping[str, tuple[str, bool]] = {
    "words": ("mean length (words)", False),
    "distractors": ("mean distractors", False),
    "negation": ("flagged as negation", True),
    "human": ("human-authored", True),
}
"""Mean over expressions → its title, and whether it is a share, shown in percent."""

BATCH = 512
"""Expressions tokenised together."""


def words(expression: str) -> list[str]:
    """The words of an expression."""
    return [word for word in expression.split() if any(letter.isalnum() for letter in word)]


@dataclass
class SetStats:
    """Counts of one set, filled example by example."""

    name: str
    expressions: int = 0
    images: set[str] = field(default_factory=set)
    instances: set[tuple[str, tuple[float, ...]]] = field(default_factory=set)
    lengths: Counter[int] = field(default_factory=Counter)
    distractors: Counter[int] = field(default_factory=Counter)
    categories: Counter[str] = field(default_factory=Counter)
    vocabulary: set[str] = field(default_factory=set)
    flagged: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    by_rule: int = 0
    human: Counter[bool] = field(default_factory=Counter)
    excluded: Mapping[str, int] = field(default_factory=dict)
    values: dict[str, list[tuple[int, float]]] = field(default_factory=dict, repr=False)
    """Measure → (image, value) of each expression for which it is known; see MEASURES."""

    def add(self, example: Example, has_cue: bool, tokens: Iterable[str]) -> None:
        """Counts one example; `tokens` are its vocabulary."""
        self.expressions += 1
        self.images.add(example.image.key)
        self.instances.add((example.image.key, tuple(example.target.as_list())))
        self.lengths[len(words(example.expression))] += 1
        self.vocabulary.update(tokens)
        self.by_rule += has_cue
        if example.distractors is not None:
            self.distractors[example.distractors] += 1
        if example.category is not None:
            self.categories[example.category] += 1
        if example.negation is not None:
            self.flagged[has_cue, example.negation] += 1
        if (human := example.attributes.get("human_authored")) is not None:
            self.human[bool(human)] += 1
        self._keep(example, len(words(example.expression)), human)

    def _keep(self, example: Example, length: int, human: Json) -> None:
        image = hashed(example.image.key)
        known = (length, example.distractors, example.negation, None if human is None else bool(human))
        for measure, value in zip(MEASURES, known, strict=True):
            if value is not None:
                self.values.setdefault(measure, []).append((image, float(value)))

    def side(self, measure: str) -> Side | None:
        """The values of a measure by image, to be set against those of another set; None without any."""
        rows = self.values.get(measure)
        if not rows:
            return None
        images = np.array([image for image, _ in rows], np.uint64)
        values = np.array([value for _, value in rows], np.float64)
        return Side(self.name, np.arange(len(rows), dtype=np.uint64), images, values, values)

    @property
    def sizes(self) -> list[float]:
        """Square root of the area of each instance, pixels, ascending."""
        return sorted(math.sqrt((x2 - x1) * (y2 - y1)) for _, (x1, y1, x2, y2) in self.instances)

    @property
    def negation(self) -> float | None:
        """Share flagged as negation by the set itself, of those with a flag."""
        flagged = sum(n for (_, flag), n in self.flagged.items() if flag)
        known = self.flagged.total()
        return flagged / known if known else None

    @property
    def agreement(self) -> Agreement | None:
        """The cue rule against the set's own flags; None where it has none."""
        return agreement(self.flagged.elements()) if self.flagged else None

    def summary(self) -> Mapping[str, Json]:
        """All numbers, as JSON."""
        sizes = self.sizes
        found = self.agreement
        return {
            "name": self.name,
            "images": len(self.images),
            "expressions": self.expressions,
            "instances": len(self.instances),
            "mean_words": mean(self.lengths),
            "mean_distractors": mean(self.distractors),
            "distractors_known": self.distractors.total(),
            "negation_flagged": self.negation,
            "negation_by_rule": self.by_rule / self.expressions if self.expressions else None,
            "rule_precision": found.precision if found else None,
            "rule_recall": found.recall if found else None,
            "size_range": [sizes[0], sizes[-1]] if sizes else None,
            "vocabulary": len(self.vocabulary),
            "categories": len(self.categories),
            "human_authored": self.human[True] if self.human else None,
            "excluded": dict(self.excluded),
        }


def mean(counts: Counter[int]) -> float | None:
    """Mean of counted values; None without any."""
    total = counts.total()
    return sum(value * number for value, number in counts.items()) / total if total else None


def measure(name: str, parts: Sequence[Data]) -> SetStats:
    """One row of statistics over one set or several of its splits. Raises what iterating them raises."""
    stats = SetStats(name)
    excluded: Counter[str] = Counter()
    for data in parts:
        for batch in _batches(data):
            docs = tokenised(example.expression for example in batch)
            for example, doc in zip(batch, docs, strict=True):
                stats.add(example, bool(cues_of(doc)), vocabulary(doc))
        excluded.update(getattr(data, "excluded", {}))
    stats.excluded = dict(excluded)
    return stats


def compared(measured: Sequence[SetStats]) -> list[tuple[str, Contrast]]:
    """(measure, second − first) for each two sets that know it, Holm-adjusted over all of them.

    The sets are not paired; an image that both hold counts once, and leaving each out in turn gives the
    interval.
    """
    found = []
    for measure in MEASURES:
        sides = [side for side in (each.side(measure) for each in measured) if side is not None]
        for a, b in combinations(sides, 2):
            found.append((measure, contrasts.contrast(a, b, "original", paired=False)))
    adjusted = contrasts.holm([each for _, each in found])
    return [(measure, each) for (measure, _), each in zip(found, adjusted, strict=True)]


def estimated(stats: SetStats, measure: str) -> Estimate | None:
    """A mean over expressions with its 95% interval clustered by image; None where it isn't known."""
    side = stats.side(measure)
    return None if side is None else contrasts.contrast(side, side, "original", paired=True).first


def _batches(data: Iterable[Example]) -> Iterator[list[Example]]:
    examples = iter(data)
    while batch := list(islice(examples, BATCH)):
        yield batch


def vocabulary(doc: Any) -> set[str]:
    """Lower-case tokens with a letter or digit."""
    return {token.lower_ for token in doc if any(letter.isalnum() for letter in token.text)}
