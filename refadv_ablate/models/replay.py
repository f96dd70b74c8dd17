"""Answers that somebody already has: a predictions file stands in for the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar, Literal

from refadv_ablate.boxes import Box
from refadv_ablate.data.naming import full_name, last
from refadv_ablate.errors import UserError
from refadv_ablate.models.replay_rows import BOXES, TEXTS, Index
from refadv_ablate.storage.records import confidence_from_json
from refadv_ablate.types import ORIGINAL, Confidence, Json, ModelSpec, Reply, Request, Seen

ORIGINAL_TEXTS = ("original_expression", "normal_caption")
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
    ([x1, y1, x2, y2] or "x1,y1,x2,y2"; order=xywh: x, y, width, height) is in pixels of the original
    image: it goes before the text where the model's frame is those pixels, after it elsewhere. What the
    file lacks is a reply with finish "error": missing, never wrong. A row that holds the expression or
    names the image must be about the example of its id. A column `confidence` (0 to 1) is kept with the
    answer. Only an index is held in memory.
    """

    durable: ClassVar[bool] = False  # the file itself is the store
    spec: ModelSpec
    path: Path
    order: Literal["xyxy", "xywh"] = "xyxy"
    _asked: set[int] = field(default_factory=set, init=False, repr=False)
    _rows: Index | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path).expanduser()
        if self.path.is_dir():
            self.path = self.path / "predictions.jsonl"
        if not self.path.is_file():
            raise UserError(f"there is no predictions file {self.path}: path=… takes a .jsonl or .tsv")

        if self.order not in ("xyxy", "xywh"):
            raise UserError(f"order={self.order}: the boxes of a predictions file are xyxy or xywh")

    def identity(self) -> Mapping[str, Json]:
        """The file's content, wherever it lies."""
        said = {"engine": "replay", "checkpoint": self.spec.checkpoint, "sha256": self._sha256}
        return said if self.order == "xyxy" else {**said, "order": self.order}

    @cached_property
    def _sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """In the order asked."""
        if self._rows is None:
            self._rows = Index(self.path, self.order)
        with self.path.open("rb") as file:
            for request in requests:
                if request.perturbed.example.id.isdigit():
                    self._asked.add(int(request.perturbed.example.id))
                yield request, self._reply(request, self._rows, file)
        self._refuse_shifted(self._rows)

    def _refuse_shifted(self, rows: Index) -> None:
        """Raises UserError where rows count from 0 and the data's ids from 1: every pair would be wrong."""
        if rows.numbered is None or not self._asked:
            return
        first, final = rows.numbered
        if first == 0 and min(self._asked) == 1 and max(self._asked) == final + 1:
            raise UserError(
                f"{self.path.name} counts its rows from 0 to {final}, and the ids of the data go from 1 to "
                f"{final + 1}: they don't mean the same examples; give the rows the data's ids as example_id"
            )

    def _reply(self, request: Request, rows: Index, file: BinaryIO) -> Reply:
        example = request.perturbed.example
        row = rows.find(file, example.id, request.condition, request.draw)
        if row is None and request.repeat == 0 and request.perturbed.status == "unchanged":
            row = rows.find(file, example.id, ORIGINAL, 0)
        if row is None:
            where = f"{request.condition!r} (draw {request.draw})"
            reason = f"{self.path.name} has no row for example {example.id}, condition {where}"
            return Reply(text="", finish="error", error=reason)
        if wrong := _another(row, request):
            raise UserError(
                f"{self.path}: the row for example {example.id}, condition {request.condition!r}, is about "
                f"another example ({wrong}): its ids are not those of the data, or one of them counts "
                "from 0; give the rows the data's ids as example_id"
            )
        return self._as_reply(row)

    def _as_reply(self, row: Mapping[str, Json]) -> Reply:
        finish = FINISH.get(str(row.get("outcome", "")), row.get("finish", "stop"))
        if finish == "error":
            return Reply(text="", finish="error", error=str(row.get("reason") or "missing in the file"))
        text = next((row[name] for name in TEXTS if isinstance(row.get(name), str) and row[name]), "")
        box = next((row[name] for name in BOXES if row.get(name)), None)
        if box is not None and (self._in_pixels or not text):
            text = self._box_text(box)
        engine = row.get("engine")
        return Reply(
            text=text,
            finish=finish,
            reasoning=str(row.get("reasoning") or ""),
            engine=engine if isinstance(engine, str) else "",
            confidence=self._confidence(row.get("confidence")),
        )

    def _confidence(self, told: Json) -> Confidence | None:
        """A column `confidence`: a number from 0 to 1, or the object of our own predictions."""
        if told is None or told == "":
            return None
        try:
            value = told if isinstance(told, Mapping) else {"value": float(told)}
            return confidence_from_json({"confidence": value})
        except (ValueError, TypeError) as error:
            raise UserError(
                f"{self.path} holds the confidence {told!r}, which is no number from 0 to 1"
            ) from error

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
        if self.order == "xywh":
            quad = [quad[0], quad[1], quad[0] + quad[2], quad[1] + quad[3]]
        if not self._in_pixels:
            raise UserError(
                f"{self.path} holds boxes in pixels of the original image, which {self.spec.name} would read "
                "in another frame: use model=replay for files of boxes"
            )
        return json.dumps({"bbox": quad})

    def close(self) -> None:
        """Forgets the index."""
        self._rows = None
        self._asked.clear()


def _another(row: Mapping[str, Json], request: Request) -> str:
    """What says that a row is about another example than the one its id names; empty where nothing does.

    The text decides where there is one; file names may be written with and without folders.
    """
    original = request.perturbed.original.expression
    texts = [row[name] for name in ORIGINAL_TEXTS if isinstance(row.get(name), str) and row[name]]
    if not texts and isinstance(row.get("expression"), str) and row["expression"]:
        texts = [row["expression"]]
        original = request.perturbed.example.expression if row.get("condition") else original
    if texts:
        return "" if _plain(texts[0]) == _plain(original) else f"{texts[0]!r}, not {original!r}"
    image = request.perturbed.example.image
    named = next((row[name] for name in ("image_key", "file_name", "image") if row.get(name)), None)
    if not isinstance(named, str) or "." not in image.key:
        return ""
    theirs = last(full_name(named))
    return "" if theirs == last(image.key) or "." not in theirs else f"image {named!r}, not {image.key!r}"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
