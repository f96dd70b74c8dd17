"""Pictures of what a sweep found: Δ with intervals, and the same as a forest over models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from refadv_ablate.report.figures.style import (
    FAINT,
    HATCHES,
    INK,
    MARKERS,
    PALETTE,
    SOFT,
    drawing,
    empty,
    save,
)
from refadv_ablate.statistics.formatting import metric_name, operator_name, with_interval
from refadv_ablate.types import Comparison, Estimate

LONGEST = 48
"""Characters of a label; beyond them nothing would be left for the plot."""
ROW, MARGIN = 0.27, 1.0
"""Height in inches of a line of a forest, and of everything around the lines."""


def delta_figure(
    comparisons: Sequence[Comparison],
    path_stem: Path,
    *,
    metric: str = "acc50",
    change: str = "perturbed − original",
) -> list[Path]:
    """Δ of every cell with its interval, by model and data; a marker per operator."""
    return _forest(
        comparisons,
        path_stem,
        metric,
        change,
        heading=lambda c: f"{c.model} · {c.data}{_prompt(c, comparisons)}",
        label=operator_name,
    )


def model_forest(comparisons: Sequence[Comparison], path_stem: Path, *, metric: str = "acc50") -> list[Path]:
    """The same cells grouped by operator and data, one line per model: who suffers most."""
    return _forest(
        comparisons,
        path_stem,
        metric,
        "perturbed − original",
        heading=lambda c: f"{operator_name(c)} · {c.data}",
        label=lambda c: f"{c.model}{_prompt(c, comparisons)}",
    )


def flip_figure(comparisons: Sequence[Comparison], path_stem: Path, *, metric: str = "acc50") -> list[Path]:
    """How many answers went from right to wrong and from wrong to right: Δ is their difference."""
    cells = [c for c in comparisons if metric in c.deltas and c.paired]
    lines = _lines(cells, lambda c: f"{c.model} · {c.data}{_prompt(c, comparisons)}", operator_name)
    with drawing(7.2, MARGIN + 0.3 + 0.31 * max(len(lines), 2)) as (figure, axes):
        plot = axes[0, 0]
        if not cells:
            empty(plot, "no example was answered in both conditions")
            return save(figure, path_stem)
        for y, (_, comparison) in enumerate(lines):
            if comparison is not None:
                _flips(plot, y, comparison, metric)
        _flip_axes(plot, lines)
        figure.legend(*plot.get_legend_handles_labels(), loc="outside upper left", ncols=2, fontsize=8.5)
        return save(figure, path_stem)


def _flips(plot: Any, y: int, comparison: Comparison, metric: str) -> None:
    delta = comparison.deltas[metric]
    for name, count, sign, look in (
        ("right → wrong", delta.right_to_wrong, -1, 1),
        ("wrong → right", delta.wrong_to_right, 1, 0),
    ):
        width = 100 * sign * count / comparison.paired
        label = name if y == 1 else None  # the first line is a heading
        plot.barh(
            y,
            width,
            height=0.66,
            color=PALETTE[look],
            edgecolor="white",
            hatch=HATCHES[look],
            lw=0.5,
            label=label,
        )
        plot.annotate(
            f"{count:,.1f}".removesuffix(".0") + f" ({abs(width):.1f}%)",
            (width, y),
            xytext=(5 * sign, 0),
            textcoords="offset points",
            ha="left" if sign > 0 else "right",
            va="center",
            fontsize=8,
        )


def _flip_axes(plot: Any, lines: Sequence[Listed]) -> None:
    from matplotlib.ticker import FuncFormatter

    _line_axis(plot, lines)
    low, high = plot.get_xlim()
    reach = max(-low, high, 1)
    plot.set_xlim(-reach * 1.8, reach * 1.8)  # room for the numbers
    plot.set_xticks([tick for tick in plot.get_xticks() if abs(tick) <= min(100, reach * 1.8)])
    plot.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{abs(x):g}"))
    plot.set_xlabel("Share of the paired examples (%)")


def _prompt(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """The prompt where there is more than one to tell apart."""
    return f" · {comparison.prompt}" if len({c.prompt for c in comparisons}) > 1 else ""


def _forest(
    comparisons: Sequence[Comparison],
    stem: Path,
    metric: str,
    change: str,
    *,
    heading: Callable[[Comparison], str],
    label: Callable[[Comparison], str],
) -> list[Path]:
    looks = {name: i for i, name in enumerate(dict.fromkeys(map(label, comparisons)))}
    lines = _lines(comparisons, heading, label)
    with drawing(7.2, MARGIN + ROW * max(len(lines), 2)) as (figure, axes):
        plot = axes[0, 0]
        if not comparisons:
            empty(plot, "no cell was compared")
            return save(figure, stem)
        for y, (name, comparison) in enumerate(lines):
            if comparison is not None:
                _estimate(plot, y, _delta(comparison, metric), looks[name])
        _forest_axes(plot, lines, f"Δ {metric_name(metric)}, points ({change}), 95% interval")
        return save(figure, stem)


def forest_lines(plot: Any, lines: Sequence[tuple[str, Estimate | None]], title: str) -> None:
    """Estimates with their intervals, one a line, under the headings that have none."""
    for y, (_, estimate) in enumerate(lines):
        if estimate is not None:
            _estimate(plot, y, estimate, 0)
    _forest_axes(plot, lines, title)


def _delta(comparison: Comparison, metric: str) -> Estimate:
    delta = comparison.deltas.get(metric)
    return delta.delta if delta else Estimate(None, None, None, 0, 0, note=f"no {metric_name(metric)}")


def _estimate(plot: Any, y: int, estimate: Estimate, look: int) -> None:
    color, marker = INK, MARKERS[look % len(MARKERS)]  # blue and orange mean original and perturbed
    if estimate.value is not None:
        if estimate.low is not None and estimate.high is not None:
            plot.plot(
                [100 * estimate.low, 100 * estimate.high], [y, y], color=color, lw=2, solid_capstyle="butt"
            )
        plot.plot(100 * estimate.value, y, marker, ms=6.5, color=color, mec="white", mew=0.8, zorder=3)
    text, ink = with_interval(estimate, signed=True), SOFT if estimate.value is None else INK
    plot.text(1.02, y, text, transform=plot.get_yaxis_transform(), va="center", color=ink)


def _forest_axes(plot: Any, lines: Sequence[Listed], title: str) -> None:
    _line_axis(plot, lines)
    low, high = plot.get_xlim()
    plot.set_xlim(min(low, -2.0), max(high, 2.0))
    plot.set_xlabel(title)


# ── lines under headings ────────────────────────────────────────────────────────────────────────

Listed = tuple[str, Any]
"""A line: its label and what it shows, or a heading without anything."""


def _lines(
    comparisons: Sequence[Comparison],
    heading: Callable[[Comparison], str],
    label: Callable[[Comparison], str],
) -> list[Listed]:
    """Each cell under the heading that it shares with others, in the order of first appearance."""
    order = {name: i for i, name in enumerate(dict.fromkeys(map(heading, comparisons)))}
    cells = sorted(comparisons, key=lambda c: order[heading(c)])
    lines: list[Listed] = []
    for name, group in groupby(cells, key=heading):
        lines.append((name, None))
        lines.extend((label(c), c) for c in group)
    return lines


def _line_axis(plot: Any, lines: Sequence[Listed]) -> None:
    """Labels on the left, headings bold, a rule above each heading but the first, a line at zero."""
    plot.set_ylim(len(lines) - 0.4, -0.6)
    plot.set_yticks(range(len(lines)), [_shortened(name) for name, _ in lines])
    for y, (tick, (_, comparison)) in enumerate(zip(plot.get_yticklabels(), lines, strict=True)):
        tick.set_fontweight("normal" if comparison else "bold")
        if comparison is None and y:
            plot.axhline(y - 0.5, color=FAINT, lw=0.7)
    plot.tick_params(axis="y", length=0)
    plot.axvline(0, color=SOFT, lw=1, zorder=1)
    plot.grid(axis="x")
    plot.spines["left"].set_visible(False)


def _shortened(text: str) -> str:
    """The middle of a long label goes, since ends tell runs apart."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"
