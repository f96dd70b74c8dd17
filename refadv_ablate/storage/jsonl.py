"""JSON and JSON Lines on disk: written whole or not at all, read one line at a time.

Files are UTF-8, written beside their final place and moved there when they are complete, so that a
reader never meets half a file. A name ending in .gz is compressed. Floats are written in the shortest
form that reads back to the same bits.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from refadv_ablate.errors import FieldError, UserError, shown, unwritten
from refadv_ablate.types import Json

T = TypeVar("T")


# ── JSON ↔ text ─────────────────────────────────────────────────────────────────────────────────


def _plain(value: Any) -> Json:
    """What json can't take by itself: read-only mappings, paths, NumPy scalars and arrays."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def to_line(value: Json) -> str:
    """One line of JSON without its line break; NaN and infinity become null."""
    try:
        line = _ENCODE(value)
    except ValueError:
        line = _ENCODE(_finite(value))
    try:
        line.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as a cut answer may end in: only escapes keep it
        line = json.dumps(json.loads(line), separators=(",", ":"))
    return line


def _finite(value: Any) -> Json:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, str | int | None):
        return value
    return _finite(_plain(value))


def _constant(name: str) -> None:
    # Python's own json writes NaN for "no value"; infinity is nobody's missing value.
    if name != "NaN":
        raise ValueError(f"{name} is no JSON")


_DECODE = json.JSONDecoder(parse_constant=_constant).decode


# ── files ───────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that takes its place when the block ends, whole and on disk, or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as raw:
            if path.suffix == ".gz":
                # No name and no time inside: equal rows give equal bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(path)
    except OSError as error:
        raise UserError(unwritten(path, error)) from error
    finally:
        part.unlink(missing_ok=True)


def write_jsonl(path: Path | str, rows: Iterable[Mapping[str, Json]]) -> int:
    """Writes one object a line, atomically; gives how many. `rows` is consumed lazily."""
    count = 0
    rows = iter(rows)
    with atomic(Path(path)) as file:
        while chunk := list(islice(rows, 500)):  # fewer, larger writes
            file.write("".join(f"{to_line(row)}\n" for row in chunk).encode())
            count += len(chunk)
    return count


def read_jsonl(path: Path | str) -> Iterator[dict[str, Json]]:
    """The objects of a file, one at a time; blank lines are skipped.

    Raises UserError naming file and line for a line that is no JSON object.
    """
    return read_each(path, lambda row: row)


def read_each(path: Path | str, make: Callable[[dict[str, Json]], T]) -> Iterator[T]:
    """`make` over the objects of a file; its ValueError becomes a UserError naming file and line."""
    path = Path(path)
    number = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, 1):
                if line.isspace():
                    continue
                row = _DECODE(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                if not isinstance(row, dict):
                    raise FieldError(f"a line is one JSON object, this is {shown(row)}")
                yield make(row)
    except json.JSONDecodeError as error:
        cut = " (the line looks cut short)" if error.pos >= len(error.doc.rstrip()) else ""
        raise UserError(
            f"{path}:{number}: no valid JSON: {error.msg}{cut}; mend or remove the line"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{number}: not UTF-8 text: {error.reason}; save the file as UTF-8") from error
    except RecursionError as error:
        raise UserError(f"{path}:{number}: the JSON is nested too deeply; mend or remove the line") from error
    except ValueError as error:
        raise UserError(f"{path}:{number}: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(
            f"{path}:{number + 1}: the compressed file is damaged or cut short: {error}"
        ) from error
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror or error}") from error


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def write_json(path: Path | str, value: Json) -> None:
    """One indented JSON document, atomically; NaN and infinity become null."""
    with atomic(Path(path)) as file:
        line = to_line(value)
        text = json.dumps(json.loads(line), ensure_ascii="\\ud" in line, indent=1)
        file.write(f"{text}\n".encode())


def read_json(path: Path | str) -> dict[str, Json]:
    """A JSON document that is one object. Raises UserError naming the file."""
    path = Path(path)
    try:
        with _opened(path) as file:
            tree = _DECODE(file.read().decode())
    except (ValueError, EOFError, zlib.error) as error:
        raise UserError(f"{path} is no valid JSON file: {error}") from error
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror or error}") from error
    if not isinstance(tree, dict):
        raise UserError(f"{path} needs one JSON object, it holds {shown(tree)}")
    return tree
