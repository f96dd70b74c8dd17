"""Which files of a result folder go to an experiment log, and in what form."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from refadv_ablate.storage.jsonl import read_jsonl
from refadv_ablate.tracking import metrics
from refadv_ablate.types import Json

TABLE_ROWS = 500
"""Predictions shown as a table in the UI; all of them are in the file beside it."""
COLUMNS = ("example_id", "condition", "expression", "outcome", "iou", "predicted", "target", "text", "draw")
UNSENT = ("status.json",)
LARGE = (".jsonl",)


def files(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """(file, its folder among the artifacts); hidden files and a sweep's own bookkeeping are left out."""
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if path.is_file() and not path.is_symlink() and not _skipped(inner):
            yield path, None if inner.parent == Path() else inner.parent.as_posix()


@contextmanager
def packed(path: Path, above_bytes: float) -> Iterator[Path]:
    """The file, or a compressed copy of a large table of lines."""
    if path.suffix not in LARGE or path.stat().st_size < above_bytes:
        yield path
        return
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / f"{path.name}.gz"
        with path.open("rb") as source, gzip.open(copy, "wb", compresslevel=6) as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
        yield copy


def prediction_table(path: Path) -> Json:
    """The first predictions as columns and data, which MLflow's UI shows as a table."""
    data = [[row.get(name) for name in COLUMNS] for row in islice(read_jsonl(path), TABLE_ROWS)]
    return json.loads(metrics.censored(json.dumps({"columns": COLUMNS, "data": data})))


def _skipped(inner: Path) -> bool:
    hidden = any(part.startswith(".") for part in inner.parts)
    return hidden or inner.name in UNSENT or inner.parts[0] == "cells"


def holds_secret(path: Path) -> bool:
    """Whether a file holds the value of an environment secret, read a piece at a time."""
    needles = [secret.encode() for secret in metrics.secrets()]
    if not needles:
        return False
    overlap = max(map(len, needles))
    tail = b""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            window = tail + piece
            if any(needle in window for needle in needles):
                return True
            tail = window[-overlap:]
    return False
