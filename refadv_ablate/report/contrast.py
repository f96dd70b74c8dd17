"""Results set against each other, as a page: differences with intervals, their forest, ranks of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from refadv_ablate.report.figures.contrasts import contrast_figure
from refadv_ablate.report.loading.contrasting import Family
from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.pages.report_page import Content, Picture, write_pages
from refadv_ablate.report.pages.sweep_page import write_tables
from refadv_ablate.report.tables import results
from refadv_ablate.report.tables.contrasts import PLURAL, tables_of
from refadv_ablate.statistics.contrasts import Contrast
from refadv_ablate.statistics.formatting import interval, p_value, points, warnings_of
from refadv_ablate.statistics.verdicts import ALPHA
from refadv_ablate.types import Json


def sentence(each: Contrast) -> str:
    """What one difference of Δ allows to say, and no more."""
    change = each.difference
    if change.value is None:
        return f"{each.b} against {each.a} ({each.where}): no difference ({change.note})."
    size = f"{points(change.value, signed=True)} {interval(change)} points".replace("  ", " ")
    if change.low is None or change.high is None or each.p is None:
        return f"{each.b} against {each.a} ({each.where}): {size}; {change.note}."
    p = each.p if each.p_holm is None else each.p_holm
    told = f"difference of Δ {size}, p {p_value(p)}"
    if p >= ALPHA or change.low <= 0 <= change.high:
        return f"{each.b} against {each.a} ({each.where}): the difference can't be told from 0; {told}."
    more = "loses less" if change.value > 0 else "loses more"
    return f"{each.b} {more} than {each.a} ({each.where}): {told}."


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
        tables=tables,
        pictures=[Picture(forest, f"Differences between {PLURAL[family.kind]}, with 95% intervals.")],
        warnings=warnings_of(study.comparisons),
        meta=meta,
        said=[sentence(each) for each in family.contrasts if each.quantity == "delta"],
    )
    return write_pages(folder, content)
