"""Saves the sound rows of a damaged SQLite store by reading its pages, not its tree.

SQLite reaches a row through pages above it, so one bad page can hide thousands of good rows from it.
Here every page of the file (and every committed page of its write-ahead log) is looked at by itself,
and a row is kept if its checksum holds. Format: https://www.sqlite.org/fileformat2.html, sections 1.5,
1.6, 2.1 and 4.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from sqlalchemy.engine import URL

from refadv_ablate.errors import UserError
from refadv_ablate.storage.answers import checksum
from refadv_ablate.storage.database import CHUNK, TABLES, Database, Row
from refadv_ablate.storage.records import reply_from_json

INDEX_INTERIOR, INDEX_LEAF, TABLE_LEAF = 0x02, 0x0A, 0x0D
SIDES = ("", "-wal", "-shm")


@dataclass
class Salvaged:
    """What a repair saved and what it could not."""

    kept: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    lost: int = 0
    """Rows whose key is still known and whose content is gone; they will be asked again."""
    dropped: int = 0
    """Rows whose checksum holds and whose content no run can read; they will be asked again."""
    damaged: Path = Path()
    """Where the damaged file lies now."""


class Pages:
    """The pages of a database file as its last commit left them, by number from 1."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.file = file
        header = file.read(100)
        sound = header[:16] == b"SQLite format 3\0"
        size = int.from_bytes(header[16:18], "big") if sound else 4096
        self.size = 65536 if size == 1 else size
        self.usable = self.size - (header[20] if sound else 0)
        self.newer = self._log(path.with_name(path.name + "-wal"))
        self.count = max([path.stat().st_size // self.size, *self.newer])

    def __getitem__(self, number: int) -> bytes:
        if number in self.newer:
            return self.newer[number]
        self.file.seek((number - 1) * self.size)
        return self.file.read(self.size)

    def _log(self, path: Path) -> dict[int, bytes]:
        """Pages of the write-ahead log up to its last commit."""
        log = path.read_bytes() if path.exists() else b""
        committed: dict[int, bytes] = {}
        pending: dict[int, bytes] = {}
        if len(log) < 32 or int.from_bytes(log[8:12], "big") != self.size:
            return committed
        for start in range(32, len(log) - self.size - 23, 24 + self.size):
            if log[start + 8 : start + 16] != log[16:24]:  # salts: a frame of an earlier round
                break
            pending[int.from_bytes(log[start : start + 4], "big")] = log[start + 24 : start + 24 + self.size]
            if int.from_bytes(log[start + 4 : start + 8], "big"):
                committed |= pending
                pending = {}
        return committed


def repair(url: URL) -> Salvaged:
    """Puts every sound row into a fresh file in the place of the damaged one, which is kept beside it.

    No other process may use the store meanwhile. Raises UserError.
    """
    from filelock import FileLock

    path = Path(str(url.database))
    if not path.is_file():
        raise UserError(f"there is no prediction store {path} to repair; check store=…")
    result = Salvaged(damaged=path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"))
    fresh = path.with_name(f"{path.name}.repaired-{os.getpid()}")
    with FileLock(f"{path}.lock", timeout=60):
        try:
            target = Database(url.set(database=str(fresh)))
            known, saved = _copy(path, target, result)
            result.lost = len(known - saved)
            target.compact()
            target.close()
            for side in SIDES:
                old = path.with_name(path.name + side)
                if old.exists():
                    old.replace(result.damaged.with_name(result.damaged.name + side))
            fresh.replace(path)
        except OSError as error:
            raise UserError(f"can't repair {path}: {error}; the damaged file is as it was") from error
        finally:
            for side in (*SIDES, ".lock"):
                fresh.with_name(fresh.name + side).unlink(missing_ok=True)
    return result


def _copy(path: Path, target: Database, result: Salvaged) -> tuple[set[str], set[str]]:
    known: set[str] = set()
    saved: set[str] = set()
    with path.open("rb") as file:
        rows = _rows(Pages(path, file), known)
        while chunk := list(islice(rows, CHUNK)):
            for table in TABLES:
                new = [row for name, row in chunk if name == table and row.key not in saved]
                fitting = [row for row in new if _readable(table, row.value)]
                result.dropped += len({row.key for row in new} - {row.key for row in fitting})
                if fitting:
                    target.put(table, fitting)
                    result.kept[table] += len({row.key for row in fitting})
            saved |= {row.key for _, row in chunk}
    return known, saved


def _rows(pages: Pages, known: set[str]) -> Iterator[tuple[str, Row]]:
    """(table, row) of all sound rows; keys that the indexes name are added to `known`."""
    for number in range(2, pages.count + 1):
        page = pages[number]
        kind = page[0] if page else 0
        if kind not in (INDEX_INTERIOR, INDEX_LEAF, TABLE_LEAF):
            continue
        for cell in _cells(page, 12 if kind == INDEX_INTERIOR else 8):
            try:
                values = _values(_payload(pages, page, cell + 4 * (kind == INDEX_INTERIOR), kind))
            except (IndexError, ValueError):  # not a cell any more
                continue
            if kind != TABLE_LEAF:
                if len(values) == 2 and isinstance(values[0], str) and len(values[0]) == 64:
                    known.add(values[0])
            elif found := _sound(values):
                yield found


def _sound(values: list[Any]) -> tuple[str, Row] | None:
    if [type(value) for value in values] != [str, str, str, float, str, str]:
        return None
    row = Row(*values)
    for table in TABLES:
        if checksum(table, row.key, row.value) == row.checksum:
            return table, row
    return None


def _readable(table: str, value: str) -> bool:
    """Whether a run can read the content."""
    try:
        content = json.loads(value)
        if table == "replies":
            reply_from_json(content)
    except (ValueError, RecursionError):
        return False
    return True


def _cells(page: bytes, start: int) -> Iterator[int]:
    """Offsets of the cells that the page's pointer array names."""
    count = int.from_bytes(page[3:5], "big")
    for position in range(start, min(start + 2 * count, len(page) - 1), 2):
        yield int.from_bytes(page[position : position + 2], "big")


def _payload(pages: Pages, page: bytes, at: int, kind: int) -> bytes:
    """A cell's record, with what overflowed to other pages."""
    size, at = _varint(page, at)
    if kind == TABLE_LEAF:
        _, at = _varint(page, at)  # the row id
    usable = pages.usable
    most = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return page[at : at + size]
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts, missing = [page[at : at + local]], size - local
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while missing > 0:
        if not 2 <= following <= pages.count:
            raise ValueError("the chain of overflow pages is broken")
        more = pages[following]
        parts.append(more[4 : 4 + min(missing, usable - 4)])
        missing -= usable - 4
        following = int.from_bytes(more[:4], "big")
    return b"".join(parts)


def _values(record: bytes) -> list[Any]:
    """The columns of a record; ValueError or IndexError for bytes that are none."""
    end, at = _varint(record, 0)
    kinds = []
    while at < end:
        kind, at = _varint(record, at)
        kinds.append(kind)
        if len(kinds) > 6:
            raise ValueError("not one of our rows")
    return list(_columns(record, end, kinds))


def _columns(record: bytes, at: int, kinds: list[int]) -> Iterator[Any]:
    for kind in kinds:
        size = (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind]
        raw = record[at : at + size]
        if len(raw) != size:
            raise ValueError("the record is cut short")
        at += size
        if kind >= 13 and kind % 2:
            yield raw.decode()
        elif kind == 7:
            yield struct.unpack(">d", raw)[0]
        elif 1 <= kind <= 6 or kind in (8, 9):  # a whole number in a column of floats is stored so
            yield float(int.from_bytes(raw, "big", signed=True) if size else kind - 8)
        else:
            yield None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position in range(at, at + 8):
        byte = data[position]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, position + 1
    return value << 8 | data[at + 8], at + 9
