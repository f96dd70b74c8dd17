"""What answers that never came could have made of Δ: coverage, worst-case bounds, and who was left out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Columns
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.types import Json

SHARE = 0.01
"""Share of the planned answers that may be lacking before bounds are shown."""


def account(before: Columns, after: Columns, planned: int, metric: str = "acc50") -> dict[str, Json]:
    """Details of a comparison: answers of the plan and how many came, and where more than 1% lack, bounds.

    `worst_case`: the lowest and highest Δ over all planned examples, each lacking answer a miss or a hit
    (Manski's bounds). `left_out`: original accuracy of the examples that are in no number or only with a
    part of their draws, and of the others.
    """
    arms = [_per_example(columns, metric) for columns in (before, after)]
    draws = [max(1, len(np.unique(columns.draw))) for columns in (before, after)]
    asked = planned * sum(draws)
    came = int(before.answered.sum() + after.answered.sum())
    found: dict[str, Json] = {"answers_planned": asked, "answers": came}
    if asked - came <= SHARE * asked:
        return found
    low, high = _bounds(arms[0], arms[1], draws, planned)
    return {**found, "worst_case": [low, high], **_left_out(arms[0], arms[1], draws[1])}


Sums = tuple[NDArray[np.uint64], Floats, Floats]
"""Examples, sum of their values over answered draws, answered draws."""


def _per_example(columns: Columns, metric: str) -> Sums:
    example, codes = np.unique(columns.example, return_inverse=True)
    answered = columns.answered
    values = np.where(answered, metric_of(metric)(np.nan_to_num(columns.iou)), 0.0)
    n = len(example)
    sums, counts = np.bincount(codes, values, n), np.bincount(codes, answered, n)
    return example, sums.astype(np.float64), counts.astype(np.float64)


def _bounds(before: Sums, after: Sums, draws: list[int], planned: int) -> tuple[float, float]:
    """What is known of each arm's mean over the plan; the rest is a miss or a hit."""
    means = []
    for (_, sums, counts), number in zip((before, after), draws, strict=True):
        known = float(sums.sum()) / (planned * number)
        means.append((known, known + 1 - float(counts.sum()) / (planned * number)))
    return means[1][0] - means[0][1], means[1][1] - means[0][0]


def _left_out(before: Sums, after: Sums, draws: int) -> Mapping[str, Json]:
    whole = after[0][after[2] >= draws]
    inside = np.isin(before[0], whole)
    answered = before[2] > 0
    groups: dict[str, dict[str, Json]] = {}
    for name, rows in (("inside", inside & answered), ("outside", ~inside & answered)):
        n = int(rows.sum())
        mean = float(np.mean(before[1][rows] / before[2][rows])) if n else None
        groups[name] = {"original": mean, "n": n}
    return {"left_out": groups} if groups["outside"]["n"] else {}
