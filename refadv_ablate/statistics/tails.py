"""Probabilities too small for drawing: the far tail of sign flips, without a floor."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats

SMALLEST = sys.float_info.min


def sign_flip_tail(sums: Floats, times: NDArray[np.int64] | None = None) -> float:
    """Two-sided mid-p that random signs take Σ ± |S| as far out as Σ S is.

    Where all have one sign only two of the 2^C flips reach as far, and they tie: 2^−C exactly. Elsewhere
    the saddlepoint approximation of Lugannani and Rice (Robinson 1982 for permutations), whose relative
    error in the tail is a few percent. `sums`: per image, those that differ from 0; `times`: how many images
    have that sum, None: one. Never 0.
    """
    sizes, often = np.abs(sums), np.ones(len(sums), np.int64) if times is None else times
    total, reach = abs(float((sums * often).sum())), float((sizes * often).sum())
    if reach - total < 1e-9 * reach:
        return max(SMALLEST, math.ldexp(1.0, -int(often.sum())))
    root = _saddlepoint(sizes, often, total)
    tilted = root * sizes
    # log cosh without overflow
    cumulant = float(np.sum(often * (np.logaddexp(tilted, -tilted) - math.log(2))))
    spread = float(np.sum(often * (sizes**2 * (1 - np.tanh(tilted) ** 2))))
    w = math.sqrt(max(0.0, 2 * (root * total - cumulant)))
    u = root * math.sqrt(spread)
    if w < 1e-4 or u < 1e-12:
        return 1.0
    density = math.exp(-(w**2) / 2) / math.sqrt(2 * math.pi)
    upper = 0.5 * math.erfc(w / math.sqrt(2)) + density * (1 / u - 1 / w)
    return min(1.0, max(SMALLEST, 2 * upper))


def _saddlepoint(sizes: Floats, often: NDArray[np.int64], total: float) -> float:
    """Where the mean of the tilted flips is the total: Σ S tanh(θ S) = total."""
    from scipy.optimize import brentq

    def apart(theta: float) -> float:
        return float(sizes @ (often * np.tanh(theta * sizes))) - total

    high = 1.0 / float(sizes.max())
    while apart(high) < 0:
        high *= 2
    return float(brentq(apart, 0.0, high, xtol=1e-12))
