"""One job of a sweep: a composed config becomes finished cells.

A cell is model × data × prompt × operator. Its folder is named by a hash of everything that determines
its numbers, so that a finished cell is never computed again and two processes never write one folder.
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from refadv_ablate import __version__
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.prompting import som
from refadv_ablate.running import perturbed_texts as texts
from refadv_ablate.running.parts import Cell, Parts, cells_of, masked, model_of, parts_of
from refadv_ablate.running.progress import Display
from refadv_ablate.running.run import Job, Reader, added, examples, run
from refadv_ablate.running.sweep import CellState, State, Sweep
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.storage.jsonl import atomic, to_line, write_json
from refadv_ablate.storage.records import dump, load, record_to_json
from refadv_ablate.types import (
    ORIGINAL,
    Comparison,
    Example,
    Model,
    Operator,
    Request,
    Usage,
)

STOPPED = "stopped by the user"


REPORTED = "told by the cells"
"""Note on an error that the cells of a job have reported, so that the job needn't."""


def execute(config: Any, sweep: Sweep, tracker: Any, parent: str) -> list[Comparison]:
    """Runs the cells of one composed config that aren't finished; returns all of their comparisons."""
    parts = parts_of(config)
    cells = cells_of(parts)
    with _locked(cells):
        todo = [cell for cell in cells if cell.state() != "done"]
        for cell in cells:
            if cell not in todo:
                _report(sweep, parts, cell, "done", tracker, parent)
        if todo:
            _run_cells(parts, todo, sweep, tracker, parent)
        return [load(cell.folder / "summary.json") for cell in cells]


@contextmanager
def _locked(cells: Sequence[Cell]) -> Iterator[None]:
    from filelock import FileLock

    with ExitStack() as stack:
        for cell in sorted(cells, key=lambda c: c.hash):
            cell.folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(cell.folder / ".lock"))
        yield


def _run_cells(parts: Parts, cells: Sequence[Cell], sweep: Sweep, tracker: Any, parent: str) -> None:
    runs = {cell.label: tracker.open_cell(parent, _info(parts, cell)) for cell in cells}
    for cell in cells:
        _status(cell, "running")
        write_yaml(cell.folder / "config.yaml", masked(parts.config))
        sweep.put(_cell_state(parts, cell, "running", run_id=runs[cell.label]))
    open_cells = list(cells)
    try:
        results = _measure(parts, cells)
        for cell in cells:
            comparison, state, reason = results[cell.label]
            dump(comparison, cell.folder / "summary.json")
            draw(parts, cell, comparison)
            _status(cell, state, reason)
            sweep.put(_cell_state(parts, cell, state, reason, runs[cell.label]))
            tracker.finish_cell(runs[cell.label], comparison, cell.folder)
            open_cells.remove(cell)
    except BaseException as error:
        _give_up(parts, open_cells, error, sweep, tracker, runs)
        raise


def _give_up(
    parts: Parts,
    cells: Sequence[Cell],
    error: BaseException,
    sweep: Sweep,
    tracker: Any,
    runs: Mapping[str, str],
) -> None:
    """Writes down why the cells have no result, so that none says "running" for ever."""
    stopped = isinstance(error, KeyboardInterrupt)
    state: State = "stopped" if stopped else "failed"
    reason = STOPPED if stopped else " ".join(str(error).split()) or type(error).__name__
    trace = "" if stopped or isinstance(error, UserError) else "".join(traceback.format_exception(error))
    for cell in cells:
        _status(cell, state, reason, trace)
        sweep.put(_cell_state(parts, cell, state, reason, runs[cell.label]))
    if cells:
        error.add_note(REPORTED)
    with suppress(Exception):  # where the log fails too, the first error is the one to tell
        for cell in cells:
            (tracker.kill if stopped else tracker.fail_cell)(runs[cell.label], reason)


def stop_rest(sweep: Sweep) -> None:
    """Says of cells that they are stopped whose processes were killed before they could."""
    for known in sweep.cells():
        if known.state == "running":
            _status(Cell(known.operator, known.hash, Path(known.folder)), "stopped", STOPPED)
            sweep.put(replace(known, state="stopped", reason=STOPPED))


