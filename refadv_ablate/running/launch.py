"""A command from its words to its exit status: compose, prepare the log, run the jobs, finish."""

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
from refadv_ablate.masking import censored, hidden, mask_logs, told
from refadv_ablate.running import gpus, loaded_model, stop_with_launcher
from refadv_ablate.running.dry_run import combinations, list_cells
from refadv_ablate.running.finish import finish
from refadv_ablate.running.job import REPORTED, STOPPED, Job, set_up_wrongly, stop_rest
from refadv_ablate.running.settings import Settings
from refadv_ablate.running.sweep import VARIABLE, CellState, Sweep
from refadv_ablate.seeding import digest
from refadv_ablate.statistics.labels import declared
from refadv_ablate.storage.records import load


def run(words: Sequence[str], multirun: bool, command: str, dry: bool) -> int:
    """Returns the exit status: 1 if any cell failed or is incomplete. Raises UserError for a mistake."""
    whole = assets.sweep_params(words) if multirun else words
    config = assets.compose(assets.representative(whole))
    if dry:
        return list_cells(_models_first(whole))
    settings = Settings.of(assets.plain(config))
    job = None if multirun else Job.of(config)  # a mistake shows before anything is written
    try:
        _check_writable(settings.out)
    except UserError:
        jobs = [job] if job is not None else [Job.of(assets.compose(each)) for each in combinations(whole)]
        if (status := _from_finished(jobs)) is None:
            raise
        return status
    if job is not None:
        print(job, file=sys.stderr)
        job.check()
    tracker = tracker_of(config)
    tracker.prepare()
    sweep = Sweep.of(settings.out, [censored(word) for word in words], multirun)
    with sweep.alone():
        return _run(config, job, words, command, sweep, tracker)


def _run(config: Any, job: Job | None, words: Sequence[str], command: str, sweep: Sweep, tracker: Any) -> int:
    """Runs the job, or without one the jobs of a multirun, under one parent run of the log."""
    parent = tracker.open_sweep(
        censored(" ".join(words)) or "default", {"command": command, "sweep": sweep.folder.name}
    )
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    process = {"parent": parent, "multirun": job is None, "pid": os.getpid()}
    chosen = {"version": __version__, "seed": config.seed, "started": started, "pages": config.pages}
    sweep.begin([censored(word) for word in words], censored(command), {**process, **chosen, **versions()})
    whole = True
    try:
        if job is None:
            whole = _hydra(words)
        else:
            job.execute(sweep, tracker, parent)
    except KeyboardInterrupt:
        stop_rest(sweep)
        tracker.kill(parent, STOPPED)
        raise
    except Exception as error:
        end = tracker.discard if set_up_wrongly(error) else tracker.fail_cell
        end(parent, censored(str(error)) or type(error).__name__)
        raise
    finally:
        loaded_model.release()
    return max(finish(sweep, tracker, parent), 0 if whole else 1)


def _from_finished(jobs: Sequence[Job]) -> int | None:
    """The table of a command whose cells are all finished, where nothing can be written; None for another."""
    from rich.console import Console

    from refadv_ablate.report.console import console

    cells = [cell for job in jobs for cell in job.cells]
    if any(cell.state() != "done" for cell in cells):
        return None
    found = declared([load(cell.folder / "summary.json") for cell in cells])
    out = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    out.print(console(found, []))
    for cell in cells:
        out.print(f"results: {os.path.relpath(cell.folder)}", markup=False, soft_wrap=True)
    return 0


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

    words = assets.forced(words, assets.sweep_params(words))
    sys.argv = [sys.argv[0], "-m", *hidden(_models_first(words))]  # Hydra writes them down
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
    mask_logs()
    facts = sweep.facts()
    stop_with_launcher.end_with(facts["pid"])
    try:
        if config.gpus:
            gpus.take_one(list(config.gpus), sweep.folder / "gpus")
        Job.of(config).execute(sweep, tracker_of(config), facts["parent"])
    except KeyboardInterrupt:
        raise
    except Exception as error:
        _note_failure(sweep, config, error)
        if config.fail_fast:
            raise


def _note_failure(sweep: Sweep, config: Any, error: Exception) -> None:
    """Writes down a failure that no cell has reported, such as data that can't be read."""
    from hydra.core.hydra_config import HydraConfig

    reason = censored(" ".join(str(error).split())) or type(error).__name__
    words = [told(word) for word in HydraConfig.get().overrides.task]
    key = digest(words)
    if not isinstance(error, UserError):
        path = sweep.folder / f"failure-{key[:8]}.txt"
        path.write_text(censored(traceback.format_exc()), encoding="utf-8")
        reason += f" (traceback in {path})"
    elif REPORTED in getattr(error, "__notes__", ()):
        return
    name = str(config.model.get("name") or "?")
    constant = set(sweep.facts()["overrides"])
    swept = " ".join(word for word in words if word.lstrip("+") not in constant)
    sweep.put(CellState(key, "", name, swept, "", "", "failed", reason))
