"""What a model uses: scores of the answers to changed questions, by what each operator expects.

Every score is a mean over examples answered in the conditions that it needs, draws and sub-conditions of
one example averaged first, with an interval clustered by image. docs/understanding.md defines each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Box, Floats, iou_pairs
from refadv_ablate.parsing.scoring import NOT_SCORED, Mask
from refadv_ablate.statistics.attribution import Subsets
from refadv_ablate.statistics.estimates import difference_of, fraction_of
from refadv_ablate.statistics.samples import ByImage, Sample
from refadv_ablate.storage.columns import Spool, Table, hashed, pieces
from refadv_ablate.types import ORIGINAL, Estimate, Expectation, Record, Score

HIT = 0.5
"""IoU from which two boxes are taken for the same object."""
EXPECTATIONS: tuple[Expectation, ...] = get_args(Expectation)


SIZE = 8_192
"""Answers that are joined at once; bounds memory."""
_COLUMNS = {"example": "Q", "image": "Q", "codes": "5l", "numbers": "14d"}


class Answers:
    """The answers of one operator and of the originals beside it, in columns; takes records in any order."""

    def __init__(self, original: Spool | None = None) -> None:
        self._original = Spool(_COLUMNS, SIZE) if original is None else original
        self._changed = Spool(_COLUMNS, SIZE)
        self._refused: Counter[str] = Counter()
        self._parts: dict[str, int] = {}
        self._subsets = Subsets()

    def beside(self) -> Answers:
        """Those of another operator beside the same originals, which are added here alone."""
        return Answers(self._original)

    def add(self, record: Record) -> None:
        """One record; those without an answer are left out of the scores."""
        if record.outcome == "not_perturbable":
            self._refused[record.reason] += 1
        if record.outcome in NOT_SCORED:
            return
        if record.condition == ORIGINAL:
            _append(self._original, record, 0)
        else:
            _append(self._changed, record, self._parts.setdefault(record.part, len(self._parts)))
            self._subsets.add(hashed(record.example_id), record.trace, (record.iou or 0.0) >= HIT)

    def refusals(self) -> dict[str, int]:
        """Why examples could not be changed, and how many of each, the commonest first."""
        return dict(self._refused.most_common())

    def scores(self) -> tuple[Score, ...]:
        """All scores; each part's own after those over all parts, in the order in which parts came."""
        names = [name for name in self._parts if name]
        gathered = _Scores()
        number = pieces(max(len(self._original), len(self._changed)), SIZE)
        for before, after in zip(
            self._original.parted("example", number), self._changed.parted("example", number), strict=True
        ):
            rows = _joined(_arrays(before), _arrays(after))
            for code, expectation in enumerate(EXPECTATIONS):
                own = rows.where(rows.expectation == code)
                gathered.add(own.where(~own.placebo), expectation, "")
                for name in names:
                    gathered.add(own.where(own.part == self._parts[name]), expectation, name)
            gathered.add_necessity(rows)
        found = gathered.scores(["", *names])
        if not gathered.some:
            return ()
        return (*found, *(self._subsets.scores(self._originals()) if self._subsets else ()))

    def _originals(self) -> dict[int, tuple[float, int]]:
        """Example → whether its original was a hit, and its image."""
        found: dict[int, tuple[float, int]] = {}
        for table in self._original.chunks():
            hits = (table["numbers"][:, 0] >= HIT).astype(float).tolist()
            examples, images = table["example"].tolist(), table["image"].tolist()
            found.update(zip(examples, zip(hits, images, strict=True), strict=True))
        return found


def _append(column: Spool, record: Record, part: int) -> None:
    """codes: part, expectation, placebo, whether the target is another object, whether the answer is "none".

    numbers: IoU, chance, the box of the answer, that of the original's referent, the map (NaN: no box).
    """
    buffers = column.buffers
    buffers["example"].append(hashed(record.example_id))
    buffers["image"].append(hashed(record.image))
    flags = (record.placebo, record.original_target is not None, record.outcome == "none")
    buffers["codes"].extend((part, EXPECTATIONS.index(record.expectation), *map(int, flags)))
    buffers["numbers"].extend(
        (
            record.iou or 0.0,
            _chance(record),
            *_corners(record.predicted),
            *_corners(record.original_target or record.target),
            *record.frame.as_list(),
        )
    )
    column.ended()


_NOWHERE = [np.nan] * 4


def _corners(box: Box | None) -> list[float]:
    return _NOWHERE if box is None else box.as_list()


