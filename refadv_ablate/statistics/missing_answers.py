"""What answers that never came could have made of Δ: coverage, worst-case bounds, and who was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import OUTCOMES, Columns
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.types import Json

SHARE = 0.01
"""Share of the planned answers that may be lacking before bounds are shown."""


def account(
    before: Columns, after: Columns, planned: int, metric: str = "acc50", parted: bool = False
) -> dict[str, Json]:
    """Details of a comparison: answers of the plan and how many came, and where more than 1% lack, bounds.

    parted: the examples of `after` have as many answers in the plan as sub-conditions that could be made,
    else all the same number. `worst_case`: the lowest and highest Δ over all planned examples, each lacking
    answer a miss or a hit (Manski's bounds). `left_out`: original accuracy of the examples that are in no
    number or only with a part of their draws, and of the others.
    """
    arms = [_per_example(before, metric, False), _per_example(after, metric, parted)]
    asked = sum(int(arm.due.sum()) + arm.most * (planned - len(arm.due)) for arm in arms)
    came = int(before.answered.sum() + after.answered.sum())
    found: dict[str, Json] = {"answers_planned": asked, "answers": came}
    if asked - came <= SHARE * asked:
        return found
    low, high = _bounds(arms[0], arms[1], planned)
    return {**found, "worst_case": [low, high], **_left_out(arms[0], arms[1])}


@dataclass(frozen=True)
class _Sums:
    """Of each example: the sum of its values over answered draws, answered draws, and draws in the plan.

    most: draws in the plan of an example that has no row.
    """

    example: NDArray[np.uint64]
    value: Floats
    answered: Floats
    due: Floats
    most: int


def _per_example(columns: Columns, metric: str, parted: bool) -> _Sums:
    example, codes = np.unique(columns.example, return_inverse=True)
    answered = columns.answered
    values = np.where(answered, metric_of(metric)(np.nan_to_num(columns.iou)), 0.0)
    n = len(example)
    sums, counts = np.bincount(codes, values, n), np.bincount(codes, answered, n)
    draws = max(1, len(np.unique(columns.draw)))
    due = np.full(n, draws, float)
    if parted:  # a sub-condition that can't be made is none, but an example without any is one that lacks
        made = columns.outcome != OUTCOMES.index("not_perturbable")
        due = np.maximum(1.0, np.bincount(codes, made, n))
    return _Sums(example, sums.astype(float), counts.astype(float), due, 1 if parted else draws)


def _bounds(before: _Sums, after: _Sums, planned: int) -> tuple[float, float]:
    """What is known of each arm's mean over the plan; the rest is a miss or a hit."""
    means = []
    for arm in (before, after):
        known = float((arm.value / arm.due).sum()) / planned
        means.append((known, known + 1 - float((arm.answered / arm.due).sum()) / planned))
    return means[1][0] - means[0][1], means[1][1] - means[0][0]


def _left_out(before: _Sums, after: _Sums) -> Mapping[str, Json]:
    whole = after.example[after.answered >= after.due]
    inside = np.isin(before.example, whole)
    answered = before.answered > 0
    groups: dict[str, dict[str, Json]] = {}
    for name, rows in (("inside", inside & answered), ("outside", ~inside & answered)):
        n = int(rows.sum())
        mean = float(np.mean(before.value[rows] / before.answered[rows])) if n else None
        groups[name] = {"original": mean, "n": n}
    return {"left_out": groups} if groups["outside"]["n"] else {}
