"""A part of the examples against all of them, as the paper's tables do for distractor counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Arm, Columns, Mask
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.statistics.inference import t_quantile
from refadv_ablate.statistics.samples import ByImage
from refadv_ablate.storage.columns import pieces
from refadv_ablate.types import Estimate


def to_overall(arm: Arm, rows: Callable[[Columns], Mask], metric: str = "acc50") -> Estimate:
    """Accuracy on the rows minus accuracy on all answered, with a cluster-robust t interval.

    The part is contained in the whole: the standard error is that of the linearised difference,
    (1[in part] / share) · (y − ȳ_part) − (y − ȳ), summed within images.
    """
    sums, counts, n_images = [0.0, 0.0], [0, 0], ByImage()
    for values, inside, images in _answered(arm, rows, metric):
        for at, chosen in enumerate((inside, np.ones(len(values), bool))):
            sums[at] += float(np.sum(values[chosen]))
            counts[at] += int(chosen.sum())
        n_images.add("", values[inside], images[inside])
    n = counts[0]
    if n == 0:
        return Estimate(None, None, None, 0, 0, note="no examples")
    part, whole = (total / count for total, count in zip(sums, counts, strict=True))
    one = Estimate(part - whole, None, None, n, n_images.samples()[""].clusters.count)
    influence = ByImage()
    for values, inside, images in _answered(arm, rows, metric):
        share = n / counts[1]
        influence.add("", inside / share * (values - part) - (values - whole), images)
    clusters = influence.samples()[""].clusters
    error = clusters.standard_error()
    if one.images < 2 or not math.isfinite(error) or error == 0:
        return replace(one, note="no spread: no interval")
    half = t_quantile(clusters.df) * error
    return replace(one, low=part - whole - half, high=part - whole + half, method="jackknife t")


def _answered(
    arm: Arm, rows: Callable[[Columns], Mask], metric: str
) -> Iterator[tuple[Floats, Mask, NDArray[np.uint64]]]:
    """Values, which are of the part, and images of the answered, a piece at a time."""
    for columns in arm.parts(pieces(len(arm))):
        answered = columns.answered
        yield metric_of(metric)(columns.iou[answered]), rows(columns)[answered], columns.image[answered]


def apart(a: Estimate, b: Estimate) -> Estimate:
    """a − b for two different data sets: the distances to the bounds added in squares (Newcombe)."""
    if a.value is None or b.value is None:
        return Estimate(None, None, None, 0, 0, note=a.note or b.note)
    value, n = a.value - b.value, min(a.n, b.n)
    if None in (a.low, a.high, b.low, b.high):
        return Estimate(value, None, None, n, min(a.images, b.images), note=a.note or b.note)
    assert a.low is not None and a.high is not None and b.low is not None and b.high is not None
    below = math.hypot(a.value - a.low, b.high - b.value)
    above = math.hypot(a.high - a.value, b.value - b.low)
    return Estimate(value, value - below, value + above, n, min(a.images, b.images), "square and add")