def _chance(record: Record) -> float:
    """1/m: blind choice among what the text fits, as the operator counted them (NaN where it couldn't), else

    among the category."""
    if "matching" in record.trace:
        matching = record.trace["matching"]
        return 1 / matching if isinstance(matching, int) and matching > 0 else np.nan
    return np.nan if record.distractors is None else 1 / (record.distractors + 1)


@dataclass(frozen=True)
class _Rows:
    """Answers to changed questions, each beside the answer to its original; sorted by example."""

    example: NDArray[np.uint64]
    image: NDArray[np.uint64]
    part: NDArray[np.int64]
    expectation: NDArray[np.int64]
    placebo: Mask
    elsewhere: Mask
    """The target is another object than the original's referent."""
    hit: Floats
    chance: Floats
    none: Floats
    box: Floats
    referent: Floats
    was_hit: Floats
    was_none: Floats
    was_box: Floats
    """The original answer, in the frame of the changed question."""
    was_chance: Floats

    def where(self, rows: Mask) -> _Rows:
        return _Rows(**{name: values[rows] for name, values in vars(self).items()})


def _joined(before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]) -> _Rows:
    known, places = np.unique(before["example"], return_index=True)
    if not len(known):
        after = {name: values[:0] for name, values in after.items()}
        known, places = np.zeros(1, np.uint64), np.zeros(0, np.intp)
    at = np.minimum(np.searchsorted(known, after["example"]), len(known) - 1)
    paired = np.flatnonzero(known[at] == after["example"]) if len(places) else np.zeros(0, np.intp)
    # the order of the answers must not show in the last digit
    order = paired[np.lexsort((after["iou"][paired], after["part"][paired], after["example"][paired]))]
    now = {name: values[order] for name, values in after.items()}
    then = {name: values[places[at[order]]] if len(places) else values[:0] for name, values in before.items()}
    return _Rows(
        example=now["example"],
        image=then["image"],
        part=now["part"],
        expectation=now["expectation"],
        placebo=now["placebo"] == 1,
        elsewhere=now["elsewhere"] == 1,
        hit=(now["iou"] >= HIT).astype(float),
        chance=now["chance"],
        none=now["none"].astype(float),
        box=now["box"],
        referent=now["referent"],
        was_hit=(then["iou"] >= HIT).astype(float),
        was_none=then["none"].astype(float),
        was_box=_mapped(then["box"], now["frame"]),
        was_chance=then["chance"],
    )


def _arrays(table: Table) -> dict[str, NDArray[Any]]:
    codes, numbers = table["codes"], table["numbers"]
    return {
        "example": np.ascontiguousarray(table["example"]),
        "image": np.ascontiguousarray(table["image"]),
        "part": codes[:, 0],
        "expectation": codes[:, 1],
        "placebo": codes[:, 2],
        "elsewhere": codes[:, 3],
        "none": codes[:, 4],
        "iou": numbers[:, 0],
        "chance": numbers[:, 1],
        "box": numbers[:, 2:6],
        "referent": numbers[:, 6:10],
        "frame": numbers[:, 10:14],
    }


def _mapped(boxes: Floats, frames: Floats) -> Floats:
    """Row-wise `BoxMap` of x1 y1 x2 y2 by across, down, dx, dy."""
    across, down, dx, dy = frames.T
    xs = np.sort(np.stack([across * boxes[:, 0] + dx, across * boxes[:, 2] + dx]), axis=0)
    ys = np.sort(np.stack([down * boxes[:, 1] + dy, down * boxes[:, 3] + dy]), axis=0)
    return np.stack([xs[0], ys[0], xs[1], ys[1]], axis=1)


# ── the scores ──────────────────────────────────────────────────────────────────────────────────


Key = tuple[str, Expectation, str]
"""Name of a score, expectation, part."""
NECESSITY: Key = ("necessity", "drop", "")


