"""Counts over the expressions of a data set, as the paper's Table 1 has them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.parsing.scoring import length_in_words
from refadv_ablate.storage.columns import Spool, Table, hashed, pieces
from refadv_ablate.types import ORIGINAL, Record


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Lengths in words; sizes as square root of the area in pixels; negation as a fraction."""

    images: int
    instances: int
    expressions: int
    mean_words: float
    mean_distractors: float | None
    negation: float | None
    smallest: float
    largest: float
    vocabulary: int


_COLUMNS = {
    "example": "Q",
    "image": "Q",
    "instance": "Q",
    "size": "d",
    "words": "i",
    "distractors": "i",
    "negation": "b",
}
_UNKNOWN = -1


def lexicon(records: Iterable[Record]) -> Lexicon:
    """Over the original condition; each example once. An instance is a box on an image."""
    rows, words = Spool(_COLUMNS), _Words()
    for record in records:
        if record.condition == ORIGINAL:
            words.add(record.original_expression)
            for name, value in _row(record).items():
                rows.buffers[name].append(value)
            rows.ended()
    found = _Totals()
    for table in rows.parted("example", pieces(len(rows))):
        found.add(table[np.unique(table["example"], return_index=True)[1]])
    return Lexicon(
        images=rows.distinct("image"),
        instances=rows.distinct("instance"),
        expressions=found.examples,
        mean_words=_mean(found.words, found.examples) or 0.0,
        mean_distractors=_mean(*found.distractors),
        negation=_mean(*found.negation),
        smallest=found.smallest if found.examples else 0.0,
        largest=found.largest,
        vocabulary=words.distinct(),
    )


def _row(record: Record) -> Mapping[str, float]:
    return {
        "example": hashed(record.example_id),
        "image": hashed(record.image),
        "instance": hashed(f"{record.image}\0{record.target.as_list()}"),
        "size": math.sqrt(record.target.area),
        "words": length_in_words(record.original_expression),
        "distractors": _UNKNOWN if record.distractors is None else record.distractors,
        "negation": _UNKNOWN if record.negation is None else record.negation,
    }


@dataclass(slots=True)
class _Totals:
    """Sums; those of what not every example has, with how many have it."""

    examples: int = 0
    words: int = 0
    distractors: tuple[int, int] = (0, 0)
    negation: tuple[int, int] = (0, 0)
    smallest: float = math.inf
    largest: float = 0.0

    def add(self, rows: Table) -> None:
        if not len(rows):
            return
        self.examples += len(rows)
        self.words += int(rows["words"].sum())
        self.distractors = _with(self.distractors, rows["distractors"])
        self.negation = _with(self.negation, rows["negation"])
        self.smallest = min(self.smallest, float(rows["size"].min()))
        self.largest = max(self.largest, float(rows["size"].max()))


def _with(totals: tuple[int, int], values: NDArray[np.signedinteger]) -> tuple[int, int]:
    known = values[values != _UNKNOWN]
    return totals[0] + int(known.sum()), totals[1] + len(known)


@dataclass(slots=True)
class _Words:
    """Different words, of which so many are held as a piece of columns has rows."""

    here: set[str] = field(default_factory=set)
    written: Spool = field(default_factory=lambda: Spool({"word": "Q"}))

    def add(self, expression: str) -> None:
        self.here.update(re.findall(r"[\w'’-]*\w", expression.lower()))
        if len(self.here) >= self.written.size:
            self._write()

    def distinct(self) -> int:
        self._write()
        return self.written.distinct("word")

    def _write(self) -> None:
        self.written.extend({"word": np.array([hashed(word) for word in self.here], np.uint64)})
        self.here.clear()


def _mean(total: int, of: int) -> float | None:
    return total / of if of else None
