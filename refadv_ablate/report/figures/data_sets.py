"""The paper's figures of data sets: lengths, distractors, instance sizes, category frequencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refadv_ablate.report.figures.style import MARKERS, PALETTE, drawing, empty, save

if TYPE_CHECKING:
    from refadv_ablate.statistics.data_sets import SetStats

DASHES = ("-", "--", ":", "-.")
"""With marker and colour, so that sets can be told apart in grey."""


@dataclass(frozen=True)
class Figure:
    """A figure: its texts, what a set's points are, and which axes are logarithmic."""

    stem: str
    title: str
    across: str
    up: str
    points: Callable[[SetStats], tuple[Sequence[float], Sequence[float]]]
    log_x: bool = False
    log_y: bool = False


FIGURES: tuple[Figure, ...] = (
    Figure(
        "lengths", "Expression length", "words", "share of expressions", lambda stats: shares(stats.lengths)
    ),
    Figure(
        "distractors",
        "Same-category distractors",
        "distractors",
        "share of expressions",
        lambda stats: shares(stats.distractors),
    ),
    Figure(
        "sizes",
        "Instance size",
        "square root of box area (pixels, log scale)",
        "share of instances up to this size",
        lambda stats: cumulative(stats.sizes),
        log_x=True,
    ),
    Figure(
        "categories",
        "Category frequency",
        "rank of the category",
        "expressions (log scale)",
        lambda stats: ranked(stats.categories),
        log_y=True,
    ),
)


def shares(counts: Counter[int]) -> tuple[Sequence[float], Sequence[float]]:
    """Each value between the least and the greatest, and its share."""
    values = range(min(counts), max(counts) + 1) if counts else range(0)
    return values, [counts[value] / counts.total() for value in values]


def cumulative(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Ascending values, and the share of values up to each."""
    return values, [(i + 1) / len(values) for i in range(len(values))]


def ranked(counts: Counter[str]) -> tuple[Sequence[float], Sequence[float]]:
    """Ranks from 1, and the counts in descending order."""
    return range(1, len(counts) + 1), sorted(counts.values(), reverse=True)


def write(measured: Sequence[SetStats], folder: Path) -> list[Path]:
    """The four figures as SVG and PNG; gives the paths."""
    paths: list[Path] = []
    for about in FIGURES:
        with drawing(5.2, 3.4) as (figure, axes):
            _draw(axes[0][0], about, measured)
            paths += save(figure, folder / about.stem)
    return paths


def _draw(axes: Any, about: Figure, measured: Sequence[SetStats]) -> None:
    axes.set(title=about.title, xlabel=about.across, ylabel=about.up)
    series = [(stats.name, *about.points(stats)) for stats in measured]
    series = [one for one in series if one[1]]
    if not series:
        empty(axes, "no set here has what this figure needs")
        return
    for number, (name, across, up) in enumerate(series):
        axes.plot(
            across,
            up,
            color=PALETTE[number % len(PALETTE)],
            marker=MARKERS[number % len(MARKERS)],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=1.3,
            markersize=3.5,
            markevery=max(1, len(across) // 25),
            label=name,
        )
    axes.grid(visible=True)
    axes.legend()
    _scales(axes, about)


def _scales(axes: Any, about: Figure) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for axis, is_log, setter in (
        (axes.xaxis, about.log_x, axes.set_xscale),
        (axes.yaxis, about.log_y, axes.set_yscale),
    ):
        if is_log:
            setter("log")
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    if not about.log_x:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not about.log_y:
        axes.set_ylim(bottom=0)
