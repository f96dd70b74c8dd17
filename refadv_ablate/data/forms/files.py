"""Files of records, one dictionary per row: JSON lines, JSON, tab-separated text, Parquet."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Literal, TextIO

from refadv_ablate.data.forms.quoting import is_quoted
from refadv_ablate.errors import UserError
from refadv_ablate.storage.jsonl import read_jsonl

csv.field_size_limit(1 << 30)  # a cell of megabytes is a bad row to be named, not a broken table


class UnreadableFileError(UserError):
    """A file that is missing, cut short, or in another encoding: no question of its columns."""


SUFFIXES = (".jsonl", ".json", ".tsv", ".csv", ".parquet")
"""What `records` reads."""


def records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where, record) in stored order; `where` names file and row for sentences.

    JSON lines, tables and Parquet are streamed; a JSON file is a list, or an object whose values are rows.
    Raises UserError for a file that can't be read, is cut short, or isn't UTF-8.
    """
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        return _json_lines(path)
    if suffix == ".json":
        return _json_rows(path)
    if suffix in (".tsv", ".csv"):
        return _separated(path, "\t" if suffix == ".tsv" else ",")
    if suffix == ".parquet":
        return _parquet(path)
    raise UserError(f"{path} is of no known kind; a set is read from {', '.join(SUFFIXES)}")


def read_json(path: Path) -> Any:
    """A whole JSON file. Raises UserError where it is cut, broken or not UTF-8."""
    with _text(path) as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise _no_json(path, error) from error
        except RecursionError as error:
            raise UnreadableFileError(f"{path} is nested too deeply for JSON annotations") from error


def first_record(path: Path) -> Mapping[str, Any]:
    """The first record, to see which columns a file has; empty where it holds no records.

    Raises UserError for a file that can't be read.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise UnreadableFileError(f"{path} can't be read ({error.strerror})") from error
    return _first_record(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)  # every form that reads tables looks at it
def _first_record(path: Path, _time: int, _length: int) -> Mapping[str, Any]:
    try:
        return next((record for _, record in records(path)), {})
    except UnreadableFileError:
        raise
    except UserError:  # readable, and of another shape
        return {}


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes; computed again when the file changes. Raises UserError."""
    try:
        status = path.stat()
        return _digest(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror})") from error


@lru_cache(maxsize=64)
def _digest(path: Path, _time: int, _length: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise UnreadableFileError(f"{path} can't be read ({error.strerror})") from error


def _no_json(path: Path, error: ValueError) -> UnreadableFileError:
    if isinstance(error, UnicodeDecodeError):
        return UnreadableFileError(
            f"{path} is not UTF-8 (byte {error.start}); convert it, for example with iconv"
        )
    what = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
    return UnreadableFileError(f"{path} is no complete JSON ({what}); it may be cut short: get it again")


def _json_lines(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    rows = read_jsonl(path)
    for number in count(1):
        try:
            record = next(rows, None)
        except UserError as error:  # names file and line already
            raise UnreadableFileError(str(error)) from error
        if record is None:
            return
        yield f"{path.name}, record {number}", record


def _json_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    content = read_json(path)
    values = list(content.values()) if isinstance(content, dict) else content
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        values = values[0]  # {"data": [...]}
    if not isinstance(values, list):
        raise UserError(f"{path} holds no list of records")
    for number, value in enumerate(values, 1):
        yield _record(value, f"{path.name}, record {number}")


def _separated(path: Path, delimiter: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with _text(path) as file:
        try:
            bare = delimiter == "\t" and not is_quoted(path)  # captions hold lone quotes
            quoting: Literal[0, 3] = csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL
            reader = csv.DictReader(file, delimiter=delimiter, quoting=quoting, strict=True)
            for row in reader:
                where = f"{path.name}, line {reader.line_num}"
                if None in row or None in row.values():
                    raise UnreadableFileError(
                        f"{path}: {where} has another number of columns than the header"
                    )
                yield where, row
        except UnicodeDecodeError as error:
            raise _no_json(path, error) from error
        except csv.Error as error:
            raise UnreadableFileError(
                f"{path} is no table of {delimiter!r}-separated columns ({error})"
            ) from error


def _parquet(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=64):
                for record in batch.to_pylist():
                    number += 1
                    yield f"{path.name}, row {number}", record
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFileError(f"{path} is no complete Parquet file ({error}); get it again") from error


def _record(value: Any, where: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(value, dict):
        raise UserError(f"{where} is {type(value).__name__}, not an object with named fields")
    return where, value