def _measure(parts: Parts, cells: Sequence[Cell]) -> dict[str, tuple[Comparison, State, str]]:
    """Perturbs, asks, reads, writes predictions, and compares."""
    from refadv_ablate.storage.answers import Store

    settings, model = parts.settings, model_of(parts)
    operators = {cell.label: parts.operators[cell.label] for cell in cells}
    files = _texts(parts, operators)
    for cell in cells:
        shutil.copyfile(files[cell.label], cell.folder / "texts.jsonl")
    job = Job(
        data=parts.data,
        spec=parts.spec,
        model=model,
        style=parts.style,
        texts={label: texts.read(path) for label, path in files.items()},
        draws={label: operator.draws for label, operator in operators.items()},
        repeats=frozenset(
            label for label, operator in operators.items() if getattr(operator, "repeat", False)
        ),
        limit=settings.limit,
        retry=settings.retry == "format",
        notice={"chance_acc50": partial(_chance, model), "candidate_recall": som.recalled},
        durable=getattr(model, "durable", True),
        about={"model": parts.spec.name, "checkpoint": parts.spec.checkpoint},
    )
    label, path = next(iter(files.items()))
    planned = texts.count(path) // job.draws[label]
    if planned == 0:
        raise UserError(
            f"data {parts.data.name} has no examples; check data.path, data.split and data.exclude"
        )
    total = planned * (1 + sum(job.draws.values()))
    started = time.monotonic()
    title = f"{parts.spec.name} · {parts.data.name} · {', '.join(operators)}"
    with Store(settings.store) as store, Display(total, title, settings.progress) as display:
        reader = Reader(job, display)
        arms = _write(run(job, store, reader), cells)
    seconds = time.monotonic() - started
    return {cell.label: _compare(parts, cell, arms, planned, reader, seconds) for cell in cells}


def _chance(model: Model, request: Request) -> float | None:
    """Acc@0.5 expected of a control that knows it, else of pointing at any candidate with equal chance."""
    from refadv_ablate.models.controls import candidate_chance

    example = request.perturbed.example
    own: Callable[[Example, str], float] | None = getattr(model, "chance", None)
    if own is not None:
        return own(example, "acc50")
    return candidate_chance(example) if example.candidates else None


def _texts(parts: Parts, operators: Mapping[str, Operator]) -> dict[str, Path]:
    settings = parts.settings
    folder, data = settings.out / "texts", parts.data.fingerprint()
    files = {
        label: texts.texts_path(folder, data, label, operator, settings.seed, settings.limit)
        for label, operator in operators.items()
    }
    wanted = {label: (path, operators[label]) for label, path in files.items()}
    texts.ensure_all(wanted, lambda: examples(parts.data, settings.limit), settings.seed)
    return files


def _write(found: Iterator[Any], cells: Sequence[Cell]) -> dict[str, Arm]:
    """Sends each record to its arm and to the predictions of each cell that it belongs to."""
    arms = {ORIGINAL: Arm(), **{cell.label: Arm() for cell in cells}}
    with ExitStack() as stack:
        sinks: dict[str, list[IO[bytes]]] = {}
        for cell in cells:
            file = stack.enter_context(atomic(cell.folder / "predictions.jsonl"))
            sinks[cell.label] = [file]
            sinks.setdefault(ORIGINAL, []).append(file)
        for record in found:
            arms[record.condition].add(record)
            line = (to_line(record_to_json(record)) + "\n").encode()
            for sink in sinks[record.condition]:
                sink.write(line)
    return arms


