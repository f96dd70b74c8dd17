"""A command's cells from start to table: prepare the log, run the jobs, gather what they left."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from refadv_ablate import __version__, assets
from refadv_ablate.errors import UserError
from refadv_ablate.running import gpus, parts, stop_with_launcher
from refadv_ablate.running import job as jobs
from refadv_ablate.running.sweep import VARIABLE, CellState, Sweep
from refadv_ablate.seeding import digest
from refadv_ablate.statistics import comparison
from refadv_ablate.storage.jsonl import write_json
from refadv_ablate.storage.records import comparison_to_json, load
from refadv_ablate.tracking.metrics import censored
from refadv_ablate.types import Comparison

GOOD = ("done", "incomplete")
MOST_LINES = 4
"""Galleries named at the end of a sweep; the report links them all."""


def run(words: Sequence[str], multirun: bool, command: str, dry: bool) -> int:
    """Returns the exit status: 1 if any cell failed or is incomplete."""
    config = assets.compose(assets.representative(words))
    if dry:
        return _list_cells(words, multirun)
    settings = parts.Settings.of(assets.plain(config))
    if not multirun:
        parts.cells_of(parts.parts_of(config))  # a mistake shows before anything is written
    _check_writable(settings.out)
    tracker = tracker_of(config)
    tracker.prepare()
    sweep = Sweep.of(settings.out, [censored(word) for word in words], multirun)
    with sweep.alone():
        return _run(config, words, multirun, command, sweep, tracker)


def _run(config: Any, words: Sequence[str], multirun: bool, command: str, sweep: Sweep, tracker: Any) -> int:
    parent = tracker.open_sweep(
        " ".join(words) or "default", {"command": command, "sweep": sweep.folder.name}
    )
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    facts = {"parent": parent, "multirun": multirun, "pid": os.getpid(), "version": __version__, **versions()}
    told = [censored(word) for word in words]
    chosen = {"seed": config.seed, "started": started, "pages": config.pages}
    sweep.begin(told, censored(command), {**facts, **chosen})
    whole = True
    try:
        if multirun:
            whole = _hydra(words)
        else:
            jobs.execute(config, sweep, tracker, parent)
    except KeyboardInterrupt:
        jobs.stop_rest(sweep)
        tracker.kill(parent, jobs.STOPPED)
        raise
    except Exception as error:
        tracker.fail_cell(parent, str(error) or type(error).__name__)
        raise
    finally:
        parts.release()
    return max(finish(sweep, tracker, parent), 0 if whole else 1)


def _check_writable(out: Path) -> None:
    """Raises UserError where results can't be kept, before anything is asked."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        raise UserError(f"out={out} can't be written to ({error.strerror}); give out=FOLDER") from error


def tracker_of(config: Any) -> Any:
    """The log of this command; relative addresses are taken from the launch directory."""
    return assets.build(config.tracking, "tracking", launch_dir=Path.cwd())


def versions() -> dict[str, str]:
    """What a reader needs to run the same again."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("torch", "transformers", "hydra-core", "mlflow-skinny", "mlflow", "spacy", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"versions": json.dumps(found)}


def _hydra(words: Sequence[str]) -> bool:
    """Hands the sweep to Hydra, with whatever sweeper and launcher the words choose.

    False where it ended early: at a failed job with fail_fast, or at a worker that was killed. Hydra has
    said why by then, and what the other jobs found is worth its table.
    """
    import hydra

    sys.argv = [sys.argv[0], "-m", *_models_first(words)]
    job = hydra.main(config_path=str(assets.asset_dir("conf")), config_name="config", version_base="1.3")(
        task
    )
    try:
        job()
    except SystemExit:
        return False
    return True


def _models_first(words: Sequence[str]) -> list[str]:
    """The same words with the model's before the others: jobs run in the order of the product, so that the
    jobs of one model follow each other and a process loads it once."""

    def of_model(word: str) -> bool:
        return re.split(r"[=.@]", word.lstrip("+~"), maxsplit=1)[0] in ("model", "backend")

    return sorted(words, key=lambda word: not of_model(word))


def task(config: Any) -> None:
    """One job of a sweep, in any process: a failure is written down, and the others go on."""
    sweep = Sweep.inherited()
    if sweep is None:
        raise UserError(f"this job doesn't know its sweep: ${VARIABLE} must reach the worker processes")
    facts = sweep.facts()
    stop_with_launcher.end_with(facts["pid"])
    try:
        if config.gpus:
            gpus.take_one(list(config.gpus), sweep.folder / "gpus")
        jobs.execute(config, sweep, tracker_of(config), facts["parent"])
    except KeyboardInterrupt:
        raise
    except Exception as error:
        _note_failure(sweep, config, error)
        if config.fail_fast:
            raise


def _note_failure(sweep: Sweep, config: Any, error: Exception) -> None:
    """Writes down a failure that no cell has reported, such as data that can't be read."""
    from hydra.core.hydra_config import HydraConfig

    reason = " ".join(str(error).split()) or type(error).__name__
    words = list(HydraConfig.get().overrides.task)
    key = digest(words)
    if not isinstance(error, UserError):
        path = sweep.folder / f"failure-{key[:8]}.txt"
        path.write_text(traceback.format_exc(), encoding="utf-8")
        reason += f" (traceback in {path})"
    elif jobs.REPORTED in getattr(error, "__notes__", ()):
        return
    name = str(config.model.get("name") or "?")
    constant = set(sweep.facts()["overrides"])
    swept = " ".join(word for word in words if word not in constant)
    sweep.put(CellState(key, "", name, swept, "", "", "failed", reason))


def finish(sweep: Sweep, tracker: Any, parent: str) -> int:
    """The table of the sweep on the screen, in its folder and in the log."""
    from rich.console import Console

    from refadv_ablate.report.console import console

    cells = sweep.cells()
    comparisons = comparison.holm(
        [load(Path(cell.folder) / "summary.json") for cell in cells if cell.state in GOOD]
    )
    unsaid = "its process ended before it could say why"
    failures = [
        (_title(cell), f"{cell.state}: {cell.reason or unsaid}") for cell in cells if cell.state not in GOOD
    ]
    write_json(sweep.folder / "summary.json", {"comparisons": [comparison_to_json(c) for c in comparisons]})
    pages = _pages(sweep, comparisons, failures, cells)
    tracker.close_sweep(parent, comparisons, sweep.folder, failures)
    out = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    out.print(console(comparisons, failures))
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


def _list_cells(words: Sequence[str], multirun: bool) -> int:
    """The cells that the command would run, and how each stands."""
    from itertools import product

    choices = []
    for override in assets.parse(_models_first(assets.sweep_params(words)) if multirun else words):
        values = list(override.sweep_iterator()) if override.is_sweep_override() else None
        key = override.get_key_element()
        choices.append([f"{key}={v}" for v in values] if values else [override.input_line])
    total = lacking = 0
    for combination in product(*choices):
        try:
            cells = parts.cells_of(parts.parts_of(assets.compose(list(combination))))
        except UserError as error:  # such as data that isn't there yet
            print(f"{'not ready':<11} {' '.join(combination)}: {error}")
            lacking += 1
            continue
        for cell in cells:
            total += 1
            print(f"{cell.state() or 'new':<11} {cell.folder.name}")
    print(f"{total} cells" + (f", {lacking} jobs that lack something" if lacking else ""))
    return 1 if lacking else 0
