"""Scores of answers: IoU, the metrics made of it, and all scores of one condition (an arm) in columns."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Box, Floats, iou
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Json, Outcome, Record, Status

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

OUTCOMES: tuple[str, ...] = get_args(Outcome)
STATUSES: tuple[str, ...] = get_args(Status)
NOT_SCORED = frozenset({"missing", "not_perturbable"})
"""Outcomes without an answer: left out of every number and counted."""

MACC_THRESHOLDS: tuple[float, ...] = tuple(step / 100 for step in range(50, 100, 5))
"""0.50:0.05:0.95. Written as quotients so that an IoU of exactly 11/20 meets the threshold 0.55."""
DIG_THRESHOLDS: tuple[float, ...] = (0.5, 0.75, 0.95)
"""The three of the DiG protocol, whose average is `dig_avg`; ten thresholds make `macc`."""

_MAX_LABELS = 1000
_MAX_LABEL_LENGTH = 64


def score(outcome: Outcome, predicted: Box | None, target: Box) -> float | None:
    """IoU of an answer, 0.0 for an answer without a box, None where the model never answered."""
    if outcome in NOT_SCORED:
        return None
    return iou(predicted, target) if outcome == "box" and predicted is not None else 0.0


def thresholds(name: str) -> tuple[float, ...]:
    """The IoU thresholds whose hits a metric averages. Raises UserError for an unknown metric.

    `accNN` is a hit at IoU ≥ NN/100, `macc` the mean over 0.50:0.05:0.95, `dig_avg` the mean of
    acc50, acc75 and acc95.
    """
    if match := re.fullmatch(r"acc(\d\d)", name):
        return (int(match[1]) / 100,)
    if name in ("macc", "dig_avg"):
        return MACC_THRESHOLDS if name == "macc" else DIG_THRESHOLDS
    known = ("acc50", "acc75", "acc90", "acc95", "macc", "dig_avg", *OF_IOU)
    raise UserError(f"There is no metric {name!r}: {nearest(name, known)} (accNN takes any two digits).")


def metric(name: str) -> Callable[[Floats], Floats]:
    """IoU per answer → value per answer in 0…1: those of `thresholds`, and those of `OF_IOU`."""
    return OF_IOU[name] if name in OF_IOU else _mean_hit(thresholds(name))


def mean_iou(ious: Floats) -> Floats:
    """The IoU itself."""
    return np.asarray(ious, float)


OF_IOU: dict[str, Callable[[Floats], Floats]] = {"miou": mean_iou}
"""Metrics that are no threshold on the IoU. A new one is a function and a line here (docs/extending.md)."""


def _mean_hit(limits: tuple[float, ...]) -> Callable[[Floats], Floats]:
    def values(ious: Floats) -> Floats:
        hits = np.zeros(len(ious))
        for threshold in limits:
            hits += np.asarray(ious) >= threshold
        return hits / len(limits)

    return values


def length_in_words(expression: str) -> int:
    """Words as white space separates them."""
    return len(expression.split())


# ── columns ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Columns:
    """What an arm holds, one row per answer, in the order in which they came.

    `example` and `image` are 64-bit hashes of the ids; `iou` is NaN where the outcome isn't scored.
    """

    example: NDArray[np.uint64]
    image: NDArray[np.uint64]
    draw: Ints
    outcome: Ints
    iou: Floats

    @property
    def answered(self) -> Mask:
        """Rows with an answer, with or without a box."""
        return ~np.isnan(self.iou)

    @property
    def parsed(self) -> Mask:
        """Rows with a box."""
        return np.asarray(self.outcome == OUTCOMES.index("box"), bool)

    def where(self, rows: Mask | Ints) -> Columns:
        """Some of the rows."""
        return Columns(
            self.example[rows], self.image[rows], self.draw[rows], self.outcome[rows], self.iou[rows]
        )


@dataclass(slots=True)
class _Numbers:
    """An attribute with a number per record; NaN where a record lacks it."""

    rows: array[float] = field(default_factory=lambda: array("f"))

    def put(self, row: int, value: float) -> None:
        self.rows.extend([math.nan] * (row - len(self.rows)))
        self.rows.append(value)

    def read(self, n: int) -> Floats:
        values = np.full(n, np.nan)
        values[: len(self.rows)] = np.array(self.rows, dtype=np.float32)
        return values


@dataclass(slots=True)
class _Labels:
    """An attribute with a label per record, as codes into a vocabulary; −1 where a record lacks it."""

    rows: array[int] = field(default_factory=lambda: array("i"))
    vocabulary: dict[str, int] = field(default_factory=dict)

    def put(self, row: int, value: str) -> None:
        self.rows.extend([-1] * (row - len(self.rows)))
        if len(self.vocabulary) <= _MAX_LABELS:
            self.rows.append(self.vocabulary.setdefault(value, len(self.vocabulary)))

    def read(self, n: int) -> NDArray[np.object_]:
        codes = np.full(n, -1)
        codes[: len(self.rows)] = np.array(self.rows, dtype=np.int32)
        names = np.array([*self.vocabulary, None], dtype=object)
        found: NDArray[np.object_] = names[codes]
        return found


class Arm:
    """The scored answers of one condition; 100,000 of them take a few megabytes.

    Results don't depend on the order in which records are added.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._example = array("Q")
        self._image = array("Q")
        self._draw = array("H")
        self._outcome = array("B")
        self._iou = array("d")
        self._numbers: dict[str, _Numbers] = {}
        self._labels: dict[str, _Labels] = {}
        self._counts: Counter[str] = Counter()
        self._engines: Counter[str] = Counter()
        self._cached: Columns | None = None
        self.parted = False
        """Whether examples are asked in labelled sub-conditions, of which each has as many as it has."""
        for record in records:
            self.add(record)

    def __len__(self) -> int:
        return len(self._iou)

    def add(self, record: Record) -> None:
        """Takes in one scored answer; `iou` is computed from the boxes where the record has none."""
        value = record.iou
        if value is None:
            value = score(record.outcome, record.predicted, record.target)
        if record.outcome in NOT_SCORED or value is None:
            value = math.nan
        row = len(self)
        self._example.append(_hash(record.example_id))
        self._image.append(_hash(record.image))
        self._draw.append(record.draw)
        self.parted = self.parted or bool(record.part)
        self._outcome.append(OUTCOMES.index(record.outcome))
        self._iou.append(value)
        for name, number in _numbers(record):
            self._numbers.setdefault(name, _Numbers()).put(row, number)
        for name, label in _labels(record):
            self._labels.setdefault(name, _Labels()).put(row, label)
        self._counts.update(_countables(record))
        if record.engine and record.outcome not in NOT_SCORED:
            self._engines[record.engine] += 1
        self._cached = None

    def counts(self) -> dict[str, int]:
        """Answers by outcome, by status (changed, unchanged) and by note; `answers` is all of them."""
        return {"answers": len(self), **dict(sorted(self._counts.items()))}

    def engines(self) -> dict[str, int]:
        """Answers by what gave them, engine and version; those of which that isn't known are in none."""
        return dict(sorted(self._engines.items()))

    def columns(self) -> Columns:
        """Raises UserError where one draw of one example was answered twice."""
        if self._cached is None:
            self._cached = Columns(
                np.array(self._example, dtype=np.uint64),
                np.array(self._image, dtype=np.uint64),
                np.array(self._draw, dtype=np.int64),
                np.array(self._outcome, dtype=np.int64),
                np.array(self._iou, dtype=np.float64),
            )
            _refuse_twins(self._cached)
        return self._cached

    def attribute(self, name: str) -> Floats | NDArray[np.object_] | None:
        """Per row: numbers (NaN for none) or labels (None for none); None for an unknown attribute."""
        if name in self._labels:
            labels = self._labels[name].read(len(self))
            if len(self._labels[name].vocabulary) > _MAX_LABELS:
                raise UserError(
                    f"Attribute {name!r} has more than {_MAX_LABELS} values: slice by another one."
                )
            if name in self._numbers:  # numbers in some records and words in others
                numbers = self._numbers[name].read(len(self))
                rows = ~np.isnan(numbers)
                labels[rows] = [f"{value:g}" for value in numbers[rows]]
            return labels
        return self._numbers[name].read(len(self)) if name in self._numbers else None

    def attributes(self) -> list[str]:
        """Names to slice by."""
        return sorted({*self._numbers, *self._labels})


