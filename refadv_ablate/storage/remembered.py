"""What was seen before, by key: in memory while it is little, in a temporary SQLite database beyond."""

from __future__ import annotations

import sqlite3
import weakref
from typing import Any

from refadv_ablate.errors import UserError

MOST = 8_192
"""Keys held in memory."""
_PREPARE = (
    "PRAGMA journal_mode=OFF",
    "PRAGMA synchronous=OFF",
    "PRAGMA cache_size=-2000",
    "CREATE TABLE seen (key BLOB PRIMARY KEY, value) WITHOUT ROWID",
    "BEGIN",  # one transaction for good: nobody else reads it, and it is gone with the process
)


class Remembered:
    """Text keys with a text or a number each."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most or MOST
        self._here: dict[str, Any] = {}
        self._database: sqlite3.Connection | None = None

    def get(self, key: str) -> Any:
        """The value of a key, None where there is none."""
        if self._database is None:
            return self._here.get(key)
        row = self._run("SELECT value FROM seen WHERE key = ?", _bytes(key)).fetchone()
        value = row and row[0]
        return _text(value) if isinstance(value, bytes) else value

    def setdefault(self, key: str, value: str) -> str:
        """The value that the key had first."""
        known: str | None = self.get(key)
        if known is None:
            self._put(key, value)
        return value if known is None else known

    def add(self, key: str) -> int:
        """Counts the key; gives how often it came by now."""
        times = 1 + (self.get(key) or 0)
        self._put(key, times)
        return times

    def top(self, most: int) -> list[tuple[str, int]]:
        """The keys that were counted most often, and how often; equal ones in the order of the keys."""
        if self._database is None:
            return sorted(self._here.items(), key=lambda item: (-item[1], item[0]))[:most]
        found = self._run("SELECT key, value FROM seen ORDER BY value DESC, key LIMIT ?", most)
        return [(_text(key), times) for key, times in found]

    def _put(self, key: str, value: Any) -> None:
        if self._database is None:
            self._here[key] = value
            if len(self._here) > self._most:
                self._move()
            return
        self._run("INSERT OR REPLACE INTO seen VALUES (?, ?)", _bytes(key), _stored(value))

    def _move(self) -> None:
        # the data may be gone through by an engine's thread, one at a time
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._database.close)
        for statement in _PREPARE:
            self._run(statement)
        for key, value in self._here.items():
            self._run("INSERT INTO seen VALUES (?, ?)", _bytes(key), _stored(value))
        self._here.clear()

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        assert self._database is not None
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise UserError(
                f"can't keep track of what was seen in the folder for temporary files ({error}); make room "
                "there, or set SQLITE_TMPDIR to a folder that has some"
            ) from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def _stored(value: Any) -> Any:
    """Text as bytes: SQLite takes no lone surrogate, which a file's name can hold."""
    return _bytes(value) if isinstance(value, str) else value