@dataclass
class _Scores:
    """All scores, their answers taken in piece by piece; a piece has all answers to its examples."""

    values: ByImage = field(default_factory=ByImage)
    expected: dict[Key, tuple[float, int, int]] = field(default_factory=dict)
    """Sum of the known chances, of how many answers, and how many answers count."""
    several: set[tuple[Expectation, str]] = field(default_factory=set)
    """Where an example has more than one answer."""
    some: bool = False

    def add(self, rows: _Rows, expectation: Expectation, part: str) -> None:
        """Answers of one expectation and one part."""
        if not len(rows.example):
            return
        if np.any(rows.example[1:] == rows.example[:-1]):
            self.several.add((expectation, part))
        for name, values, chance in _values(rows, expectation):
            key = (name, expectation, part)
            keep = ~np.isnan(values)
            known = chance[keep & ~np.isnan(chance)]
            total, n, counted = self.expected.get(key, (0.0, 0, 0))
            self.expected[key] = total + float(np.sum(known)), n + len(known), counted + int(keep.sum())
            self._mean(key, rows, values)

    def add_necessity(self, rows: _Rows) -> None:
        """Drop under the sub-condition less drop under its placebo, on examples that were asked both ways."""
        self.some = self.some or len(rows.example) > 0
        both = np.intersect1d(rows.example[rows.placebo], rows.example[~rows.placebo])
        if len(both):
            inside = rows.where(np.isin(rows.example, both))
            signed = np.where(inside.placebo, inside.hit, -inside.hit)
            self._mean(NECESSITY, inside, signed * _shares(inside))

    def _mean(self, key: Key, rows: _Rows, values: Floats) -> None:
        """Over examples: the values of each are averaged first; NaN doesn't count."""
        keep = ~np.isnan(values)
        if not keep.any():
            return
        example, first, codes = np.unique(rows.example[keep], return_index=True, return_inverse=True)
        means = np.bincount(codes, weights=values[keep], minlength=len(example)) / np.bincount(codes)
        self.values.add(key, np.round(means, 12), rows.image[keep][first])

    def scores(self, parts: Sequence[str]) -> list[Score]:
        """By expectation and part, those that the expectation defines."""
        samples = self.values.samples()
        found = []
        for expectation in EXPECTATIONS:
            for part in parts:
                for key in (key for key in self.expected if key[1:] == (expectation, part)):
                    if key[0] == "worst" and (expectation, part) not in self.several:
                        continue  # examples with one answer: it is `consistent`
                    total, n, counted = self.expected[key]
                    chance = total / n if 0 < n == counted else None
                    found.append(Score(*key[:2], _estimate(key, samples.get(key)), part, chance))
        if (sample := samples.get(NECESSITY)) is not None:
            found.append(Score("necessity", "drop", difference_of(sample)))
        return found


def _estimate(key: Key, sample: Sample | None) -> Estimate:
    if sample is None:
        return Estimate(None, None, None, 0, 0, note="no example that it is defined for")
    return difference_of(sample) if key[0] in SIGNED else fraction_of(sample)


SIGNED = frozenset({"delta", "youden", "excess", "necessity", "sufficiency", "shapley"})
"""Scores that may be below 0."""


def _values(rows: _Rows, expectation: Expectation) -> Iterator[tuple[str, Floats, Floats]]:
    """Name, value of each answer (NaN: it doesn't count) and chance of each answer (NaN: unknown)."""
    unknown = np.full(len(rows.example), np.nan)
    right = np.where(rows.was_hit == 1, 1.0, np.nan)
    on_old = (iou_pairs(rows.box, rows.referent) >= HIT).astype(float)
    if expectation == "reject":
        yield "rejects", rows.none, unknown
        yield "false_rejects", rows.was_none, unknown
        yield "youden", rows.none - rows.was_none, np.zeros(len(unknown))
        yield "prior", on_old, unknown
        return
    known = rows.elsewhere if expectation == "directional" else np.ones(len(unknown), bool)
    hit = np.where(known, rows.hit, np.nan)
    yield "hit", hit, rows.chance
    yield "delta", hit - rows.was_hit, unknown
    yield "excess", hit - rows.chance, np.zeros(len(unknown))
    if expectation == "directional":
        yield "pair", hit * rows.was_hit, rows.chance * rows.was_chance
    else:
        same = (iou_pairs(rows.box, rows.was_box) >= HIT).astype(float)
        yield "consistent", np.where(np.isnan(rows.was_box[:, 0]), np.nan, same), unknown
        yield "worst", _worst(rows, same), unknown
    yield "sticks", on_old * right, unknown


def _worst(rows: _Rows, same: Floats) -> Floats:
    """Per answer, whether all answers to the example are consistent."""
    _, codes, counts = np.unique(rows.example, return_inverse=True, return_counts=True)
    least = np.ones(len(counts))
    np.minimum.at(least, codes, same)
    return np.where(np.isnan(rows.was_box[:, 0]), np.nan, least[codes])


def _shares(rows: _Rows) -> Floats:
    """Weights that turn a mean over an example's answers into the difference of its two means."""
    keys = rows.example * np.uint64(2) + rows.placebo.astype(np.uint64)
    _, code, count = np.unique(keys, return_inverse=True, return_counts=True)
    _, whole, total = np.unique(rows.example, return_inverse=True, return_counts=True)
    shares: Floats = total[whole] / count[code]
    return shares


def score_of(scores: tuple[Score, ...], name: str, part: str = "") -> Score | None:
    """The first score of that name and part."""
    return next((s for s in scores if (s.name, s.part) == (name, part)), None)
