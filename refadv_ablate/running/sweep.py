"""A sweep: the cells that one command asked for, where each lies, and how it ended.

Every job writes its own small files, so that parallel jobs on one file system never race. The sweep's
folder is named by the command, so that the same command again continues the same sweep.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from refadv_ablate.seeding import digest
from refadv_ablate.storage.jsonl import read_json, write_json

State = Literal["running", "done", "incomplete", "failed", "stopped"]
VARIABLE = "REFADV_SWEEP"


@dataclass(frozen=True, slots=True)
class CellState:
    """How one cell (model × data × prompt × operator) stands."""

    hash: str
    folder: str
    model: str
    data: str
    prompt: str
    operator: str
    state: State
    reason: str = ""
    run_id: str = ""


@dataclass(frozen=True)
class Sweep:
    """A folder `sweeps/<name>`, shared by the launcher and its jobs."""

    folder: Path

    @classmethod
    def of(cls, out: Path, overrides: Sequence[str], multirun: bool) -> Sweep:
        """The sweep of this command; the order of its words doesn't matter."""
        words = sorted(overrides)
        slug = slugify("_".join(words) or "default")[:60]
        return cls((out / "sweeps" / f"{slug}-{digest(words, multirun)[:8]}").resolve())

    @classmethod
    def inherited(cls) -> Sweep | None:
        """The sweep whose launcher started this process, if one did."""
        folder = os.environ.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For the launcher: the same command waits for itself: `begin` forgets the first one's cells."""
        from filelock import FileLock, Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            print("the same command is running already; this one waits for its end", file=sys.stderr)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def begin(self, overrides: Sequence[str], command: str, facts: Mapping[str, Any]) -> None:
        """Makes the folder, forgets how cells stood before, and lets child processes find it."""
        (self.folder / "cells").mkdir(parents=True, exist_ok=True)
        for old in (self.folder / "cells").glob("*.json"):
            old.unlink()
        write_json(self.folder / "sweep.json", {"command": command, "overrides": list(overrides), **facts})
        os.environ[VARIABLE] = str(self.folder)

    def facts(self) -> dict[str, Any]:
        """What `begin` and `amend` wrote."""
        return read_json(self.folder / "sweep.json")

    def amend(self, **facts: Any) -> None:
        """Adds to the sweep's facts; for the launcher only."""
        write_json(self.folder / "sweep.json", self.facts() | facts)

    def put(self, cell: CellState) -> None:
        """Writes how a cell stands; the last word counts."""
        write_json(self.folder / "cells" / f"{cell.hash}.json", asdict(cell))

    def cells(self) -> list[CellState]:
        """All cells that any job has reported, by model, data, prompt and operator."""
        return sorted(self._read(), key=lambda c: (c.model, c.data, c.prompt, c.operator, c.hash))

    def _read(self) -> Iterator[CellState]:
        for path in sorted((self.folder / "cells").glob("*.json")):
            yield CellState(**read_json(path))


def slugify(text: str) -> str:
    """Letters, digits, dot, dash and underscore; anything else becomes one dash.

    No "=": such a folder could not be given back as `path=…` without quotes.
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "x"
