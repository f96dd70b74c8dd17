"""Does accuracy, or the fall, go with a number such as the distractors? A slope, its interval and test."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.inference import rooted
from refadv_ablate.statistics.pairing import answered, together
from refadv_ablate.storage.columns import Spool, pieces
from refadv_ablate.types import Estimate, Json


def slope(values: Floats, along: Floats, images: NDArray[np.uint64]) -> tuple[Estimate, float | None]:
    """Change of the mean value for one unit of `along` (least squares), and p of "it is 0".

    Examples whose number is unknown (NaN) are left out. The standard error leaves each image out in turn.
    """
    rows = _spool()
    _add(rows, values, along, images)
    return _slope(rows)


def _spool() -> Spool:
    return Spool({"image": "Q", "value": "d", "along": "d"})


def _add(rows: Spool, values: Floats, along: Floats, images: NDArray[np.uint64]) -> None:
    known = ~np.isnan(along)
    rows.extend({"image": images[known], "value": values[known], "along": along[known]})


def _by_image(rows: Spool) -> Iterator[list[Floats]]:
    """Per image: n, Σx, Σy, Σx², Σxy; block by block."""
    for block in rows.parted("image", pieces(len(rows))):
        if len(block):
            _, codes = np.unique(block["image"], return_inverse=True)
            y, x = block["value"], block["along"]
            yield [
                np.bincount(codes, weights).astype(np.float64)
                for weights in (np.ones(len(y)), x, y, x * x, x * y)
            ]


def _slope(rows: Spool) -> tuple[Estimate, float | None]:
    totals, count, squares, low, high = [0.0] * 5, 0, 0.0, math.inf, -math.inf
    for block in rows.chunks():
        low, high = min(low, float(block["along"].min())), max(high, float(block["along"].max()))
    for parts in _by_image(rows):
        totals = [total + part.sum() for total, part in zip(totals, parts, strict=True)]
        count, squares = count + len(parts[0]), squares + float(parts[0] @ parts[0])
    n = len(rows)
    if count < 3 or low == high:
        return Estimate(None, None, None, n, count, note="the numbers don't vary over three images"), None
    whole = _least_squares(*totals)
    value, away = float(whole), 0.0
    for parts in _by_image(rows):
        apart = _least_squares(*(total - part for total, part in zip(totals, parts, strict=True))) - value
        away += float(apart @ apart)
    df = max(1.0, float(totals[0]) ** 2 / squares - 1)
    error = rooted(away, count) if math.isfinite(away) else math.nan
    one = Estimate(value, None, None, n, count, effective=df + 1, df=df)
    if not math.isfinite(error) or error == 0:
        return one, None
    from scipy.special import stdtr

    half = inference.t_quantile(df) * error
    p = max(float(2 * stdtr(df, -abs(value / error))), float(np.finfo(float).tiny))
    found = Estimate(value, value - half, value + half, n, count, "jackknife t", "", df + 1, df)
    return found, p


def _least_squares(n: Any, x: Any, y: Any, xx: Any, xy: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((xy - x * y / n) / (xx - x * x / n), np.float64)


def trend(original: Arm, perturbed: Arm, by: str = "distractors") -> tuple[Estimate, float | None] | None:
    """Slope of Δ of Acc@0.5 along an attribute; None where it is no number of these examples."""
    rows = _spool()
    for before, after in together(original, perturbed):
        numbers = before.attributes(by)
        if numbers is None or numbers.dtype == object:
            return None
        known, first = np.unique(before.example, return_index=True)
        found = answered(before, after, "acc50")
        along = numbers.astype(np.float64)[first[np.searchsorted(known, found.example)]]
        _add(rows, found.perturbed["acc50"] - found.original["acc50"], along, found.image.astype(np.uint64))
    return _slope(rows)


def noted(original: Arm, perturbed: Arm, by: str = "distractors") -> dict[str, Json]:
    """The trend as details of a comparison; empty where there is none."""
    found = trend(original, perturbed, by)
    if found is None or found[0].value is None:
        return {}
    estimate, p = found
    return {f"trend_{by}": {"value": estimate.value, "low": estimate.low, "high": estimate.high, "p": p}}
