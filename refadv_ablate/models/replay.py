"""Answers that somebody already has: a predictions file stands in for the model."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.types import ORIGINAL, Json, ModelSpec, Reply, Request, Seen

TEXTS = ("text", "answer", "response", "raw_response")
BOXES = ("predicted", "pred_box_xyxy_first", "box", "bbox")
IDS = ("example_id", "row_idx", "id")
FINISH: Mapping[str, Literal["length", "refused", "error"]] = {
    "truncated": "length",
    "refused": "refused",
    "missing": "error",
    "not_perturbable": "error",
}


@dataclass(kw_only=True)
class Replay:
    """Replies from a file: our predictions.jsonl (or its folder), a JSONL or TSV of answers or boxes.

    A row names its example (`example_id`, or `row_idx` as in the Ref-Adv authors' files) and its
    `condition` and `draw`; a row without condition answers the original condition, and others only where
    they leave the expression as it is (identity).
    `text` is an answer as a model wrote it, read in the dialect and frame of the model's YAML. A box
    ([x1, y1, x2, y2] or "x1,y1,x2,y2") is in pixels of the original image: it goes before the text
    where the model's frame is those pixels, after it elsewhere. What the file lacks is a reply with
    finish "error": missing, never wrong. Only an index is held in memory.
    """

    durable: ClassVar[bool] = False  # the file itself is the store
    spec: ModelSpec
    path: Path
    _rows: _Index | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path).expanduser()
        if self.path.is_dir():
            self.path = self.path / "predictions.jsonl"
        if not self.path.is_file():
            raise UserError(f"there is no predictions file {self.path}: path=… takes a .jsonl or .tsv")

    def identity(self) -> Mapping[str, Json]:
        """The file's content, wherever it lies."""
        return {"engine": "replay", "checkpoint": self.spec.checkpoint, "sha256": self._sha256}

    @cached_property
    def _sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """In the order asked."""
        if self._rows is None:
            self._rows = _Index(self.path)
        with self.path.open("rb") as file:
            for request in requests:
                yield request, self._reply(request, self._rows, file)

    def _reply(self, request: Request, rows: _Index, file: BinaryIO) -> Reply:
        example = request.perturbed.example
        row = rows.find(file, example.id, request.condition, request.draw)
        if row is None and request.repeat == 0 and request.perturbed.status == "unchanged":
            row = rows.find(file, example.id, ORIGINAL, 0)
        if row is None:
            where = f"{request.condition!r} (draw {request.draw})"
            reason = f"{self.path.name} has no row for example {example.id}, condition {where}"
            return Reply(text="", finish="error", error=reason)
        return self._as_reply(row)

    def _as_reply(self, row: Mapping[str, Json]) -> Reply:
        finish = FINISH.get(str(row.get("outcome", "")), row.get("finish", "stop"))
        if finish == "error":
            return Reply(text="", finish="error", error=str(row.get("reason") or "missing in the file"))
        text = next((row[name] for name in TEXTS if isinstance(row.get(name), str) and row[name]), "")
        box = next((row[name] for name in BOXES if row.get(name)), None)
        if box is not None and (self._in_pixels or not text):
            text = self._box_text(box)
        return Reply(text=text, finish=finish, reasoning=str(row.get("reasoning") or ""))

    @cached_property
    def _in_pixels(self) -> bool:
        """Whether the model's frame leaves pixels of the original image as they are: tried on a box."""
        quad, odd = (101.0, 53.0, 307.0, 211.0), (977, 661)
        return self.spec.frame.to_pixels(quad, Seen(odd, odd))[0] == Box(*quad)

    def _box_text(self, box: Json) -> str:
        numbers = box.split(",") if isinstance(box, str) else box
        try:
            quad = [float(number) for number in numbers]
        except (TypeError, ValueError):
            quad = []
        if len(quad) != 4:
            raise UserError(f"{self.path} holds the box {box!r}, which is not four numbers x1, y1, x2, y2")
        if not self._in_pixels:
            raise UserError(
                f"{self.path} holds boxes in pixels of the original image, which {self.spec.name} would read "
                "in another frame: use model=replay for files of boxes"
            )
        return json.dumps({"bbox": quad})

    def close(self) -> None:
        """Forgets the index."""
        self._rows = None


class _Index:
    """Where each row starts, by a hash of its key: 16 bytes a row."""

    def __init__(self, path: Path) -> None:
        self.path, self.header = path, None if path.suffix.startswith(".json") else _header(path)
        hashes, offsets = array("Q"), array("Q")
        offset = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not (self.header and number == 1):
                    hashes.append(_hash(*_key(self._parse(line, number), path, number)))
                    offsets.append(offset)
                offset += len(line)
        order = np.argsort(np.frombuffer(hashes, np.uint64), kind="stable") if hashes else np.array([], int)
        self.hashes: NDArray[np.uint64] = (
            np.frombuffer(hashes, np.uint64)[order] if hashes else order.astype("u8")
        )
        self.offsets: NDArray[np.uint64] = np.frombuffer(offsets, np.uint64)[order] if hashes else self.hashes

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
            if _key(row, self.path, None) == key and row not in found:
                found.append(row)
        if len(found) > 1:
            raise UserError(
                f"{self.path} has {len(found)} different rows for example {example_id}, "
                f"condition {condition!r}, draw {draw}: keep one"
            )
        return found[0] if found else None

    def _parse(self, line: bytes, number: int | None) -> Mapping[str, Json]:
        where = f"{self.path}" + (f", line {number}" if number else "")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            row = json.loads(text) if self.header is None else None
        except ValueError as error:
            raise UserError(
                f"{where} is not {'JSON' if self.header is None else 'UTF-8'} ({error})"
            ) from None
        if self.header is not None:
            cells = text.rstrip("\r\n").split("\t")
            if len(cells) != len(self.header):
                raise UserError(f"{where} has {len(cells)} cells where the header has {len(self.header)}")
            return dict(zip(self.header, cells, strict=True))
        if not isinstance(row, dict):
            raise UserError(f"{where} is not a JSON object")
        return row


def _header(path: Path) -> tuple[str, ...]:
    with path.open(encoding="utf-8-sig") as file:
        names = tuple(file.readline().rstrip("\r\n").split("\t"))
    if not set(names) & set(IDS):
        raise UserError(
            f"{path} has no column among {', '.join(IDS)}: a TSV needs a header line with one of them"
        )
    return names


def _key(row: Mapping[str, Json], path: Path, number: int | None) -> tuple[str, str, int]:
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
