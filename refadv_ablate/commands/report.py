"""`refadv-ablate report`: where predictions come from, what is made of them, where it goes."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from refadv_ablate import __version__, assets
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.report import cases, compare, contrast
from refadv_ablate.report.console import accuracies, basis, console, contrast_lines
from refadv_ablate.report.loading import contrasting
from refadv_ablate.report.loading.restricting import restricted
from refadv_ablate.report.loading.runs import from_log
from refadv_ablate.report.loading.sources import Cell, Names, from_files
from refadv_ablate.report.loading.study import Study, study
from refadv_ablate.report.pages import gallery, sweep_page
from refadv_ablate.report.pages.imagery import images_of
from refadv_ablate.report.tables import paper
from refadv_ablate.report.tables.formats import FORMATS

NUMBERS = ("1", "2", "3", "4", "6", "7", "dig")


@dataclass(frozen=True, slots=True)
class Options:
    """The keys of conf/command/report.yaml."""

    action: Literal["make", "compare", "contrast", "cases"]
    source: Literal["files", "mlflow", "store"]
    path: str | list[str]
    run: str | list[str] | None
    names: dict[str, str | None]
    tables: str | list[int | str]
    operators: dict[str, str]
    formats: list[str]
    a: str | list[str] | None
    b: str | list[str] | None
    examples: Literal["all", "changed", "common"]
    between: Literal["model", "data", "prompt", "operator", "variant", "slice"]
    by: str
    of: list[Literal["delta", "original", "perturbed", "relative", "above_chance"]]
    family: str | list[str]
    each: int
    gallery: int
    images: Literal["inline", "folder"]
    resamples: int
    to: str


def run(cfg: Any) -> int:
    """Reads its keys under cfg.report (cfg.command from the command line); exit status 0."""
    own = cfg["command"] if "command" in cfg else cfg["report"]
    options: Options = assets.build({"_target_": f"{__name__}.Options", **assets.plain(own)}, "report")
    _check(options)
    with tempfile.TemporaryDirectory() as scratch:
        if options.action == "compare":
            pages = _compare(cfg, options, Path(scratch))
        elif options.action == "contrast":
            pages = _contrast(cfg, options, Path(scratch))
        elif options.action == "cases":
            pages = _cases(cfg, options, Path(scratch))
        else:
            pages = _make(cfg, options, Path(scratch))
    for page in pages:
        print(page)
    return 0


def _check(options: Options) -> None:
    for form in options.formats:
        if form not in FORMATS:
            raise UserError(f"report.formats has no {form!r}; {nearest(form, FORMATS)}")
    for table in _listed(options.tables):
        if table not in ("auto", *NUMBERS):
            raise UserError(
                f"report.tables={table}: the paper's tables here are {', '.join(NUMBERS)}, or auto"
            )
    unknown = [name for name in options.names if name not in ("model", "data", "prompt", "checkpoint")]
    if unknown:
        raise UserError(f"report.names has no {unknown[0]!r}; it takes model, data, prompt, checkpoint")


def _make(cfg: Any, options: Options, scratch: Path) -> list[Path]:
    cells = _load(cfg, options, options.path, options.run, scratch)
    found = study(
        cells,
        slices=tuple(cfg.slices),
        metrics=tuple(cfg.metrics),
        seed=cfg.seed,
        n_boot=options.resamples,
    )
    chosen = _listed(options.tables)
    names = None if "auto" in chosen else [name if name == "dig" else f"table{name}" for name in chosen]
    folder = Path(options.to)
    galleries = dict(_galleries(cells, folder, options))
    pages = sweep_page.from_study(
        folder,
        found,
        meta={
            "title": _title(found),
            "command": _command(),
            "version": __version__,
            "seed": cfg.seed,
            "resamples": options.resamples,
            "examples": options.examples,
            "sources": sorted({str(cell.path) for cell in cells})[:50],
        },
        operators=options.operators,
        names=names,
        formats=options.formats,
        galleries=galleries,
        slices=tuple(cfg.slices),
        metrics=tuple(cfg.metrics),
    )
    _show(found, paper.automatic(found, options.operators) if names is None else names, options)
    return pages


def _compare(cfg: Any, options: Options, scratch: Path) -> list[Path]:
    if options.a is None or options.b is None:
        raise UserError(
            "report compare needs two sides, a=… and b=…: files, folders, or run ids with source=mlflow"
        )
    if options.source == "store":
        raise UserError("report compare takes source=files or source=mlflow")
    sides = [
        _load(cfg, options, side, side, scratch / name) for name, side in (("a", options.a), ("b", options.b))
    ]
    matched = compare.match(*sides, seed=cfg.seed, n_boot=options.resamples)
    from rich.console import Console

    out = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    out.print(console([m.comparison for m in matched], change="b − a"))
    return compare.write(Path(options.to), matched, most=options.gallery, command=_command())


def _contrast(cfg: Any, options: Options, scratch: Path) -> list[Path]:
    cells = _load(cfg, options, options.path, options.run, scratch)
    found = study(cells, metrics=("acc50",), seed=cfg.seed, n_boot=options.resamples)
    declared = [name for name in _listed(options.family) if name != "declared"]
    family = contrasting.between(
        found, options.between, quantities=options.of, by=options.by, declared=declared
    )
    from rich.console import Console

    out = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    out.print(contrast_lines(family))
    meta = {"command": _command(), "version": __version__, "seed": cfg.seed}
    return contrast.write(Path(options.to), found, family, formats=options.formats, meta=meta)


def _cases(cfg: Any, options: Options, scratch: Path) -> list[Path]:
    if options.each < 1:
        raise UserError(f"report.each={options.each}: give the cases of each kind, at least 1")
    cells = _load(cfg, options, options.path, options.run, scratch)
    found = study(cells, metrics=("acc50",), seed=cfg.seed, n_boot=1)
    return cases.write(Path(options.to), found, each=options.each, seed=cfg.seed, command=_command())


def _load(
    cfg: Any, options: Options, path: str | list[str], run_id: str | list[str] | None, scratch: Path
) -> list[Cell]:
    if options.source == "store":
        from refadv_ablate.running.from_store import from_store

        return [from_store(cfg)]
    if options.source == "mlflow":
        tracker = assets.build(cfg.tracking, "tracking", launch_dir=Path.cwd())
        return from_log(tracker, _listed(run_id), scratch)
    given = Names(**{key: text for key, text in options.names.items() if text})
    return restricted(from_files(_listed(path), given), options.examples)


def _galleries(cells: Sequence[Cell], folder: Path, options: Options) -> Iterator[tuple[Path, Path]]:
    """(predictions, page) of each cell with a perturbation; with images where its data is still here."""
    for cell in cells:
        if not options.gallery or not cell.operators:
            continue
        chosen = gallery.Chosen.of(gallery.Records(cell.records), options.gallery)
        wanted = {original.example_id for original, _ in chosen.pairs}
        image_of = images_of(cell, wanted) or (lambda _id: None)
        words = (*cell.operators, cell.names.model, cell.names.data, cell.prompt)
        place = folder / "galleries" / _safe("--".join(filter(None, words)))
        gallery.write(
            place / "gallery.html",
            chosen,
            image_of,
            title=" · ".join(filter(None, words)),
            back="../../report.html",
            images=options.images,
        )
        yield cell.path, place / "gallery.html"


def _show(found: Study, names: Sequence[str], options: Options) -> None:
    from rich.console import Console

    out = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    for name in names:
        if name in ("table6", "table7"):
            for table in paper.build(name, found, options.operators):
                out.print(accuracies(table))
            for cell, arm in found.originals():
                names = ", ".join(filter(None, (cell.names.model, cell.names.data, cell.prompt)))
                out.print(basis(names, arm.counts(), arm.images()))
    if found.comparisons:
        out.print(console(found.comparisons))
    heard = {w for c in found.comparisons for w in c.warnings}
    for cell in found.cells:
        for warning in cell.warnings:
            if warning not in heard:
                out.print(f"[bold yellow]warning[/] {cell.path.name}: ", warning, markup=True, soft_wrap=True)


def _title(found: Study) -> str:
    models = list(dict.fromkeys(cell.names.model for cell in found.cells))
    shown = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if len(models) > 3 else "")
    return f"{shown} on {', '.join(found.datasets())}"


def _listed(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]


def _safe(name: str) -> str:
    from refadv_ablate.running.sweep import slugify

    return slugify(name)[:120]


def _command() -> str:
    return shlex.join(["python", "-m", "refadv_ablate", *sys.argv[1:]])
