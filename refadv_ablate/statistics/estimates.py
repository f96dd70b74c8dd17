"""Means over examples with the interval that holds: of fractions in 0…1, and of changes in −1…1.

What an interval has to survive here: images of unequal size, accuracies near 100%, a handful of changed
answers. Each function says which interval it takes where, and `method` of the result repeats it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.inference import Clusters
from refadv_ablate.statistics.samples import Sample
from refadv_ablate.types import Estimate

PRIOR_IMAGES = 2
"""Weight, in images with a miss, of the assumption that examples of one image are hit or missed together."""
FEW_CHANGED = 40
"""With fewer images that differ from the commonest change the t interval misses too often (89–92%)."""


def fraction(values: Floats, images: NDArray[Any]) -> Estimate:
    """Mean of values in 0…1: Wilson's interval on the effective number of examples.

    That is n over the design effect, the variance over images against that of independent examples. Near
    0% or 100% too few misses are there to estimate it, and it is drawn to its largest value: bounds fall
    with every miss. One example per image: Wilson on n.
    """
    return fraction_of(Sample.of(values, images))


def fraction_of(sample: Sample) -> Estimate:
    """As `fraction`, of values that were taken in already."""
    clusters = sample.clusters
    if not clusters.count:
        return Estimate(None, None, None, 0, 0, note="no examples")
    one = _mean(clusters)
    if clusters.count < 2:
        return replace(one, note="one image: no interval")
    if clusters.count == clusters.n and sample.hits:
        low, high = inference.wilson_interval(clusters.mean, clusters.n)
        return replace(one, low=low, high=high, method="Wilson")
    mean = min(1.0, max(0.0, clusters.mean))
    n = clusters.n / _design_effect(clusters)
    low, high = inference.wilson_interval(mean, n, quantile=inference.t_quantile(clusters.df))
    return replace(one, low=low, high=high, method="Wilson on effective n")


def difference(values: Floats, images: NDArray[Any]) -> Estimate:
    """Mean of differences in −1…1: the jackknife t interval over images.

    Where few images differ from the commonest change the interval gets one change more each way, as
    Bonett and Price (2012) do for pairs, with the examples counted at their effective number.
    """
    return difference_of(Sample.of(values, images))


def difference_of(sample: Sample) -> Estimate:
    """As `difference`, of values that were taken in already."""
    clusters = sample.clusters
    if not clusters.count:
        return Estimate(None, None, None, 0, 0, note="no examples answered in both conditions")
    one = _mean(clusters)
    if not sample.some:
        bound = inference.rule_of_three(clusters.effective)
        note = f"no discordant pairs: at 95% confidence fewer than {bound:.1%} of images have one"
        return replace(one, note=note)
    if clusters.count < 2:
        return replace(one, note="one image: no interval")
    error = clusters.standard_error()
    if error == 0:
        return replace(one, note="every example changed by the same amount: no interval")
    if _changed_images(clusters) < FEW_CHANGED:
        middle, error = _with_two_more(sample, error)
        method = "Bonett–Price on effective n"
    else:
        middle, method = clusters.mean, "jackknife t"
    half = inference.t_quantile(clusters.df) * error
    return replace(one, low=max(-1.0, middle - half), high=min(1.0, middle + half), method=method)


def _mean(clusters: Clusters) -> Estimate:
    """The mean and what it rests on, without an interval."""
    df = clusters.df if clusters.count > 1 else None
    return Estimate(
        clusters.mean, None, None, clusters.n, clusters.count, effective=clusters.effective, df=df
    )


def _design_effect(clusters: Clusters) -> float:
    """Variance of the mean against that of as many independent examples, at least 1."""
    most = clusters.n / clusters.effective
    independent = clusters.mean * (1 - clusters.mean) / clusters.n
    if independent <= 0:
        return most
    rare = clusters.sums if clusters.mean < 0.5 else clusters.sizes - clusters.sums
    seen = int(clusters.counts[rare > 1e-12].sum())
    found = max(1.0, clusters.standard_error() ** 2 / independent)
    return (seen * found + PRIOR_IMAGES * most) / (seen + PRIOR_IMAGES)


def _changed_images(clusters: Clusters) -> int:
    """Images whose mean change isn't the commonest one."""
    _, codes = np.unique(np.round(clusters.sums / clusters.sizes, 9), return_inverse=True)
    return clusters.count - int(np.bincount(codes, weights=clusters.counts).max())


def _with_two_more(sample: Sample, error: float) -> tuple[float, float]:
    """Middle and standard error with one change more each way, in effective examples."""
    clusters = sample.clusters
    n, mean = clusters.n, clusters.mean
    independent = sample.apart / (n - 1) / n
    effect = max(1.0, error**2 / independent) if independent > 0 else n / clusters.effective
    effective = n / effect
    middle = mean * effective / (effective + 2)
    square = (sample.squares / effect + 2) / (effective + 2)
    return middle, math.sqrt((square - middle**2) / (effective + 2))
