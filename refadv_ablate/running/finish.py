"""The end of a sweep: the table on the screen, the pages in its folder, the log closed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from refadv_ablate.errors import printable
from refadv_ablate.running.sweep import CellState, Sweep
from refadv_ablate.seeding import digest
from refadv_ablate.statistics import labels
from refadv_ablate.storage.jsonl import write_json
from refadv_ablate.storage.records import comparison_to_json, load
from refadv_ablate.types import Comparison

GOOD = ("done", "incomplete")


MOST_LINES = 4
"""Galleries named at the end of a sweep; the report links them all."""


def finish(sweep: Sweep, tracker: Any, parent: str) -> int:
    """The table of the sweep on the screen, in its folder and in the log."""
    from rich.console import Console

    from refadv_ablate.report.console import console
    from refadv_ablate.report.profile_console import profile_console

    cells = sweep.cells()
    done = [load(Path(cell.folder) / "summary.json") for cell in cells if cell.state in GOOD]
    comparisons = sorted(
        labels.declared(done), key=lambda c: (c.model, c.data, c.prompt, c.operator, c.variant)
    )
    unsaid = "its process ended before it could say why"
    failures = [
        (_title(cell), f"{cell.state}: {cell.reason or unsaid}") for cell in cells if cell.state not in GOOD
    ]
    write_json(sweep.folder / "summary.json", {"comparisons": [comparison_to_json(c) for c in comparisons]})
    pages = _pages(sweep, comparisons, failures, cells)
    if failures and not comparisons and not any(cell.run_id for cell in cells):
        tracker.discard(parent, failures[0][1])
    else:
        tracker.close_sweep(parent, comparisons, sweep.folder, failures)
    out = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    told = [replace(c, warnings=tuple(map(printable, c.warnings))) for c in comparisons]
    out.print(console(told, [(printable(cell), printable(reason)) for cell, reason in failures]))
    out.print(profile_console(told))
    for line in (*pages, *tracker.where(parent)):
        out.print(line, markup=False, soft_wrap=True)
    incomplete = any(cell.state == "incomplete" for cell in cells)
    return 1 if failures or incomplete else 0


def _title(cell: CellState) -> str:
    return " · ".join(word for word in (cell.model, cell.data, cell.prompt, cell.operator) if word)


def _pages(
    sweep: Sweep,
    comparisons: Sequence[Comparison],
    failures: Sequence[tuple[str, str]],
    cells: Sequence[CellState],
) -> list[str]:
    """The run report in the sweep's folder; returns lines that say where to look."""
    from refadv_ablate.report.pages import sweep_page

    told = sweep.facts()
    if not told.get("pages", True):
        return [f"results: {os.path.relpath(sweep.folder)}"]
    wanted = ("command", "seed", "version", "versions", "started")
    meta: dict[str, Any] = {key: told[key] for key in wanted if key in told}
    folders = [Path(cell.folder) for cell in cells if cell.state in GOOD]
    content = digest([comparison_to_json(c) for c in comparisons], list(failures), [str(f) for f in folders])
    page, mark = sweep.folder / "report.html", sweep.folder / "report.of"
    if not (page.is_file() and mark.is_file() and mark.read_text(encoding="utf-8") == content):
        page = sweep_page.write(sweep.folder, comparisons, failures, meta, folders)[0]
        mark.write_text(content, encoding="utf-8")
    lines = [f"report: {os.path.relpath(page)}"]
    galleries = [folder / "gallery.html" for folder in folders if (folder / "gallery.html").exists()]
    lines += [f"gallery: {os.path.relpath(path)}" for path in galleries[:MOST_LINES]]
    if len(galleries) > MOST_LINES:
        lines.append(f"and {len(galleries) - MOST_LINES} more galleries, linked in the report")
    return lines
