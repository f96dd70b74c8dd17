"""Which files of a result folder go to an experiment log, and in what form."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path

from refadv_ablate.parsing.scoring import right
from refadv_ablate.storage.jsonl import read_jsonl
from refadv_ablate.storage.records import record_from_json
from refadv_ablate.tracking import metrics
from refadv_ablate.types import ORIGINAL, Json

TABLE_ROWS = 500
"""Perturbed answers shown as a table in the UI; all of them are in the file beside it."""
COLUMNS = (
    "example_id",
    "answer",  # the page that compares runs opens on the second column
    "original_expression",
    "expression",
    "iou_original",
    "iou_perturbed",
    "text_original",
    "text_perturbed",
    "box_original",
    "box_perturbed",
    "target",
)
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
    """The first perturbed answers, each beside the original one, as columns and data for MLflow's tables."""
    data = list(islice(_rows(path), TABLE_ROWS))
    return json.loads(metrics.censored(json.dumps({"columns": COLUMNS, "data": data})))


def _rows(path: Path) -> Iterator[list[Json]]:
    """Records of one example follow each other; an original without a perturbed one stands alone."""
    for name, group in groupby(read_jsonl(path), key=lambda row: row.get("example_id")):
        rows = list(group)
        originals = [row for row in rows if row.get("condition") == ORIGINAL]
        first = originals[0] if originals else {}
        others = [row for row in rows if row.get("condition") != ORIGINAL] or [{}]
        for row in others:
            also = [f"#{row['draw']}"] if row.get("draw") else []
            also += [str(row["part"])] if row.get("part") else []
            yield [" ".join([str(name), *also]), _answer(first, row), *_pairs(first, row)]


def _answer(before: Mapping[str, Json], after: Mapping[str, Json]) -> str:
    """`right → wrong (IoU 0.93 → 0.08): ball red a`."""
    told = [_verdict(row) for row in (before, after) if row]
    ious = ["–" if row.get("iou") is None else f"{row['iou']:.2f}" for row in (before, after) if row]
    text = after.get("expression") or before.get("expression") or ""
    return f"{' → '.join(told)} (IoU {' → '.join(ious)}): {text}"


def _verdict(row: Mapping[str, Json]) -> str:
    """By what the question expects, as everywhere: a box where nothing matches is wrong wherever it lies."""
    outcome = str(row.get("outcome"))
    if outcome != "box":
        return outcome
    return {True: "right", False: "wrong", None: "a box"}[right(record_from_json(row))]


def _pairs(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[Json]:
    yield before.get("expression") or after.get("original_expression")
    yield after.get("expression")
    for key in ("iou", "text", "predicted"):
        yield from (before.get(key), after.get(key))
    yield (before or after).get("target")


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
