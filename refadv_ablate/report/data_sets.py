"""Data sets on one page: the paper's Table 1, its figures of lengths, distractors, sizes and categories."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from refadv_ablate.report.figures import data_sets as figures
from refadv_ablate.report.figures.inline_svg import inline
from refadv_ablate.report.pages.page import page_of
from refadv_ablate.report.pages.sweep_page import write_tables
from refadv_ablate.report.tables.data_sets import differences, statistics
from refadv_ablate.report.tables.formats import FORMATS, as_html
from refadv_ablate.statistics.data_sets import SetStats
from refadv_ablate.storage.jsonl import atomic, write_json


def write(measured: Sequence[SetStats], folder: Path, command: str = "") -> list[Path]:
    """statistics.html, stats.json, tables/ in every format and the figures; gives the paths."""
    tables = [table for table in (statistics(measured), differences(measured)) if table.lines]
    path = folder / "stats.json"
    write_json(path, {"sets": [stats.summary() for stats in measured]})
    drawn = figures.write(measured, folder)
    page = folder / "statistics.html"
    pictures = [
        inline((folder / f"{about.stem}.svg").read_text(encoding="utf-8"), f"f{index}-", about.title)
        for index, about in enumerate(figures.FIGURES)
    ]
    names = ", ".join(stats.name for stats in measured)
    body = "".join(
        [
            f"<header><h1>Statistics of {html.escape(names)}</h1></header>",
            *map(as_html, tables),
            *(f"<figure class=picture>{svg}</figure>" for svg in pictures),
            f"<p class=soft>To do it again:</p><pre>{html.escape(command)}</pre>" if command else "",
        ]
    )
    with atomic(page) as file:
        file.write(page_of(f"Statistics of {names}", body).encode("utf-8", "backslashreplace"))
    return [page, path, *write_tables(folder / "tables", tables, tuple(FORMATS)), *drawn]
