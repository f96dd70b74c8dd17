"""Scores of answers: IoU, the metrics made of it, and all scores of one condition (an arm) in columns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Box, Floats, iou
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.parsing.position import NAMES as POSITIONS
from refadv_ablate.parsing.position import positions
from refadv_ablate.storage.columns import Spool, Table, hashed, pieces
from refadv_ablate.types import Json, Outcome, Record, Status

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

OUTCOMES: tuple[str, ...] = get_args(Outcome)
STATUSES: tuple[str, ...] = get_args(Status)
NOT_SCORED = frozenset({"missing", "not_perturbable"})
"""Outcomes without an answer: left out of every number and counted."""

OLD_PLACE = "old_place"
"""Counts answers whose IoU is that with the original referent; see `on_old_place`."""

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


def on_old_place(record: Record) -> bool:
    """Whether its IoU is that with the original referent although something else is asked for.

    So it is where nothing matches, and where another object is meant whose box nobody knows.
    """
    unknown = record.expectation == "directional" and record.original_target is None
    return record.expectation == "reject" or unknown


def right(record: Record) -> bool | None:
    """Whether the answer is what its expectation asks for; None where none came or nobody can tell.

    A box of IoU ≥ 0.5 with the target; where nothing matches, the answer "none"; where another object is
    meant whose box nobody knows, only staying on the old one is known to be wrong.
    """
    if record.iou is None or record.outcome in NOT_SCORED:
        return None
    if record.expectation == "reject":
        return record.outcome == "none"
    if on_old_place(record):
        return False if record.iou >= 0.5 else None
    return record.iou >= 0.5


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
    `attributes`: by name, numbers (NaN for none) or labels (None for none).
    """

    example: NDArray[np.uint64]
    image: NDArray[np.uint64]
    draw: Ints
    outcome: Ints
    iou: Floats
    attributes: Callable[[str], Floats | NDArray[np.object_] | None] = field(default=lambda _: None)

    @property
    def answered(self) -> Mask:
        """Rows with an answer, with or without a box."""
        return ~np.isnan(self.iou)

    @property
    def parsed(self) -> Mask:
        """Rows with a box."""
        return np.asarray(self.outcome == OUTCOMES.index("box"), bool)

    def where(self, rows: Mask | Ints) -> Columns:
        """Some of the rows; without attributes."""
        return Columns(
            self.example[rows], self.image[rows], self.draw[rows], self.outcome[rows], self.iou[rows]
        )


_FIXED = {"example": "Q", "image": "Q", "draw": "H", "outcome": "B", "iou": "d"}


