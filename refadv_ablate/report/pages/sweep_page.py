"""One page for one sweep: what was asked, what came out, what to mind, and how to do it again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.figures.contrasts import contrast_figure
from refadv_ablate.report.figures.curves import hardness_figure, threshold_figure
from refadv_ablate.report.figures.delta import delta_figure, flip_figure, model_forest
from refadv_ablate.report.figures.flows import flow_figure
from refadv_ablate.report.figures.profile import profile_figure
from refadv_ablate.report.loading import contrasting
from refadv_ablate.report.loading.sources import Names, from_files
from refadv_ablate.report.loading.study import Study, within
from refadv_ablate.report.pages import across, examples, shots
from refadv_ablate.report.pages.page import page_of
from refadv_ablate.report.pages.report_page import Content, Picture, write_pages
from refadv_ablate.report.tables import originals, paper, results
from refadv_ablate.report.tables.contrasts import PLURAL, rows_of, tables_of, warnings_between
from refadv_ablate.report.tables.formats import FORMATS
from refadv_ablate.report.tables.landings import flows, landing_table
from refadv_ablate.report.tables.profile import parts_table, profile_table
from refadv_ablate.report.tables.table import Table
from refadv_ablate.report.tables.word_kinds import word_kinds
from refadv_ablate.statistics.formatting import cell_name, warnings_of
from refadv_ablate.statistics.landings import Flow
from refadv_ablate.statistics.profile import is_profile, left_out, on_old_place, ordinary
from refadv_ablate.storage.jsonl import atomic, write_json
from refadv_ablate.storage.records import comparison_to_json
from refadv_ablate.types import ORIGINAL, Comparison, Json

OPERATORS: Mapping[str, str] = {"table2": "fixed", "table3": "bow", "table4": "descriptor_deletion"}
"""Which label stands for the perturbation of a paper table, unless told otherwise."""
LONG = ("contrasts_model", "contrasts_data", "contrasts_prompt", "contrasts_operator", "contrasts_variant")
MOST_LINES = 60
"""Of differences on a page: pairs grow with the square of the cells. Files hold them all."""
MOST_CURVES = 6
"""Pages with more cells would drown in curves; each cell's are in its own report."""


def write(
    folder: Path,
    comparisons: Sequence[Comparison],
    failures: Sequence[tuple[str, str]] = (),
    meta: Mapping[str, Json] | None = None,
    cells: Sequence[Path] = (),
    operators: Mapping[str, str] = OPERATORS,
) -> list[Path]:
    """report.html, report.md, tables/ and figures/ of a sweep; returns the two pages.

    `cells` are the folders of the cells: their predictions give the paper's accuracy tables and the
    curves, their galleries are linked. `meta` may have: title, command, versions, seed, anything short.
    """
    loaded = [place for place in cells if (place / "predictions.jsonl").is_file()]
    study = within(from_files(loaded, Names()) if loaded else [], comparisons)
    pages = {place / "predictions.jsonl": place / "gallery.html" for place in loaded}
    return from_study(folder, study, failures=failures, meta=meta, operators=operators, galleries=pages)


def from_study(
    folder: Path,
    study: Study,
    *,
    failures: Sequence[tuple[str, str]] = (),
    meta: Mapping[str, Json] | None = None,
    operators: Mapping[str, str] = OPERATORS,
    names: Sequence[str] | None = None,
    formats: Sequence[str] = tuple(FORMATS),
    galleries: Mapping[Path, Path] | None = None,
    slices: Sequence[str] = (),
    metrics: Sequence[str] = ("acc50", "acc75"),
) -> list[Path]:
    """The same of predictions from anywhere; `names` chooses paper tables (None: those that apply).

    `galleries`: the predictions of a cell → its page of examples, where it has one.
    `slices`, `metrics`: what is shown of cells without a perturbation, and by which attributes.
    """
    chosen = paper.automatic(study, operators) if names is None else names
    pages = {name: os.path.relpath(page, folder) for name, page in _galleries(study, galleries or {})}
    tables = [table for name in chosen for table in paper.build(name, study, operators)]
    if study.comparisons:
        tables.insert(0, results.results(study.comparisons, pages=pages))
        tables.insert(0, profile_table(study.comparisons))
        tables.append(parts_table(study.comparisons))
        tables += [results.metrics(study.comparisons), results.parts(study.comparisons)]
    alone = [(cell, arm) for cell, arm in study.originals() if not cell.operators]
    families = list(contrasting.every(study))
    landed = list(flows(study))
    tables += [word_kinds(study), *([landing_table(landed)] if landed else [])]
    tables += [*tables_of(families), *originals.tables_of(study)]
    tables = [table for table in (*tables, results.parts_alone(alone, slices, metrics)) if table.lines]
    write_tables(folder / "tables", tables, formats)
    pictures = draw(study, folder / "figures", families)
    pictures += list(_flow_pictures(landed, folder / "figures"))
    shown = across.gather(study.pairs, pages)
    content = Content(
        title=str((meta or {}).get("title") or _title(study.comparisons) or folder.name),
        comparisons=study.comparisons,
        tables=[table.shortened(MOST_LINES) if table.name in LONG else table for table in tables],
        pictures=pictures,
        failures=failures,
        warnings=[*_warnings(study), *warnings_between(families)],
        meta={key: value for key, value in (meta or {}).items() if key != "title"},
        galleries=pages,
        shots=shots.choose(shown),
        examples=examples.write(folder / "examples.html", shown),
        families=families,
    )
    write_json(
        folder / "comparisons.json", {"comparisons": [comparison_to_json(c) for c in study.comparisons]}
    )
    write_json(folder / "contrasts.json", {"contrasts": list(rows_of(families))})
    return write_pages(folder, content)


