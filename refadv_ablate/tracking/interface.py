"""What a run tells an experiment log, whichever it is; and the log that keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from refadv_ablate.types import Comparison, Json


@dataclass(frozen=True, slots=True)
class CellInfo:
    """What identifies a cell before it has run; `hash` is equal for equal configs."""

    model: str
    data: str
    prompt: str
    operator: str
    seed: int
    limit: int | None
    hash: str
    config_path: Path
    data_fingerprint: Mapping[str, Json]


class Tracker(Protocol):
    """A log of experiments. Only prepare and open_sweep may raise."""

    def prepare(self) -> None:
        """Creates what all processes share, once, before any of them starts. Raises UserError."""

    def open_sweep(self, name: str, tags: Mapping[str, str]) -> str:
        """The run id of the sweep; equal `tags["sweep"]` from one place take up the same run."""

    def open_cell(self, parent: str, cell: CellInfo) -> str:
        """The run id of the cell under this sweep, now running; "" where the log can't be reached."""

    def finish_cell(self, run_id: str, comparison: Comparison, folder: Path) -> None:
        """Numbers and files of a cell that has a result."""

    def fail_cell(self, run_id: str, reason: str) -> None:
        """The run, a cell's or a sweep's, failed."""

    def discard(self, run_id: str, reason: str) -> None:
        """The run ended before anything was asked, by a mistake in the command: no run is left of it.

        One that an earlier process began has failed instead.
        """

    def kill(self, run_id: str, reason: str = "stopped by the user") -> None:
        """The run was stopped from outside, and with a sweep what still runs in it."""

    def close_sweep(
        self,
        parent: str,
        comparisons: Sequence[Comparison],
        folder: Path,
        failures: Sequence[tuple[str, str]] = (),
    ) -> None:
        """All cells' Δ, the table, the figures; `failures` are (cell, reason)."""

    def where(self, parent: str) -> list[str]:
        """Lines that tell a person where to look."""


@dataclass(frozen=True)
class NoTracker:
    """Logs nothing."""

    launch_dir: Path = field(default_factory=Path.cwd)

    def prepare(self) -> None:
        """See Tracker."""

    def open_sweep(self, name: str, tags: Mapping[str, str]) -> str:
        """See Tracker."""
        return ""

    def open_cell(self, parent: str, cell: CellInfo) -> str:
        """See Tracker."""
        return ""

    def finish_cell(self, run_id: str, comparison: Comparison, folder: Path) -> None:
        """See Tracker."""

    def fail_cell(self, run_id: str, reason: str) -> None:
        """See Tracker."""

    def discard(self, run_id: str, reason: str) -> None:
        """See Tracker."""

    def kill(self, run_id: str, reason: str = "") -> None:
        """See Tracker."""

    def close_sweep(
        self,
        parent: str,
        comparisons: Sequence[Comparison],
        folder: Path,
        failures: Sequence[tuple[str, str]] = (),
    ) -> None:
        """See Tracker."""

    def where(self, parent: str) -> list[str]:
        """See Tracker."""
        return []
