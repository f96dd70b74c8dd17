"""Results set against each other, as a page: differences with intervals, their forest, ranks of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from refadv_ablate.report.figures.contrasts import contrast_figure
from refadv_ablate.report.loading.contrasting import Family
from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.pages.report_page import Content, Picture, write_pages
from refadv_ablate.report.pages.sweep_page import MOST_LINES, write_tables
from refadv_ablate.report.tables import results
from refadv_ablate.report.tables.contrasts import PLURAL, tables_of, warnings_between
from refadv_ablate.statistics.formatting import warnings_of
from refadv_ablate.types import Json


def write(
    folder: Path, study: Study, family: Family, *, formats: Sequence[str], meta: Mapping[str, Json]
) -> list[Path]:
    """report.html, report.md, tables/ and figures/; returns the two pages."""
    tables = list(tables_of([family]))
    if study.comparisons:
        tables.append(results.results(study.comparisons))
    write_tables(folder / "tables", tables, formats)
    forest = contrast_figure(family.contrasts, folder / "figures" / f"contrasts_{family.kind}")[0]
    content = Content(
        title=f"Differences between {PLURAL[family.kind]}",
        comparisons=study.comparisons,
        tables=[table.shortened(MOST_LINES) for table in tables],
        pictures=[Picture(forest, f"Differences between {PLURAL[family.kind]}, with 95% intervals.")],
        warnings=[*warnings_of(study.comparisons), *warnings_between([family])],
        meta=meta,
        families=[family],
    )
    return write_pages(folder, content)
