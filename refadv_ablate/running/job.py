"""One job of a sweep: a composed config, owned from its parts to its finished cells.

compose → **parts → cells → plan → ask → read → compare** → report: a Job is made once from a config, so
that a mistake shows before anything is written, and then measures the cells that aren't finished.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError, printable
from refadv_ablate.masking import censored, masked
from refadv_ablate.running.ask import ASKED
from refadv_ablate.running.cells import Cell, cells_of
from refadv_ablate.running.loaded_model import model_of
from refadv_ablate.running.measure import measure
from refadv_ablate.running.parts import Parts, parts_of
from refadv_ablate.running.sweep import CellState, State, Sweep
from refadv_ablate.statistics.profile import on_old_place
from refadv_ablate.storage.records import dump, load
from refadv_ablate.types import Comparison

STOPPED = "stopped by the user"


REPORTED = "told by the cells"
"""Note on an error that the cells of a job have reported, so that the job needn't."""


@dataclass(frozen=True)
class Job:
    """The parts of one composed config and its cells, one for each operator."""

    parts: Parts
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, config: Any) -> Job:
        """Builds everything but the model's weights. Raises UserError for any mistake in the config."""
        parts = parts_of(config)
        return cls(parts, tuple(cells_of(parts)))

    def check(self) -> None:
        """Raises ModelUnavailable where the model can't be had and no store may have its answers."""
        path = self.parts.settings.store.removeprefix("sqlite:///")
        if not Path(path).exists() and any(cell.state() != "done" for cell in self.cells):
            check = getattr(model_of(self.parts), "check", None)
            if check is not None:
                check()

    def __str__(self) -> str:
        """What is run on what, for the first line of a run."""
        parts = self.parts
        operators = ", ".join(cell.label for cell in self.cells)
        return f"{parts.spec.name} on {parts.data.name}, prompt {parts.style.name}: {operators}"

    def execute(self, sweep: Sweep, tracker: Any, parent: str) -> list[Comparison]:
        """Measures the cells that aren't finished; returns the comparisons of all of them."""
        with _locked(self.cells):
            todo = [cell for cell in self.cells if cell.state() != "done"]
            for cell in self.cells:
                if cell not in todo:
                    self._report_finished(cell, sweep, tracker, parent)
            if todo:
                self._measure(todo, sweep, tracker, parent)
            return [load(cell.folder / "summary.json") for cell in self.cells]

    def _measure(self, cells: Sequence[Cell], sweep: Sweep, tracker: Any, parent: str) -> None:
        runs = {cell.label: tracker.open_cell(parent, self._info(cell)) for cell in cells}
        for cell in cells:
            cell.write_state("running")
            write_yaml(cell.folder / "config.yaml", masked(self.parts.config))
            sweep.put(self._cell_state(cell, "running", run_id=runs[cell.label]))
        open_cells = list(cells)
        try:
            results = measure(self.parts, cells)
            for cell in cells:
                comparison, state, reason = results[cell.label]
                dump(comparison, cell.folder / "summary.json")
                draw(self.parts, cell, comparison)
                cell.write_state(state, reason)
                sweep.put(self._cell_state(cell, state, reason, runs[cell.label]))
                tracker.finish_cell(runs[cell.label], comparison, cell.folder)
                open_cells.remove(cell)
        except BaseException as error:
            self._give_up(open_cells, error, sweep, tracker, runs)
            raise

    def _give_up(
        self,
        cells: Sequence[Cell],
        error: BaseException,
        sweep: Sweep,
        tracker: Any,
        runs: Mapping[str, str],
    ) -> None:
        """Writes down why the cells have no result, so that none says "running" for ever."""
        stopped = isinstance(error, KeyboardInterrupt)
        state: State = "stopped" if stopped else "failed"
        reason = (
            STOPPED if stopped else printable(censored(" ".join(str(error).split()))) or type(error).__name__
        )
        trace = "" if stopped or isinstance(error, UserError) else "".join(traceback.format_exception(error))
        for cell in cells:
            cell.write_state(state, reason, censored(trace))
            run_id = "" if set_up_wrongly(error) else runs[cell.label]
            sweep.put(self._cell_state(cell, state, reason, run_id))
        if cells:
            error.add_note(REPORTED)
        end = tracker.kill if stopped else tracker.discard if set_up_wrongly(error) else tracker.fail_cell
        with suppress(Exception):  # where the log fails too, the first error is the one to tell
            for cell in cells:
                end(runs[cell.label], reason)

    def _cell_state(self, cell: Cell, state: State, reason: str = "", run_id: str = "") -> CellState:
        return CellState(
            cell.hash,
            str(cell.folder),
            self.parts.spec.name,
            self.parts.data.name,
            self.parts.style.name,
            cell.label,
            state,
            reason,
            run_id,
        )

    def _report_finished(self, cell: Cell, sweep: Sweep, tracker: Any, parent: str) -> None:
        """A cell that an earlier command finished, under this sweep."""
        run_id = tracker.open_cell(parent, self._info(cell))
        tracker.finish_cell(run_id, load(cell.folder / "summary.json"), cell.folder)
        sweep.put(self._cell_state(cell, "done", "", run_id))

    def _info(self, cell: Cell) -> Any:
        from refadv_ablate.tracking.mlflow import CellInfo

        return CellInfo(
            model=self.parts.spec.name,
            data=self.parts.data.name,
            prompt=self.parts.style.name,
            operator=cell.label,
            seed=self.parts.settings.seed,
            limit=self.parts.settings.limit,
            hash=cell.hash,
            config_path=cell.folder / "config.yaml",
            data_fingerprint=self.parts.data.fingerprint(),
        )


def set_up_wrongly(error: BaseException) -> bool:
    """Whether the command holds a mistake that showed before anything was answered."""
    return isinstance(error, UserError) and ASKED not in getattr(error, "__notes__", ())


@contextmanager
def _locked(cells: Sequence[Cell]) -> Iterator[None]:
    from filelock import FileLock

    with ExitStack() as stack:
        for cell in sorted(cells, key=lambda c: c.hash):
            cell.folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(cell.folder / ".lock"))
        yield


def stop_rest(sweep: Sweep) -> None:
    """Says of cells that they are stopped whose processes were killed before they could."""
    for known in sweep.cells():
        if known.state == "running":
            Cell(known.operator, known.hash, Path(known.folder)).write_state("stopped", STOPPED)
            sweep.put(replace(known, state="stopped", reason=STOPPED))


def draw(parts: Parts, cell: Cell, comparison: Comparison) -> None:
    """The cell's pictures: Δ with its interval, or its own scores where Δ is no change of accuracy, and the
    gallery of its examples."""
    from refadv_ablate.report.figures.delta import delta_figure
    from refadv_ablate.report.figures.profile import profile_figure
    from refadv_ablate.report.pages import gallery

    (cell.folder / "figures").mkdir(exist_ok=True)
    if on_old_place(comparison):
        profile_figure([comparison], cell.folder / "figures" / "understanding")
    else:
        delta_figure([comparison], cell.folder / "figures" / "delta")
    if parts.settings.gallery > 0:
        gallery.from_cell(cell.folder, parts.data, most=parts.settings.gallery)


def write_yaml(path: Path, value: Any) -> None:
    """A readable dump of a plain config."""
    from omegaconf import OmegaConf

    path.write_text(OmegaConf.to_yaml(OmegaConf.create(value)), encoding="utf-8")