class Arm:
    """The scored answers of one condition, in columns that a file takes over when they are many.

    Results don't depend on the order in which records are added.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._rows = Spool(_FIXED)
        self._vocabularies: dict[str, dict[str, int]] = {}
        self._numbers: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._engines: Counter[str] = Counter()
        self._cached: Columns | None = None
        self.draws: set[int] = set()
        """Which draws there are."""
        self.parted = False
        """Whether examples are asked in labelled sub-conditions, of which each has as many as it has."""
        for record in records:
            self.add(record)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, record: Record) -> None:
        """Takes in one scored answer; `iou` is computed from the boxes where the record has none.

        A placebo is asked beside the others as what they are compared with, and is no part of an arm.
        """
        if record.placebo:
            return
        value = record.iou
        if value is None:
            value = score(record.outcome, record.predicted, record.target)
        if record.outcome in NOT_SCORED or value is None:
            value = math.nan
        buffers, row = self._rows.buffers, self._rows.here
        for name, number in _numbers(record):
            if name not in self._numbers:
                self._numbers.add(name)
                self._rows.new(f"number {name}", "f", math.nan)
            self._rows.pad(f"number {name}", row).append(number)
        for name, label in _labels(record):
            self._put_label(name, label, row)
        buffers["example"].append(hashed(record.example_id))
        buffers["image"].append(hashed(record.image))
        buffers["draw"].append(record.draw)
        buffers["outcome"].append(OUTCOMES.index(record.outcome))
        buffers["iou"].append(value)
        self._rows.ended()
        self.draws.add(record.draw)
        self.parted = self.parted or bool(record.part)
        self._counts.update(_countables(record))
        if record.engine and record.outcome not in NOT_SCORED:
            self._engines[record.engine] += 1
        self._cached = None

    def _put_label(self, name: str, label: str, row: int) -> None:
        """As a code into a vocabulary; −1 where a record lacks it."""
        if name not in self._vocabularies:
            self._vocabularies[name] = {}
            self._rows.new(f"label {name}", "i", -1)
        vocabulary = self._vocabularies[name]
        if len(vocabulary) <= _MAX_LABELS:
            self._rows.pad(f"label {name}", row).append(vocabulary.setdefault(label, len(vocabulary)))

    def counts(self) -> dict[str, int]:
        """Answers by outcome, by status (changed, unchanged) and by note; `answers` is all of them."""
        return {"answers": len(self), **dict(sorted(self._counts.items()))}

    def engines(self) -> dict[str, int]:
        """Answers by what gave them, engine and version; those of which that isn't known are in none."""
        return dict(sorted(self._engines.items()))

    def columns(self) -> Columns:
        """All rows at once. Raises UserError where one draw of one example was answered twice."""
        if self._cached is None:
            self._cached = self._columns(self._rows.all())
            _refuse_twins(self._cached)
        return self._cached

    def parts(self, number: int) -> Iterator[Columns]:
        """The rows in pieces, all of one example in one piece: those of two arms belong together, in order.

        Raises UserError where one draw of one example was answered twice.
        """
        if number == 1:
            yield self.columns()
            return
        for table in self._rows.parted("example", number):
            columns = self._columns(table)
            _refuse_twins(columns)
            yield columns

    def chunks(self) -> Iterator[Columns]:
        """The rows in pieces, in the order in which they came."""
        return map(self._columns, self._rows.chunks())

    def hashes(self, number: int) -> Iterator[NDArray[np.uint64]]:
        """The example of each row, in the pieces of `parts`."""
        return (table["example"] for table in self._rows.parted("example", number))

    def images(self) -> int:
        """How many images its answers are about."""
        return self._rows.distinct("image")

    def _columns(self, table: Table) -> Columns:
        return Columns(
            np.ascontiguousarray(table["example"]),
            np.ascontiguousarray(table["image"]),
            table["draw"].astype(np.int64),
            table["outcome"].astype(np.int64),
            np.ascontiguousarray(table["iou"]),
            partial(self._attribute, table),
        )

    def _attribute(self, table: Table, name: str) -> Floats | NDArray[np.object_] | None:
        """Per row: numbers (NaN for none) or labels (None for none); None for an unknown attribute."""
        numbers = table[f"number {name}"].astype(np.float64) if name in self._numbers else None
        vocabulary = self._vocabularies.get(name)
        if vocabulary is None:
            return numbers
        if len(vocabulary) > _MAX_LABELS:
            raise UserError(f"Attribute {name!r} has more than {_MAX_LABELS} values: slice by another one.")
        names = np.array([*vocabulary, None], dtype=object)
        labels: NDArray[np.object_] = names[table[f"label {name}"]]
        if numbers is not None:  # numbers in some records and words in others
            rows = ~np.isnan(numbers)
            labels[rows] = [f"{value:g}" for value in numbers[rows]]
        return labels

    def attributes(self) -> list[str]:
        """Names to slice by."""
        return sorted({*self._numbers, *self._vocabularies})


def examples_of(arms: Sequence[Arm]) -> int:
    """How many examples these arms have answers of."""
    number = pieces(max(len(arm) for arm in arms))
    tables = zip(*(arm.hashes(number) for arm in arms), strict=True)
    return sum(len(np.unique(np.concatenate(found))) for found in tables)


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


def _refuse_twins(columns: Columns) -> None:
    order = np.lexsort((columns.draw, columns.example))
    example, draw = columns.example[order], columns.draw[order]
    twins = int(np.sum((example[1:] == example[:-1]) & (draw[1:] == draw[:-1])))
    if twins:
        raise UserError(
            f"{twins} answers are there twice (same example, same draw): "
            "two runs were mixed; score each run's predictions on their own."
        )


_BUILT_IN = ("distractors", "length", "box_size", "negation", "source", "split", "category", *POSITIONS)


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
    yield from positions(record.target, record.size)
    if isinstance(kind := record.trace.get("kind"), str) and record.expectation == "drop":
        yield "removed", kind
    if isinstance(kinds := record.trace.get("displaced"), list | tuple):
        yield "displaced", ",".join(map(str, kinds))
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
    if record.outcome not in NOT_SCORED and on_old_place(record):
        found.add(OLD_PLACE)
    if record.attempts > 1:
        found.add("several_calls")  # a server that failed first; a further turn has the note "retried"
    return found
