"""From where answers landed with the original expression to where they landed with the perturbed one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from refadv_ablate.boxes import Floats
from refadv_ablate.report.figures.style import PALETTE, drawing, save
from refadv_ablate.statistics.landings import Flow

WIDTH = 0.06
GAP = 1.5
"""Percent of the examples left between two kinds."""


def flow_figure(flow: Flow, path_stem: Path, title: str) -> list[Path]:
    """Two columns, original and perturbed; a band's height is the share of the examples that went so."""
    shares = 100 * flow.moved / flow.moved.sum()
    with drawing(7.2, 3.6) as (figure, axes):
        plot = axes[0, 0]
        tops = [_starts(shares.sum(axis=1)), _starts(shares.sum(axis=0))]
        used = [start.copy() for start in tops]
        for i in range(len(flow.kinds)):
            for j in range(len(flow.kinds)):
                if shares[i, j] > 0:
                    _band(plot, used[0][i], used[1][j], shares[i, j], PALETTE[i % len(PALETTE)])
                    used[0][i] += shares[i, j]
                    used[1][j] += shares[i, j]
        for side, totals in enumerate((shares.sum(axis=1), shares.sum(axis=0))):
            _column(plot, flow, side, tops[side], totals)
        low = max(float(tops[k][-1] + t[-1]) for k, t in ((0, shares.sum(axis=1)), (1, shares.sum(axis=0))))
        plot.set(xlim=(-0.75, 1.75), ylim=(low + 1, -6))
        plot.set_axis_off()
        for side, name in enumerate(("original", "perturbed")):
            plot.text(side, -3, name, ha="center", fontweight="bold")
        figure.suptitle(title, fontsize=9, x=0.01, ha="left")
        return save(figure, path_stem)


def _starts(totals: Floats) -> Floats:
    gaps = np.where(totals > 0, GAP, 0.0)
    return np.concatenate([[0.0], np.cumsum(totals + gaps)[:-1]])


def _column(plot: Any, flow: Flow, side: int, starts: Floats, totals: Floats) -> None:
    for i, kind in enumerate(flow.kinds):
        if totals[i] <= 0:
            continue
        plot.bar(side, totals[i], WIDTH, bottom=starts[i], color=PALETTE[i % len(PALETTE)], zorder=3)
        where, align = (side - 0.05, "right") if side == 0 else (side + 0.05, "left")
        plot.text(
            where, starts[i] + totals[i] / 2, f"{kind} {totals[i]:.1f}%", ha=align, va="center", fontsize=8
        )


def _band(plot: Any, left: float, right: float, height: float, color: str) -> None:
    x = np.linspace(WIDTH / 2, 1 - WIDTH / 2, 40)
    bend = (1 - np.cos(np.pi * (x - x[0]) / (x[-1] - x[0]))) / 2
    top = left + (right - left) * bend
    plot.fill_between(x, top, top + height, color=color, alpha=0.35, lw=0)
