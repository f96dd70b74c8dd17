"""A part of the examples against all of them, as the paper's tables do for distractor counts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from refadv_ablate.parsing.scoring import Arm, Mask
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.statistics.inference import Clusters, t_quantile
from refadv_ablate.types import Estimate


def to_overall(arm: Arm, rows: Mask, metric: str = "acc50") -> Estimate:
    """Accuracy on the rows minus accuracy on all answered, with a cluster-robust t interval.

    The part is contained in the whole: the standard error is that of the linearised difference,
    (1[in part] / share) · (y − ȳ_part) − (y − ȳ), summed within images.
    """
    columns = arm.columns()
    values, inside = metric_of(metric)(columns.iou[columns.answered]), rows[columns.answered]
    images = columns.image[columns.answered]
    n = int(inside.sum())
    if n == 0:
        return Estimate(None, None, None, 0, 0, note="no examples")
    part, whole = float(values[inside].mean()), float(values.mean())
    one = Estimate(part - whole, None, None, n, len(np.unique(images[inside])))
    influence = inside / inside.mean() * (values - part) - (values - whole)
    error = Clusters.of(influence, images).standard_error()
    df = Clusters.of(np.ones(len(images)), images).df
    if one.images < 2 or not math.isfinite(error) or error == 0:
        return replace(one, note="no spread: no interval")
    half = t_quantile(df) * error
    return replace(one, low=part - whole - half, high=part - whole + half, method="jackknife t")


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
