"""A forest of contrasts: how much more one side falls than the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from refadv_ablate.report.figures.delta import MARGIN, ROW, forest_lines
from refadv_ablate.report.figures.style import drawing, empty, save
from refadv_ablate.statistics.contrasts import QUANTITIES, Contrast
from refadv_ablate.types import Estimate

MOST = 40
"""Lines of one figure; the table has them all."""


def contrast_figure(found: Sequence[Contrast], path_stem: Path) -> list[Path]:
    """Each difference with its interval, under what both sides share; the first MOST of them."""
    shown = list(found[:MOST])
    lines: list[tuple[str, Estimate | None]] = []
    for heading, group in groupby(shown, key=lambda c: f"{c.where}: {QUANTITIES[c.quantity]}"):
        lines.append((heading, None))
        lines.extend((f"{c.b} − {c.a}", c.difference) for c in group)
    with drawing(7.2, MARGIN + ROW * max(len(lines), 2)) as (figure, axes):
        if not shown:
            empty(axes[0, 0], "nothing to set against each other")
            return save(figure, path_stem)
        forest_lines(axes[0, 0], lines, "Difference, points, 95% interval")
        return save(figure, path_stem)
