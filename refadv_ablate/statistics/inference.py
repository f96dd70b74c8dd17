"""Intervals and tests on numbers that share images. Arrays in, floats out; no Arm, no Record.

`values` holds one number per example and `clusters` the image of each. A cluster is known by two
numbers alone, the sum of its values and its size, so everything works on those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.statistics.tails import sign_flip_tail

CONFIDENCE = 0.95
EXACT_UP_TO = 13
"""Sign flips of so many clusters that differ are all enumerated (8,192)."""
ENOUGH_BEYOND = 10
"""Drawn flips beyond the data from which on their share is a fair p."""
_RARE = 8
"""Kinds of clusters that occur no more often are drawn one by one: that is quicker than a binomial."""
_CHUNK = 400_000
"""Random numbers held at once while resampling: 3 MB."""
MOST = 8_192
"""Clusters that are listed one by one; of more, those with the same sum and size are counted together."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Per image: the sum of the values and how many there are.

    times: how many images are like that; None: one.
    """

    sums: Floats
    sizes: Floats
    times: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, values: Floats, clusters: NDArray[Any]) -> Clusters:
        """`clusters` are labels of any type that sorts; small whole numbers are quickest.

        The last digit depends on the order of the values, so give them in a fixed one.
        """
        codes = clusters
        if not np.issubdtype(codes.dtype, np.signedinteger):
            _, codes = np.unique(clusters, return_inverse=True)
        sizes = np.bincount(codes)
        present = sizes > 0
        sums = np.bincount(codes, weights=np.asarray(values, float))
        return cls(sums[present].astype(np.float64), sizes[present].astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[Clusters]) -> Clusters:
        """Of different images; as they come where they are few, else counted by kind."""
        if len(parts) == 1 and parts[0].count <= MOST:
            return parts[0]
        sums, sizes = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sums", "sizes"))
        if len(sums) <= MOST and all(part.times is None for part in parts):
            return cls(sums, sizes)
        times = np.concatenate([part.counts for part in parts])
        kinds, counts = _kinds(sums, sizes, times)
        return cls(kinds[:, 0], kinds[:, 1], counts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many clusters each entry stands for."""
        return np.ones(len(self.sizes), np.int64) if self.times is None else self.times

    def total(self, values: Floats) -> float:
        """Sum of a value of each cluster over all of them."""
        return float((values if self.times is None else values * self.times).sum())

    def product(self, a: Floats, b: Floats) -> float:
        """Sum of the products of two values of each cluster."""
        return float(a @ (b if self.times is None else b * self.times))

    @property
    def n(self) -> int:
        """Examples."""
        return int(self.total(self.sizes))

    @property
    def count(self) -> int:
        """Clusters."""
        return len(self.sizes) if self.times is None else int(self.times.sum())

    @property
    def mean(self) -> float:
        """Mean over examples; the caller sees to it that there are some."""
        return self.total(self.sums) / self.total(self.sizes)

    @property
    def effective(self) -> float:
        """(Σs)²/Σs²: how many images of one size weigh as these do."""
        squares = self.product(self.sizes, self.sizes)
        return self.total(self.sizes) ** 2 / squares if squares else 0.0

    @property
    def df(self) -> float:
        """Degrees of freedom of the standard error; equal sizes: images less one."""
        return max(1.0, self.effective - 1)

    def left_out(self) -> Floats:
        """The mean without each image in turn, shape of `sums`."""
        rest = np.maximum(self.n - self.sizes, 1)
        return np.asarray((self.total(self.sums) - self.sums) / rest, np.float64)

    def standard_error(self) -> float:
        """Jackknife over images; NaN for fewer than two.

        With images of one size it equals the cluster-robust error of a regression on a constant with the
        C/(C−1) correction. Where an image holds many of the examples that one is too small, since the mean
        follows the image; leaving each image out shows how far (MacKinnon, Nielsen and Webb 2023, CV3).
        """
        if self.count < 2:
            return math.nan
        apart = self.left_out() - self.mean
        return rooted(self.product(apart, apart), self.count)


def effective_number(sizes: Floats) -> float:
    """(Σs)²/Σs² of the examples on each image."""
    squares = float(sizes @ sizes)
    return float(sizes.sum()) ** 2 / squares if squares else 0.0


def jackknife_error(left_out: Floats, whole: float) -> float:
    """Standard error of a statistic from its values without each image in turn."""
    apart = left_out - whole
    return rooted(float(apart @ apart), len(apart))


def rooted(squares: float, count: int) -> float:
    """Jackknife error from the squares of what leaving each of so many images out does."""
    error = math.sqrt((count - 1) / count * squares)
    return 0.0 if error < 1e-12 else error