def _compare(
    parts: Parts, cell: Cell, arms: Mapping[str, Arm], planned: int, reader: Reader, seconds: float
) -> tuple[Comparison, State, str]:
    original, perturbed = arms[ORIGINAL], arms[cell.label]
    comparison = stats.compare(
        original,
        perturbed,
        model=parts.spec.name,
        data=parts.data.name,
        prompt=parts.style.name,
        operator=cell.label,
        planned=planned,
        slices=parts.settings.slices,
        metrics=parts.settings.metrics,
        seed=parts.settings.seed,
    )
    frame = [
        text
        for condition, found in reader.warnings().items()
        if condition in (ORIGINAL, cell.label)
        for text in found
    ]
    excluded = getattr(parts.data, "excluded", {})
    left_out = [f"{n} examples left out of the data: {reason}" for reason, n in excluded.items() if n]
    left_out += getattr(parts.data, "notes", ())
    if first := reader.refused.get(cell.label):
        left_out.append(f"not perturbable, the first of them: {first}")
    missing = original.counts().get("missing", 0) + perturbed.counts().get("missing", 0)
    asked = max(1, len(original) + len(perturbed))
    state: State = "incomplete" if missing / asked > parts.settings.max_missing else "done"
    reason = ""
    if missing:
        first = reader.lost.get(ORIGINAL) or reader.lost.get(cell.label, "")
        then = "the same command asks them again" if state == "incomplete" else "max_missing allows that"
        reason = f"{missing} of {asked} answers are missing ({first}); {then}"
    used = added(reader.usage.get(ORIGINAL, Usage()), reader.usage.get(cell.label, Usage()))
    details = {
        **comparison.details,
        **reader.facts(),
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "usd": round(used.usd, 6),
        "seconds": round(seconds, 3),
        "hash": cell.hash,
        "version": __version__,
        "seed": parts.settings.seed,
        "excluded": dict(excluded),
    }
    warnings = (*parts.notes, *frame, *left_out, *comparison.warnings)
    if state == "incomplete":
        warnings = (f"INCOMPLETE: {reason}", *warnings)
    return replace(comparison, warnings=warnings, details=details), state, reason


def draw(parts: Parts, cell: Cell, comparison: Comparison) -> None:
    """The cell's pictures: Δ with its interval, and the gallery of its examples."""
    from refadv_ablate.report.figures.delta import delta_figure
    from refadv_ablate.report.pages import gallery

    (cell.folder / "figures").mkdir(exist_ok=True)
    delta_figure([comparison], cell.folder / "figures" / "delta")
    if parts.settings.gallery > 0:
        gallery.from_cell(cell.folder, parts.data, most=parts.settings.gallery)


# ── how a cell stands ───────────────────────────────────────────────────────────────────────────


def write_yaml(path: Path, value: Any) -> None:
    """A readable dump of a plain config."""
    from omegaconf import OmegaConf

    path.write_text(OmegaConf.to_yaml(OmegaConf.create(value)), encoding="utf-8")


def _status(cell: Cell, state: State, reason: str = "", trace: str = "") -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_json(
        cell.folder / "status.json",
        {
            "state": state,
            "reason": reason,
            "traceback": trace,
            "hash": cell.hash,
            "version": __version__,
            "time": now,
        },
    )


def _cell_state(parts: Parts, cell: Cell, state: State, reason: str = "", run_id: str = "") -> CellState:
    return CellState(
        cell.hash,
        str(cell.folder),
        parts.spec.name,
        parts.data.name,
        parts.style.name,
        cell.label,
        state,
        reason,
        run_id,
    )


def _report(sweep: Sweep, parts: Parts, cell: Cell, state: State, tracker: Any, parent: str) -> None:
    """A cell that an earlier command finished, under this sweep."""
    run_id = tracker.open_cell(parent, _info(parts, cell))
    tracker.finish_cell(run_id, load(cell.folder / "summary.json"), cell.folder)
    sweep.put(_cell_state(parts, cell, state, "", run_id))


def _info(parts: Parts, cell: Cell) -> Any:
    from refadv_ablate.tracking.mlflow import CellInfo

    return CellInfo(
        model=parts.spec.name,
        data=parts.data.name,
        prompt=parts.style.name,
        operator=cell.label,
        seed=parts.settings.seed,
        limit=parts.settings.limit,
        hash=cell.hash,
        config_path=cell.folder / "config.yaml",
        data_fingerprint=parts.data.fingerprint(),
    )
