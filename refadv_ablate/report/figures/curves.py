"""Accuracy against what makes a case hard, and against how exact a box has to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from refadv_ablate.parsing.scoring import MACC_THRESHOLDS, Arm, Columns, Mask
from refadv_ablate.report.figures.style import MARKERS, PALETTE, drawing, empty, save
from refadv_ablate.statistics import comparison
from refadv_ablate.types import Estimate

FEWEST = 10
"""Examples that a point needs: smaller groups join their neighbour."""
LIMITS = (-3, 103)
"""Percent, with room for the markers at both ends."""
LINES = ("-", "--", "-.", ":")
HARDNESS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "distractors": ("Distractors (below: examples)", (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 17)),
    "length": ("Words in the expression (below: examples)", (1, 4, 7, 10, 13, 16, 20, 25)),
}
"""Attribute → title of the axis and the lower limits of its groups."""


@dataclass(frozen=True, slots=True)
class Point:
    """Accuracy of the examples whose attribute lies in one group."""

    label: str
    estimate: Estimate


def hardness_figure(arms: Mapping[str, Arm], path_stem: Path, *, metric: str = "acc50") -> list[Path]:
    """Acc@0.5 against distractors and against length; the area of a marker is the number of examples."""
    with drawing(9.2, 3.6, columns=len(HARDNESS)) as (figure, axes):
        for plot, (attribute, (title, limits)) in zip(axes[0], HARDNESS.items(), strict=True):
            _hardness(plot, {name: points_of(arm, attribute, limits, metric) for name, arm in arms.items()})
            plot.set_xlabel(title)
        axes[0, 0].set_ylabel("Acc@0.5 (%)")
        _legend(figure, axes[0], len(arms))
        return save(figure, path_stem)


def points_of(arm: Arm, attribute: str, limits: Sequence[int], metric: str = "acc50") -> list[Point]:
    """The groups of an attribute, from low to high, small ones joined; empty where nobody has it."""
    groups = _groups(_counted(arm, attribute), limits)
    found = []
    for low, high, least, most in groups:
        estimate = comparison.accuracy(arm, metric, rows=partial(_within, attribute, low, high))
        first, last = int(least), int(most)
        found.append(Point(f"{first}" if first == last else f"{first}–{last}", estimate))
    return found


def _within(attribute: str, low: float, high: float, columns: Columns) -> Mask:
    numbers: Any = columns.attributes(attribute)
    return np.asarray((numbers >= low) & (numbers < high), bool)


def _counted(arm: Arm, attribute: str) -> Counter[float]:
    """How often the arm has each number of an attribute; nothing for one that is no number."""
    found: Counter[float] = Counter()
    for columns in arm.chunks():
        values = columns.attributes(attribute)
        if values is None or values.dtype == object:
            return Counter()
        numbers, counts = np.unique(values[~np.isnan(values.astype(float))].astype(float), return_counts=True)
        found.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
    return found


def _groups(counts: Counter[float], limits: Sequence[int]) -> list[tuple[float, float, float, float]]:
    """Neighbouring [low, high) that each hold at least FEWEST values, or all of them; their ends besides."""
    edges = [*(limit for limit in limits if limit <= max(counts, default=-1)), np.inf]
    groups: list[tuple[float, float]] = []
    start, count = edges[0], 0
    for low, high in pairwise(edges):
        count += sum(n for value, n in counts.items() if low <= value < high)
        if count >= FEWEST:
            groups.append((start, high))
            start, count = high, 0
    if count and groups:  # the rest joins the last group
        groups[-1] = (groups[-1][0], np.inf)
    groups = groups or ([(edges[0], np.inf)] if counts else [])
    inside = [[value for value in counts if low <= value < high] for low, high in groups]
    return [(*group, min(values), max(values)) for group, values in zip(groups, inside, strict=True)]


def _hardness(plot: Any, series: Mapping[str, Sequence[Point]]) -> None:
    if not any(series.values()):
        empty(plot, "no example has this attribute")
        return
    most = max(point.estimate.n for points in series.values() for point in points)
    # an arm may lack a group, or have joined it with another: places go by label
    places = {point.label: place for place, point in enumerate(next(iter(series.values())))}
    for index, (name, points) in enumerate(series.items()):
        color, marker = PALETTE[index % len(PALETTE)], MARKERS[index % len(MARKERS)]
        nudge = (index - (len(series) - 1) / 2) * 0.12
        known = [(places[p.label] + nudge, p.estimate) for p in points if p.label in places]
        known = [(x, estimate) for x, estimate in known if estimate.value is not None]
        line = LINES[index % len(LINES)]
        plot.plot([x for x, _ in known], [100 * (e.value or 0) for _, e in known], line, color=color, lw=1.4)
        for x, estimate in known:
            _marker(plot, x, estimate, 18 + 130 * estimate.n / most, color, marker)
        plot.plot([], [], line, marker=marker, color=color, mec="white", label=name)
    ticks = [f"{p.label}\n{p.estimate.n:,}" for p in next(iter(series.values()))]
    plot.set_xticks(range(len(ticks)), ticks, fontsize=8)
    plot.set(ylim=LIMITS, xlim=(-0.5, len(ticks) - 0.5))
    plot.grid(axis="y")


def _marker(plot: Any, x: float, estimate: Estimate, area: float, color: str, marker: str) -> None:
    y = 100 * (estimate.value or 0)
    if estimate.low is not None and estimate.high is not None:
        plot.plot([x, x], [100 * estimate.low, 100 * estimate.high], color=color, lw=1.1, alpha=0.75)
    plot.scatter(x, y, s=area, marker=marker, color=color, edgecolor="white", lw=0.8, zorder=3)


def threshold_figure(arms: Mapping[str, Arm], path_stem: Path) -> list[Path]:
    """Accuracy against the IoU that counts as a hit, 0.50:0.05:0.95, with 95% bands."""
    with drawing(5.4, 3.7) as (figure, axes):
        plot = axes[0, 0]
        if not arms:
            empty(plot, "no predictions")
        for index, (name, arm) in enumerate(arms.items()):
            _threshold_line(plot, index, name, arm)
        plot.set(xlabel="IoU threshold", ylabel="Accuracy (%)", ylim=LIMITS, xlim=(0.485, 0.965))
        plot.grid()
        _legend(figure, axes[0], len(arms))
        return save(figure, path_stem)


def _threshold_line(plot: Any, index: int, name: str, arm: Arm) -> None:
    estimates = [comparison.accuracy(arm, f"acc{round(100 * t)}") for t in MACC_THRESHOLDS]
    known = [(t, e) for t, e in zip(MACC_THRESHOLDS, estimates, strict=True) if e.value is not None]
    color = PALETTE[index % len(PALETTE)]
    x, y = [t for t, _ in known], [100 * (e.value or 0) for _, e in known]
    bounds = [
        (100 * e.low, 100 * e.high) if e.low is not None and e.high is not None else None for _, e in known
    ]
    if bounds and all(bounds):
        lows, highs = zip(*(b for b in bounds if b), strict=True)
        plot.fill_between(x, lows, highs, color=color, alpha=0.14, lw=0)
        for edge in (lows, highs):  # a grey printer loses the band, not its edges
            plot.plot(x, edge, color=color, lw=0.5, alpha=0.6)
    plot.plot(
        x,
        y,
        LINES[index % len(LINES)],
        marker=MARKERS[index % len(MARKERS)],
        color=color,
        mec="white",
        lw=1.6,
        ms=6,
        label=name,
    )


def _legend(figure: Any, plots: Sequence[Any], n: int) -> None:
    handles, names = next(
        (found for plot in plots if (found := plot.get_legend_handles_labels())[0]), ([], [])
    )
    if handles:
        figure.legend(handles, names, loc="outside upper left", ncols=min(n, 3), fontsize=8.5)
