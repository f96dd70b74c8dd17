"""Does accuracy, or the fall, go with a number such as the distractors? A slope, its interval and test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.comparison import paired_values
from refadv_ablate.statistics.inference import Clusters, jackknife_error
from refadv_ablate.types import Estimate, Json


def slope(values: Floats, along: Floats, images: NDArray[np.uint64]) -> tuple[Estimate, float | None]:
    """Change of the mean value for one unit of `along` (least squares), and p of "it is 0".

    Examples whose number is unknown (NaN) are left out. The standard error leaves each image out in turn.
    """
    known = ~np.isnan(along)
    y, x, image = values[known], along[known], images[known]
    n, count = len(y), len(np.unique(image))
    if count < 3 or np.ptp(x) == 0:
        return Estimate(None, None, None, n, count, note="the numbers don't vary over three images"), None
    _, codes = np.unique(image, return_inverse=True)
    parts = [np.bincount(codes, weights) for weights in (np.ones(n), x, y, x * x, x * y)]
    whole = _least_squares(*(part.sum() for part in parts))
    left_out = _least_squares(*(part.sum() - part for part in parts))
    df = Clusters.of(y, codes).df
    value = float(whole)
    error = jackknife_error(left_out, value) if np.isfinite(left_out).all() else math.nan
    one = Estimate(value, None, None, n, count, effective=df + 1, df=df)
    if not math.isfinite(error) or error == 0:
        return one, None
    from scipy.special import stdtr

    half = inference.t_quantile(df) * error
    p = max(float(2 * stdtr(df, -abs(value / error))), float(np.finfo(float).tiny))
    found = Estimate(value, value - half, value + half, n, count, "jackknife t", "", df + 1, df)
    return found, p


def _least_squares(n: Floats, x: Floats, y: Floats, xx: Floats, xy: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((xy - x * y / n) / (xx - x * x / n), np.float64)


def trend(original: Arm, perturbed: Arm, by: str = "distractors") -> tuple[Estimate, float | None] | None:
    """Slope of Δ of Acc@0.5 along an attribute; None where it is no number of these examples."""
    numbers = original.attribute(by)
    if numbers is None or numbers.dtype == object:
        return None
    example, image, before, after = paired_values(original, perturbed)
    known, first = np.unique(original.columns().example, return_index=True)
    along = numbers.astype(np.float64)[first[np.searchsorted(known, example)]]
    return slope(after - before, along, image)


def noted(original: Arm, perturbed: Arm, by: str = "distractors") -> dict[str, Json]:
    """The trend as details of a comparison; empty where there is none."""
    found = trend(original, perturbed, by)
    if found is None or found[0].value is None:
        return {}
    estimate, p = found
    return {f"trend_{by}": {"value": estimate.value, "low": estimate.low, "high": estimate.high, "p": p}}