def rates(counts: Mapping[str, int]) -> dict[str, float | None]:
    """Parse-failure and truncation rate over the answers, missing rate over what was asked.

    `counts` as `Arm.counts` gives them. None where the denominator is 0.
    """
    failed = sum(counts.get(kind, 0) for kind in ("empty", "unparsable", "refused", "truncated"))
    answered = counts.get("box", 0) + failed
    missing = counts.get("missing", 0)
    return {
        "parse_failure": failed / answered if answered else None,
        "truncated": counts.get("truncated", 0) / answered if answered else None,
        "missing": missing / (answered + missing) if answered + missing else None,
    }


def _hash(text: str) -> int:
    """64 bits: two of 100,000 ids meet with a probability of 3 in 10 billion."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _refuse_twins(columns: Columns) -> None:
    order = np.lexsort((columns.draw, columns.example))
    example, draw = columns.example[order], columns.draw[order]
    twins = int(np.sum((example[1:] == example[:-1]) & (draw[1:] == draw[:-1])))
    if twins:
        raise UserError(
            f"{twins} answers are there twice (same example, same draw): "
            "two runs were mixed; score each run's predictions on their own."
        )


_BUILT_IN = ("distractors", "length", "box_size", "negation", "source", "split", "category")


def _numbers(record: Record) -> Iterator[tuple[str, float]]:
    if record.distractors is not None:
        yield "distractors", record.distractors
    yield "length", length_in_words(record.original_expression)
    yield "box_size", math.sqrt(record.target.area)
    for name, value in record.attributes.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in _BUILT_IN:
            yield name, value


def _labels(record: Record) -> Iterator[tuple[str, str]]:
    named = {"source": record.source, "split": record.split, "category": record.category}
    yield from ((name, value) for name, value in named.items() if value is not None)
    if isinstance(kind := record.trace.get("kind"), str):
        yield "removed", kind
    if record.landed:
        yield "landed", record.landed
    if record.negation is not None:
        yield "negation", _yes_no(record.negation)
    for name, value in record.attributes.items():
        if name not in _BUILT_IN and (label := _label(value)) is not None:
            yield name, label


def _label(value: Json) -> str | None:
    if isinstance(value, bool):
        return _yes_no(value)
    return value if isinstance(value, str) and len(value) <= _MAX_LABEL_LENGTH else None


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _countables(record: Record) -> set[str]:
    found: set[str] = {record.outcome, record.status, *record.notes}
    if record.n_boxes > 1:
        found.add("several_boxes")
    if record.attempts > 1:
        found.add("several_calls")  # a server that failed first; a further turn has the note "retried"
    return found