def t_interval(clusters: Clusters) -> tuple[float, float]:
    """Mean ± t · jackknife error, its degrees of freedom from the effective number of images."""
    half = t_quantile(clusters.df) * clusters.standard_error()
    return clusters.mean - half, clusters.mean + half


def t_quantile(df: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + confidence) / 2))


def normal_quantile(p: float) -> float:
    """The value that a standard normal stays below with probability p."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def wilson_interval(p: float, n: float, *, quantile: float | None = None) -> tuple[float, float]:
    """95% score interval of a fraction p of n independent cases; never of zero width.

    `quantile` replaces the normal one, such as by Student's.
    """
    z2 = (quantile or normal_quantile((1 + CONFIDENCE) / 2)) ** 2
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def rule_of_three(n: float, confidence: float = CONFIDENCE) -> float:
    """Upper bound of a rate that was seen in none of n independent cases (exact binomial)."""
    return float(1.0 - (1.0 - confidence) ** (1.0 / n))


# ── resampling ──────────────────────────────────────────────────────────────────────────────────


def bootstrap_interval(
    clusters: Clusters, rng: np.random.Generator, n_boot: int, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Percentile interval of the mean when whole clusters are drawn with replacement.

    Clusters with the same sum and size are interchangeable, so the numbers drawn of each kind are
    multinomial: the same distribution as drawing them one by one, at the price of the kinds only.
    """
    kinds, counts = _kinds(clusters.sums, clusters.sizes, clusters.times)
    common = counts > _RARE
    if counts[~common].sum() * 4 > clusters.count:
        each = np.stack([clusters.sums, clusters.sizes], axis=1)
        totals = _totals_of_indices(np.repeat(each, clusters.counts, axis=0), rng, n_boot)
    else:
        rare = np.repeat(kinds[~common], counts[~common], axis=0)
        shares = np.append(counts[common], len(rare)) / clusters.count
        drawn = rng.multinomial(clusters.count, shares, size=n_boot)
        totals = drawn[:, :-1] @ kinds[common] + _totals_of_items(rare, drawn[:, -1], rng)
    means = totals[:, 0] / totals[:, 1]
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _totals_of_items(items: Floats, sizes: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Sums of as many rows as each size says, drawn with replacement: shape (len(sizes), 2)."""
    if not len(items):
        return np.zeros((len(sizes), 2))
    picked = rng.integers(0, len(items), size=int(sizes.sum()), dtype=np.int32)
    running = np.concatenate([[0], np.cumsum((items[:, 0] + 1j * items[:, 1])[picked])])
    ends = np.cumsum(sizes)
    totals = running[ends] - running[ends - sizes]
    return np.stack([totals.real, totals.imag], axis=1)


def _kinds(
    sums: Floats, sizes: Floats, times: NDArray[np.int64] | None = None
) -> tuple[Floats, NDArray[np.int64]]:
    """Distinct (sum, size), shape (kinds, 2), and how many clusters are of each, frequent ones first."""
    # as complex numbers they sort several times faster than as rows
    if times is None:
        kinds, counts = np.unique(sums + 1j * sizes, return_counts=True)
    else:
        kinds, codes = np.unique(sums + 1j * sizes, return_inverse=True)
        counts = np.bincount(codes, weights=times).astype(np.int64)
    # multinomial draws are cheaper once the frequent kinds are dealt with
    order = np.argsort(-counts, kind="stable")
    return np.stack([kinds.real, kinds.imag], axis=1)[order], counts[order]


def _totals_of_indices(rows: Floats, rng: np.random.Generator, n_boot: int) -> Floats:
    """Sums of the rows of each resample: shape (n_boot, 2)."""
    sums, sizes = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
    chunk = max(1, _CHUNK // len(rows))
    parts = []
    for start in range(0, n_boot, chunk):
        index = rng.integers(0, len(rows), size=(min(chunk, n_boot - start), len(rows)), dtype=np.int32)
        parts.append(np.stack([sums[index].sum(axis=1), sizes[index].sum(axis=1)], axis=1))
    return np.concatenate(parts)


def sign_flip_p(clusters: Clusters, rng: np.random.Generator, n_flips: int) -> float:
    """Two-sided p of "the mean is 0" when the sign of every cluster is a coin's: (1+#)/(B+1), never 0.

    The statistic is the mean over its cluster-robust standard error: that keeps the test right when
    clusters aren't symmetric about 0 and, where sizes vary, breaks the ties that would make it timid.
    Flips as far out as the data count half (mid-p): a difference of hits lies on a lattice, and whole
    ties would make a test at 5% reject 3% (Fagerland, Lydersen and Laake 2013, on McNemar's test).
    With few clusters that differ all flips are enumerated; where hardly any of those drawn reach as far
    as the data, the tail is computed instead (`tails.sign_flip_tail`). No difference at all: 1.
    """
    differs = np.abs(clusters.sums) > 1e-12
    few = Clusters(
        clusters.sums[differs],
        clusters.sizes[differs],
        None if clusters.times is None else clusters.times[differs],
    )
    if not few.count:
        return 1.0
    if few.count <= EXACT_UP_TO:
        few = Clusters(np.repeat(few.sums, few.counts), np.repeat(few.sizes, few.counts))
    n, squares = clusters.n, few.product(few.sums, few.sums)
    size_squares = clusters.product(clusters.sizes, clusters.sizes)
    whole = np.array([few.total(few.sums)]), np.array([few.product(few.sums, few.sizes)])
    observed = _t_squared(*whole, n, squares, size_squares)[0]
    if few.count <= EXACT_UP_TO:
        signs = 1.0 - 2.0 * ((np.arange(2**few.count)[:, None] >> np.arange(few.count)) & 1)
        flipped, weighted = signs @ few.sums, signs @ (few.sums * few.sizes)
    else:
        flipped, weighted = _flips(few, rng, n_flips)
    t = _t_squared(flipped, weighted, n, squares, size_squares)
    further = float(np.sum(t > observed * (1 + 1e-9)))
    ties = float(np.sum(t >= observed * (1 - 1e-9))) - further
    if few.count <= EXACT_UP_TO:
        return (further + ties / 2) / len(t)
    drawn = (1 + further + ties / 2) / (n_flips + 1)
    # where next to no flip reaches as far, drawing has a floor that a large family lifts above 5%
    return drawn if further + ties >= ENOUGH_BEYOND else min(drawn, sign_flip_tail(few.sums, few.times))


def _t_squared(flipped: Floats, weighted: Floats, n: int, squares: float, size_squares: float) -> Floats:
    """Squared t of each flip from Σ s_c S_c and Σ s_c S_c n_c (up to a constant factor)."""
    mean = flipped / n
    spread = squares - 2 * mean * weighted + mean**2 * size_squares
    with np.errstate(divide="ignore"):
        return mean**2 / np.where(spread > 1e-9 * squares, spread, 0.0)


def _flips(clusters: Clusters, rng: np.random.Generator, n_flips: int) -> tuple[Floats, Floats]:
    """Σ s_c S_c and Σ s_c S_c n_c of each flip. Equal clusters are flipped together, by a binomial."""
    kinds, counts = _kinds(np.abs(clusters.sums), clusters.sizes, clusters.times)
    flipped, weighted = np.zeros(n_flips), np.zeros(n_flips)
    often = counts >= 4
    for (size_of_sum, size), count in zip(kinds[often], counts[often], strict=True):
        net = 2.0 * rng.binomial(count, 0.5, size=n_flips) - count
        flipped += size_of_sum * net
        weighted += size_of_sum * size * net
    rare = np.repeat(kinds[~often], counts[~often], axis=0)
    columns = np.stack([rare[:, 0], rare[:, 0] * rare[:, 1]], axis=1)
    # of fours, so that how many are drawn at once doesn't show in the bits
    chunk = 4 * max(1, _CHUNK // (4 * max(1, len(rare))))
    for start in range(0, n_flips if len(rare) else 0, chunk):
        rows = min(chunk, n_flips - start)
        packed = np.frombuffer(rng.bytes(rows * -(-len(rare) // 8)), np.uint8).reshape(rows, -1)
        bits = np.unpackbits(packed, axis=1)
        totals = (1.0 - 2.0 * bits[:, : len(rare)]) @ columns
        flipped[start : start + rows] += totals[:, 0]
        weighted[start : start + rows] += totals[:, 1]
    return flipped, weighted


# ── the familiar numbers ────────────────────────────────────────────────────────────────────────


def mcnemar_p(right_to_wrong: int, wrong_to_right: int) -> float:
    """Exact two-sided McNemar; takes every example as independent, so it ignores clustering. Never 0."""
    from scipy.special import bdtr

    n = right_to_wrong + wrong_to_right
    if n == 0:
        return 1.0
    tail = 2.0 * float(bdtr(min(right_to_wrong, wrong_to_right), n, 0.5))
    return min(1.0, max(tail, float(np.finfo(float).tiny)))


def holm(p_values: list[float | None]) -> list[float | None]:
    """Step-down adjusted p for a family; a test that couldn't be made stays None and isn't counted."""
    made = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(made):
        highest = max(highest, min(1.0, p * (len(made) - rank)))
        adjusted[index] = highest
    return adjusted
