"""Where each row of a file of answers starts, and what must be true of a row before it answers anything."""

from __future__ import annotations

import csv
import hashlib
import json
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.data.conventions import numbers
from refadv_ablate.data.forms.quoting import cells_of, is_quoted
from refadv_ablate.errors import UserError
from refadv_ablate.types import ORIGINAL, Json

TEXTS = ("text", "answer", "response", "raw_response")
BOXES = ("predicted", "pred_box_xyxy_first", "box", "bbox")
IDS = ("example_id", "row_idx", "id")
ORDER_COLUMNS = ("format", "box_format", "bbox_format", "order")
GOLD = ("target", "solution", "gt_bbox_xyxy", "gt_bbox", "gt_box", "size")
"""Columns of four numbers or of a size that are no answer."""
REVERSED_SHARE = 0.1
"""Share of boxes whose corners are the wrong way round from which x, y, width, height is suspected."""


class Index:
    """Where each row starts, by a hash of its key: 16 bytes a row. order: of the numbers of its boxes.

    numbered: the smallest and largest row_idx, where every row is known by that column.
    """

    def __init__(self, path: Path, order: str = "xyxy") -> None:
        self.path, self.order = path, order
        self.quoted = not path.suffix.startswith(".json") and is_quoted(path)
        self.header = None if path.suffix.startswith(".json") else header_of(path, self.quoted)
        self._numbers: list[int] = []
        self._boxes = self._reversed = 0
        hashes, offsets = self._read()
        self._refuse_reversed()
        known = np.frombuffer(hashes, np.uint64) if hashes else np.array([], np.uint64)
        places = np.argsort(known, kind="stable")
        self.hashes: NDArray[np.uint64] = known[places]
        self.offsets: NDArray[np.uint64] = (np.frombuffer(offsets, np.uint64) if offsets else known)[places]
        whole = 0 < len(hashes) == len(self._numbers)
        self.numbered = (min(self._numbers), max(self._numbers)) if whole else None

    def _read(self) -> tuple[array[int], array[int]]:
        """Hashes of the rows' keys and where the rows start."""
        hashes, offsets = array("Q"), array("Q")
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not (self.header and number == 1):
                    row = self._parse(line, number)
                    hashes.append(_hash(*key_of(row, self.path, number)))
                    offsets.append(offset)
                    self._look_at(row, number)
                offset += len(line)
        return hashes, offsets

    def _look_at(self, row: Mapping[str, Json], number: int) -> None:
        quad = self._answer(row, number)
        if quad is not None:
            self._boxes += 1
            self._reversed += quad[2] < quad[0] or quad[3] < quad[1]
        if "example_id" not in row and str(row.get("row_idx")).isdigit():
            self._numbers.append(int(row["row_idx"]))

    def _refuse_reversed(self) -> None:
        many = self._reversed >= max(2, REVERSED_SHARE * self._boxes)
        if self.order == "xyxy" and many:
            raise UserError(
                f"{self._reversed} of {self._boxes} boxes in {self.path} end before they begin when they are "
                "read as x1, y1, x2, y2; if they are x, y, width, height, say so with order=xywh "
                "(model.engine.order or backend.order)"
            )

    def find(self, file: BinaryIO, example_id: str, condition: str, draw: int) -> Mapping[str, Json] | None:
        """The row of this key; UserError where the file has two that differ."""
        key = (example_id, condition, draw)
        low, high = (
            int(np.searchsorted(self.hashes, np.uint64(_hash(*key)), side)) for side in ("left", "right")
        )
        found: list[Mapping[str, Json]] = []
        for place in range(low, high):
            file.seek(int(self.offsets[place]))
            row = self._parse(file.readline(), None)
            if key_of(row, self.path, None) == key and row not in found:
                found.append(row)
        if len(found) > 1:
            raise UserError(
                f"{self.path} has {len(found)} different rows for example {example_id}, "
                f"condition {condition!r}, draw {draw}: keep one"
            )
        return found[0] if found else None

    def _answer(self, row: Mapping[str, Json], number: int) -> tuple[float, float, float, float] | None:
        """The row's box, for a look at the order. Raises UserError for a row that answers in no known way."""
        where = f"{self.path}, line {number}"
        known = f"an answer is read from {', '.join(TEXTS)} or {', '.join(BOXES)}"
        if "outcome" not in row and row.get("finish") != "error":
            unknown = [
                name
                for name, value in row.items()
                if name not in (*TEXTS, *BOXES, *IDS, *GOLD) and numbers(value) is not None
            ]
            empty = not any(row.get(name) for name in (*TEXTS, *BOXES))
            if unknown and empty:
                raise UserError(f"{where}: the column {unknown[0]!r} isn't known; {known}: rename it")
            if not any(name in row for name in (*TEXTS, *BOXES)):
                raise UserError(f"{where} holds no answer; {known}; it has {', '.join(map(str, row))}")
        box = next((row[name] for name in BOXES if row.get(name)), None)
        said = next((str(row[name]) for name in ORDER_COLUMNS if row.get(name)), "")
        if box is not None and said.lower() in ("xywh", "xyxy") and said.lower() != self.order:
            raise UserError(
                f"{where} says that its box is {said}, and it would be read as {self.order}: say "
                f"order={said.lower()} (model.engine.order or backend.order)"
            )
        return numbers(box)

    def _parse(self, line: bytes, number: int | None) -> Mapping[str, Json]:
        where = f"{self.path}" + (f", line {number}" if number else "")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            row = json.loads(text) if self.header is None else None
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{where} is not {'JSON' if self.header is None else 'UTF-8'} ({error})"
            ) from None
        if self.header is not None:
            try:
                cells = cells_of(text.rstrip("\r\n"), self.quoted)
            except csv.Error as error:
                raise UserError(f"{where}: its quotes don't close ({error})") from None
            if len(cells) != len(self.header):
                raise UserError(f"{where} has {len(cells)} cells where the header has {len(self.header)}")
            return dict(zip(self.header, cells, strict=True))
        if not isinstance(row, dict):
            raise UserError(f"{where} is not a JSON object")
        return row


def header_of(path: Path, quoted: bool) -> tuple[str, ...]:
    """The column names of a tab-separated file. Raises UserError where none names the example."""
    with path.open(encoding="utf-8-sig") as file:
        names = tuple(cells_of(file.readline().rstrip("\r\n"), quoted))
    if not set(names) & set(IDS):
        raise UserError(
            f"{path} has no column among {', '.join(IDS)}: a TSV needs a header line with one of them"
        )
    return names


def key_of(row: Mapping[str, Json], path: Path, number: int | None) -> tuple[str, str, int]:
    """Example, condition and draw that a row answers. Raises UserError."""
    example_id = next((row[name] for name in IDS if row.get(name) not in (None, "")), None)
    if example_id is None:
        raise UserError(
            f"{path}, line {number}: the row has none of {', '.join(IDS)}, so it answers no example"
        )
    try:
        draw = int(row.get("draw") or 0)
    except (TypeError, ValueError):
        raise UserError(f"{path}, line {number}: draw={row.get('draw')!r} is no whole number") from None
    return str(example_id), str(row.get("condition") or ORIGINAL), draw


def _hash(example_id: str, condition: str, draw: int) -> int:
    text = f"{example_id}\0{condition}\0{draw}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