def _title(comparisons: Sequence[Comparison]) -> str:
    """Models on data: perturbations; the first few of each."""
    if not comparisons:
        return ""
    kinds = [[getattr(c, kind) for c in comparisons] for kind in ("model", "data", "operator")]
    model, data, operator = (_few(list(dict.fromkeys(names))) for names in kinds)
    return f"{model} on {data}: {operator}"


def _few(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def write_tables(folder: Path, tables: Sequence[Table], formats: Sequence[str]) -> list[Path]:
    """Each table in each format; tables of one name are numbered."""
    written = []
    seen: dict[str, int] = {}
    for table in tables:
        seen[table.name] = seen.get(table.name, 0) + 1
        name = table.name if seen[table.name] == 1 else f"{table.name}_{seen[table.name]}"
        for form in formats:
            suffix, writer = FORMATS[form]
            path = folder / f"{name}{suffix}"
            text = page_of(table.title, writer(_inside(table))) if form == "html" else writer(table)
            with atomic(path) as file:
                file.write(text.encode("utf-8", "backslashreplace"))
            written.append(path)
    return written


def _inside(table: Table) -> Table:
    """The same in a folder of its own, one step further from the pages that its rows link."""
    if not any(line.link for line in table.lines):
        return table
    lines = (replace(line, link=f"../{line.link}" if line.link else "") for line in table.lines)
    return Table(table.name, table.title, table.label_titles, table.columns, tuple(lines), table.notes)


def draw(study: Study, folder: Path, families: Sequence[contrasting.Family] = ()) -> list[Picture]:
    """All figures that the study can fill, as SVG and PNG."""
    return [Picture(paths[0], caption) for paths, caption in _drawn(study, folder, families)]


def _drawn(
    study: Study, folder: Path, families: Sequence[contrasting.Family]
) -> Iterator[tuple[list[Path], str]]:
    if is_profile(study.comparisons):
        yield (
            profile_figure(study.comparisons, folder / "understanding"),
            "What the model uses: each operator's score with its 95% interval.",
        )
    comparisons = ordinary(study.comparisons)
    told = f" {left_out(study.comparisons)}".rstrip()
    if comparisons:
        yield delta_figure(comparisons, folder / "delta"), f"Δ Acc@0.5 by model, data and perturbation.{told}"
        if len({c.model for c in comparisons}) > 1:
            yield (
                model_forest(comparisons, folder / "models"),
                f"Δ Acc@0.5 by perturbation and data, model by model.{told}",
            )
        flips = "Answers that changed: Δ is their difference."
        yield flip_figure(comparisons, folder / "flips"), f"{flips}{told}"
    for family in families:
        yield (
            contrast_figure(family.contrasts, folder / f"contrasts_{family.kind}"),
            f"Differences of Δ Acc@0.5 between {PLURAL[family.kind]}, with 95% intervals.",
        )
    for index, (name, arms) in enumerate(_arms(study)):
        if index == MOST_CURVES:
            return
        suffix = "" if index == 0 else f"_{index + 1}"
        hard = hardness_figure(arms, folder / f"hardness{suffix}")
        yield hard, f"{name}: Acc@0.5 by distractors and length; marker area: examples; 95% intervals."
        yield threshold_figure(arms, folder / f"thresholds{suffix}"), f"{name}: accuracy by IoU threshold."


def _flow_pictures(landed: Sequence[tuple[Comparison, Flow]], folder: Path) -> Iterator[Picture]:
    for index, (comparison, flow) in enumerate(landed[:MOST_CURVES]):
        suffix = "" if index == 0 else f"_{index + 1}"
        path = flow_figure(flow, folder / f"flow{suffix}", cell_name(comparison))[0]
        yield Picture(path, f"{cell_name(comparison)}: where answers land, original and perturbed.")


def _arms(study: Study) -> Iterator[tuple[str, dict[str, Arm]]]:
    """Per model, data and prompt: the original arm and every perturbed one."""
    found: dict[tuple[str, str, str], dict[str, Arm]] = {}
    for cell, arm in study.originals():
        found[(cell.names.model, cell.names.data, cell.prompt)] = {ORIGINAL: arm}
    old = {(id(cell), c.operator) for cell, c in study.pairs if on_old_place(c)}
    for cell in study.cells:
        arms = found.get((cell.names.model, cell.names.data, cell.prompt))
        if arms is not None:
            arms.update({name: cell.arms[name] for name in cell.operators if (id(cell), name) not in old})
    for names, arms in found.items():
        yield " · ".join(filter(None, names)), arms


def _warnings(study: Study) -> Iterator[tuple[str, str]]:
    """Of comparisons, and of files that have none; each sentence once."""
    told = warnings_of(study.comparisons)
    yield from told
    heard = {sentence for _, sentence in told}
    for cell in study.cells:
        for warning in cell.warnings:
            if warning not in heard:
                heard.add(warning)
                yield cell.names.model or cell.path.name, warning


def _galleries(study: Study, places: Mapping[Path, Path]) -> Iterator[tuple[str, Path]]:
    """(name of the cell, its page) where there is one."""
    for cell, comparison in study.pairs:
        page = places.get(cell.path)
        if page is not None and page.is_file():
            yield cell_name(comparison), page
