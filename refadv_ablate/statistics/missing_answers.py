"""What answers that never came could have made of Δ: coverage, worst-case bounds, and who was left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import OUTCOMES, Columns
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.types import Json

SHARE = 0.01
"""Share of the planned answers that may be lacking before bounds are shown."""


class Account:
    """Details of a comparison: answers of the plan and how many came, and where more than 1% lack, bounds.

    draws: how many there are of each arm. parted: the examples of the perturbed arm have as many answers in
    the plan as sub-conditions that could be made, else all the same number. `worst_case`: the lowest and
    highest Δ over all planned examples, each lacking answer a miss or a hit (Manski's bounds). `left_out`:
    original accuracy of the examples that are in no number or only with a part of their draws, and of the
    others.
    """

    def __init__(
        self, planned: int, draws: tuple[int, int], metric: str = "acc50", parted: bool = False
    ) -> None:
        self.planned, self.metric = planned, metric
        self.arms = (_Arm(max(1, draws[0])), _Arm(max(1, draws[1]), parted))
        self.groups = {"inside": (0.0, 0), "outside": (0.0, 0)}
        """Sum of the original values, and of how many examples."""

    def add(self, before: Columns, after: Columns) -> None:
        """A piece of each arm, of the same examples."""
        sums = [
            arm.add(columns, self.metric) for arm, columns in zip(self.arms, (before, after), strict=True)
        ]
        whole = sums[1].example[sums[1].answered >= sums[1].due]
        inside = np.isin(sums[0].example, whole)
        answered = sums[0].answered > 0
        for name, rows in (("inside", inside & answered), ("outside", ~inside & answered)):
            total, n = self.groups[name]
            own = float(np.sum(sums[0].value[rows] / sums[0].answered[rows]))
            self.groups[name] = total + own, n + int(rows.sum())

    def details(self) -> dict[str, Json]:
        """Of all that was added."""
        asked = sum(int(arm.due) + arm.most * (self.planned - arm.examples) for arm in self.arms)
        came = int(self.arms[0].came + self.arms[1].came)
        found: dict[str, Json] = {"answers_planned": asked, "answers": came}
        if asked - came <= SHARE * asked:
            return found
        means = []
        for arm in self.arms:  # what is known of each arm's mean over the plan; the rest is a miss or a hit
            known = arm.known / self.planned
            means.append((known, known + 1 - arm.seen / self.planned))
        bounds = [means[1][0] - means[0][1], means[1][1] - means[0][0]]
        groups = {
            name: {"original": total / n if n else None, "n": n} for name, (total, n) in self.groups.items()
        }
        left_out = {"left_out": groups} if self.groups["outside"][1] else {}
        return {**found, "worst_case": bounds, **left_out}


@dataclass(frozen=True)
class _Sums:
    """Of each example: the sum of its values over answered draws, answered draws, and draws in the plan."""

    example: NDArray[np.uint64]
    value: Floats
    answered: Floats
    due: Floats


@dataclass
class _Arm:
    """Totals of an arm over its examples; `seen`, `known`: answered draws and values as parts of the due."""

    draws: int
    parted: bool = False
    examples: int = 0
    due: float = 0.0
    came: int = 0
    seen: float = 0.0
    known: float = 0.0

    @property
    def most(self) -> int:
        """Draws in the plan of an example that has no row."""
        return 1 if self.parted else self.draws

    def add(self, columns: Columns, metric: str) -> _Sums:
        found = self._per_example(columns, metric)
        self.examples += len(found.example)
        self.due += float(found.due.sum())
        self.came += int(columns.answered.sum())
        self.seen += float((found.answered / found.due).sum())
        self.known += float((found.value / found.due).sum())
        return found

    def _per_example(self, columns: Columns, metric: str) -> _Sums:
        example, codes = np.unique(columns.example, return_inverse=True)
        answered = columns.answered
        values = np.where(answered, metric_of(metric)(np.nan_to_num(columns.iou)), 0.0)
        n = len(example)
        sums, counts = np.bincount(codes, values, n), np.bincount(codes, answered, n)
        due = np.full(n, self.draws, float)
        if self.parted:  # a sub-condition that can't be made is none, but an example without any lacks one
            made = columns.outcome != OUTCOMES.index("not_perturbable")
            due = np.maximum(1.0, np.bincount(codes, made, n))
        return _Sums(example, sums.astype(float), counts.astype(float), due)
