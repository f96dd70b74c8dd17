"""A picture of the understanding profile: each operator's score, model by model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from refadv_ablate.report.figures.delta import MARGIN, ROW, forest_lines
from refadv_ablate.report.figures.style import drawing, save
from refadv_ablate.statistics import profile
from refadv_ablate.statistics.formatting import operator_name
from refadv_ablate.types import Comparison, Estimate


def profile_figure(comparisons: Sequence[Comparison], path_stem: Path) -> list[Path]:
    """SVG and PNG: under each operator and score, a line for each model, data and prompt."""
    groups: dict[str, list[tuple[str, Estimate | None]]] = {}
    for f in profile.findings(comparisons):
        c = f.comparison
        heading = f"{operator_name(c)}: {profile.NAMES[f.headline.name]}"
        same = {(o.data, o.prompt) for o in comparisons}
        label = c.model if len(same) == 1 else f"{c.model} · {c.data} · {c.prompt}"
        groups.setdefault(heading, []).append((label, f.headline.estimate))
    lines: list[tuple[str, Estimate | None]] = []
    for heading, found in groups.items():
        lines += [(heading, None), *found]
    with drawing(7.2, MARGIN + ROW * max(len(lines), 2)) as (figure, axes):
        forest_lines(axes[0, 0], lines, "Share in percent; Youden's J and drops in points; 95% interval")
        return save(figure, path_stem)
