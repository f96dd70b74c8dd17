"""The understanding profile at the end of a run: a row per operator, and what each says in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from refadv_ablate.statistics import profile
from refadv_ablate.statistics.formatting import operator_name, points, with_interval
from refadv_ablate.types import Comparison


def profile_console(comparisons: Sequence[Comparison]) -> RenderableType:
    """Nothing where only the text was perturbed."""
    if not profile.is_profile(comparisons):
        return Group()
    parts: list[RenderableType] = []
    found = profile.findings(comparisons)
    for (model, data, prompt), group in groupby(found, key=_setting):
        rows = list(group)
        parts.append(Text.assemble("What ", (model, "bold"), f" uses on {data}, prompt {prompt}"))
        parts.append(_table(rows))
        parts.extend(Text(f"{operator_name(f.comparison)}: {f.sentence}", style="dim") for f in rows)
        parts.append(Text())
    return Group(*parts)


def _setting(f: profile.Finding) -> tuple[str, str, str]:
    return f.comparison.model, f.comparison.data, f.comparison.prompt


def _table(rows: Sequence[profile.Finding]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("operator", overflow="fold", min_width=17)
    table.add_column("expects", no_wrap=True)
    table.add_column("score", overflow="fold")
    table.add_column("value [95% interval]", justify="right", min_width=20)
    table.add_column("floor", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for f in rows:
        score = f.headline
        table.add_row(
            Text(operator_name(f.comparison)),
            f.expectation,
            profile.NAMES[score.name],
            Text(with_interval(score.estimate, signed=score.name in profile.SIGNED)),
            "—" if f.floor is None else points(f.floor),
            f"{score.estimate.n:,}",
        )
    return table
