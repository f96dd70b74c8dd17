"""All differences of Δ between 30 models under 10 operators on 10,000 examples, with Holm and ranks.

"theirs" is one such difference as a regression with an interaction and clustered covariance, times as many.
"""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np

from refadv_ablate.statistics import contrasts
from refadv_ablate.statistics.contrasts import Side

MODELS, OPERATORS, EXAMPLES, IMAGES = 30, 10, 10_000, 4_000
GOAL_SECONDS = 10.0


def sides(rng: np.random.Generator) -> list[list[Side]]:
    """By operator, the models."""
    example, image = np.arange(EXAMPLES, dtype=np.uint64), rng.integers(0, IMAGES, EXAMPLES).astype(np.uint64)
    original = [(rng.random(EXAMPLES) < 0.8).astype(float) for _ in range(MODELS)]
    return [
        [
            Side(f"m{m}", example, image, original[m], original[m] * (rng.random(EXAMPLES) < 0.5 + m / 100))
            for m in range(MODELS)
        ]
        for _ in range(OPERATORS)
    ]


def ours(groups: list[list[Side]]) -> tuple[float, int]:
    started, count = time.perf_counter(), 0
    for members in groups:
        made = [contrasts.contrast(a, b, paired=True) for a, b in combinations(members, 2)]
        contrasts.ranks(members, made)
        count += len(contrasts.holm(made))
    return time.perf_counter() - started, count


def theirs(a: Side, b: Side) -> float:
    import statsmodels.api as sm

    started = time.perf_counter()
    hits = np.concatenate([a.original, a.perturbed, b.original, b.perturbed])
    condition, which = np.tile(np.repeat([0.0, 1.0], EXAMPLES), 2), np.repeat([0.0, 1.0], 2 * EXAMPLES)
    terms = np.column_stack([np.ones(len(hits)), condition, which, condition * which])
    groups = np.tile(a.image.astype(int), 4)
    sm.OLS(hits, terms).fit(cov_type="cluster", cov_kwds={"groups": groups})
    return time.perf_counter() - started


def run() -> list[dict[str, Any]]:
    groups = sides(np.random.default_rng(0))
    seconds, count = ours(groups)
    one = min(theirs(*groups[0][:2]) for _ in range(3))
    return [
        {
            "what": "differences of Δ between all models, with ranks",
            "against": "regressions with an interaction, clustered",
            "ours": f"{seconds:.1f} s",
            "theirs": f"{one * count:.0f} s",
            "ratio": f"{one * count / seconds:.0f}×",
            "goal": f"< {GOAL_SECONDS:g} s",
            "met": "yes" if seconds < GOAL_SECONDS else "no",
            "n": f"{count:,} contrasts of {EXAMPLES:,} examples on {IMAGES:,} images",
        }
    ]
