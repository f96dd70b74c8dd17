"""Rows of numbers under column names: in memory while they are few, in a file beyond, read back in pieces.

A million answers must not take more memory than ten thousand. Rows are appended; when a buffer is full it
is written to an unnamed temporary file, which is gone with the process, however it ends. They are read in
the order in which they came, or parted by ranges of a hash column, so that all rows of one example (or of
one image) come together and pieces follow each other in the order of the hash.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.errors import FULL, UserError

Table = NDArray[np.void]
"""Rows with named fields."""
ROWS = 16_384
"""Rows of a piece; bounds memory. Fewer rows than this are computed on as a whole."""


def pieces(rows: int, size: int | None = None) -> int:
    """How many pieces of about `size` rows so many rows make."""
    return max(1, -(-rows // (size or ROWS)))


def hashed(text: str) -> int:
    """64 bits: two of 100,000 ids meet with a probability of 3 in 10 billion."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


class Spool:
    """Rows of named columns.

    types: array type codes, such as Q for 64-bit hashes, or 4d for four doubles a row. size: rows in memory.
    """

    def __init__(self, types: Mapping[str, str], size: int | None = None) -> None:
        self.size = size or ROWS
        self.buffers: dict[str, array[Any]] = {name: array(code[-1]) for name, code in types.items()}
        """What was appended last, by column; every column but those added later grows with each row."""
        self._first = next(iter(self.buffers.values()))
        self._width = {name: int(code[:-1]) for name, code in types.items() if code[:-1]}
        self._fill: dict[str, float] = {}
        self._written: list[_Segment] = []
        self._count = 0
        self._parted: dict[tuple[str, int], tuple[_Segment, NDArray[np.int64]]] = {}

    def __len__(self) -> int:
        return self._count + len(self._first)

    def new(self, name: str, code: str, fill: float) -> None:
        """A column that only some rows have a value in; its buffer is brought up to a row with `pad`."""
        self.buffers[name] = array(code)
        self._fill[name] = fill

    def pad(self, name: str, rows: int) -> array[Any]:
        """The buffer of a column, filled up to so many rows of the buffer."""
        buffer = self.buffers[name]
        if len(buffer) < rows:
            buffer.extend([self._fill[name]] * (rows - len(buffer)))
        return buffer

    @property
    def here(self) -> int:
        """Rows in the buffer."""
        return len(self._first)

    def ended(self) -> None:
        """To be called after each row, or after several."""
        if len(self._first) >= self.size:
            self._spill()
        self._parted.clear()

    def extend(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Appends rows; each column is cast to its type."""
        for name, values in columns.items():
            buffer = self.buffers[name]
            buffer.frombytes(np.ascontiguousarray(values, np.dtype(buffer.typecode)).tobytes())
        self.ended()

    def chunks(self) -> Iterator[Table]:
        """All rows, in the order in which they came."""
        for segment in self._written:
            yield self._whole(segment.read())
        if self.here:
            yield self._buffered()

    def all(self) -> Table:
        """All rows at once."""
        found = list(self.chunks())
        return np.concatenate(found) if found else np.empty(0, self._type())

    def parted(self, by: str, parts: int) -> Iterator[Table]:
        """The rows in `parts` pieces by ascending ranges of a 64-bit hash, each in the order of arrival."""
        if parts <= 1:
            yield self.all()
            return
        if (by, parts) not in self._parted:
            self._parted[by, parts] = self._part(by, parts)
        segment, ends = self._parted[by, parts]
        for start, end in zip((0, *ends[:-1].tolist()), ends.tolist(), strict=True):
            yield segment.read(start, end)

    def distinct(self, by: str) -> int:
        """How many different hashes a column holds."""
        return sum(len(np.unique(rows[by])) for rows in self.parted(by, pieces(len(self))))

    def _part(self, by: str, parts: int) -> tuple[_Segment, NDArray[np.int64]]:
        counts = np.zeros(parts, np.int64)
        for rows in self.chunks():
            counts += np.bincount(_place(rows[by], parts), minlength=parts)
        ends = np.cumsum(counts)
        segment, at = _Segment.of(len(self), self._type()), ends - counts
        for rows in self.chunks():
            place = _place(rows[by], parts)
            order = np.argsort(place, kind="stable")
            own = np.bincount(place, minlength=parts)
            last = np.cumsum(own)
            for part in np.flatnonzero(own):
                segment.write(rows[order[last[part] - own[part] : last[part]]], int(at[part]))
            at += own
        return segment, ends

    def _type(self) -> np.dtype[np.void]:
        return np.dtype(
            [
                (name, np.dtype(buffer.typecode), *([self._width[name]] if name in self._width else []))
                for name, buffer in self.buffers.items()
            ]
        )

    def _buffered(self) -> Table:
        rows = np.empty(self.here, self._type())
        for name in self.buffers:
            values = self.buffers[name] if name not in self._fill else self.pad(name, self.here)
            rows[name] = np.array(values, values.typecode).reshape(rows[name].shape)
        return rows

    def _whole(self, rows: Table) -> Table:
        """With the columns that came later."""
        if rows.dtype == self._type():
            return rows
        found = np.empty(len(rows), self._type())
        for name in self.buffers:
            found[name] = rows[name] if name in (rows.dtype.names or ()) else self._fill[name]
        return found

    def _spill(self) -> None:
        rows = self._buffered()
        segment = _Segment.of(len(rows), rows.dtype)
        segment.write(rows, 0)
        self._written.append(segment)
        self._count += len(rows)
        for buffer in self.buffers.values():
            del buffer[:]


def _place(hashes: NDArray[np.uint64], parts: int) -> NDArray[np.int64]:
    """Ascending with the hash, evenly over the parts."""
    return (((hashes >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)).astype(np.int64)


# ── the file ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _File:
    """A temporary file without a name; what is given back is used again."""

    file: IO[bytes]
    process: int
    end: int = 0
    free: dict[int, list[int]] = field(default_factory=dict)

    def take(self, size: int) -> int:
        """The start of so many bytes that nobody uses."""
        if places := self.free.get(size):
            return places.pop()
        start, self.end = self.end, self.end + size
        return start


_current: list[_File] = []


def _file() -> _File:
    """Of this process: a parent's would be written by both."""
    if not _current or _current[-1].process != os.getpid():
        try:
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as we do
        except OSError as error:
            raise UserError(_full(error)) from error
        atexit.register(file.close)
        _current.append(_File(file, os.getpid()))
    return _current[-1]


def _full(error: OSError) -> str:
    folder = tempfile.gettempdir()
    if error.errno in FULL:
        return (
            f"the disk is full: the folder for temporary files {folder}; make room, or set TMPDIR to another"
        )
    return f"can't write to the folder for temporary files {folder}: {error.strerror or error}; set TMPDIR"


@dataclass
class _Segment:
    """A stretch of the file that holds rows of one type."""

    owner: _File
    start: int
    rows: int
    type: np.dtype[np.void]

    @classmethod
    def of(cls, rows: int, dtype: np.dtype[np.void]) -> _Segment:
        owner = _file()
        return cls(owner, owner.take(rows * dtype.itemsize), rows, dtype)

    def write(self, rows: Table, at: int) -> None:
        data = memoryview(np.ascontiguousarray(rows).tobytes())
        try:
            self.owner.file.seek(self.start + at * self.type.itemsize)
            while data:
                data = data[self.owner.file.write(data) :]
        except OSError as error:
            raise UserError(_full(error)) from error

    def read(self, start: int = 0, end: int | None = None) -> Table:
        size = self.type.itemsize
        count = (self.rows if end is None else end) - start
        self.owner.file.seek(self.start + start * size)
        found = bytearray()
        while missing := count * size - len(found):
            read = self.owner.file.read(missing)
            if not read:
                raise UserError("the temporary file of this run was cut short; run the command again")
            found += read
        return np.frombuffer(found, self.type)

    def __del__(self) -> None:
        self.owner.free.setdefault(self.rows * self.type.itemsize, []).append(self.start)
