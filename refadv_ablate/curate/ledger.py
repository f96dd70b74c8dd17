"""A JSON Lines file that only grows: what was appended is on disk before the next step begins."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError
from refadv_ablate.storage.jsonl import to_line
from refadv_ablate.types import Json


class Ledger:
    """Rows of one stage. A line cut short by a crash is no row, and the next append removes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mended = False
        self._lock = threading.Lock()

    def rows(self) -> list[dict[str, Any]]:
        """All complete rows, in order. Raises UserError for a line in the middle that is no JSON object."""
        return list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise UserError(
                        f"{self.path}:{number}: no valid JSON; mend or remove the line"
                    ) from error
                if not isinstance(row, dict):
                    raise UserError(f"{self.path}:{number}: needs one JSON object a line")
                yield row

    def append(self, row: Mapping[str, Json]) -> None:
        """On disk (fsync) when this returns. Safe among threads; processes use `writing`."""
        with self._lock:
            self._mend()
            self._mended = False  # until it is whole: a full disk cuts a line short, too
            with self.path.open("ab") as file:
                file.write((to_line(row) + "\n").encode())
                file.flush()
                os.fsync(file.fileno())
            self._mended = True

    @contextmanager
    def writing(self) -> Iterator[Ledger]:
        """The one process that writes. Raises UserError where another one does."""
        from filelock import FileLock, Timeout

        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{self.path}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise UserError(
                f"another process is writing {self.path}: wait until it ends, or use another out="
            ) from error
        try:
            yield self
        finally:
            lock.release()

    def _mend(self) -> None:
        """Cuts off a last line without its end, once and after each failure."""
        if self._mended:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            with self.path.open("r+b") as file:
                size = file.seek(0, 2)
                tail = b""
                at = size
                while at > 0 and b"\n" not in tail:
                    step = min(1 << 16, at)
                    at -= step
                    file.seek(at)
                    tail = file.read(step) + tail
                end = at + tail.rfind(b"\n") + 1 if b"\n" in tail else 0
                if end < size:
                    file.truncate(end)
        self._mended = True
