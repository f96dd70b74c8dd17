"""Which column of a table of rows means what, one declaration per published form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refadv_ablate.boxes import Box, Quad
from refadv_ablate.data.conventions import Convention, numbers
from refadv_ablate.data.forms.rows import Row, count, flag, shown, size_of
from refadv_ablate.data.naming import full_name
from refadv_ablate.errors import UserError
from refadv_ablate.types import Candidate

NO_NUMBERS: Quad = (0.0, 0.0, 0.0, 0.0)
"""Stands for what isn't four numbers: a box without area, which is refused."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Column names; for `image` the first that a row has. expression: a text, or a list of texts.

    key: a column that names the image where `image` holds its bytes. row_images: image files are named by
    row, so that without a key only their content tells which rows share an image. has_images=False: a
    table such as an evaluator's output, which comes without images.
    """

    image: tuple[str, ...]
    expression: str
    box: str
    boxes: Convention
    id: str | None = None
    key: str | None = None
    category: str | None = None
    distractors: str | None = None
    negation: str | None = None
    human: str | None = None
    source: str | None = None
    size: tuple[str, str] = ("width", "height")
    candidates: str | None = None
    attributes: str | None = None
    row_images: bool = False
    has_images: bool = True

    def known_in(self, record: Mapping[str, Any]) -> bool:
        """Whether a record has what an example needs."""
        return not self.missing(record)

    def missing(self, record: Mapping[str, Any]) -> list[str]:
        """What an example needs and the record lacks."""
        image = [] if any(name in record for name in self.image) else [" or ".join(self.image)]
        return image + [name for name in (self.expression, self.box) if name not in record]

    def rows(self, where: str, record: Mapping[str, Any], split: str | None) -> Iterator[Row]:
        """One row per expression. Raises UserError naming what a record lacks or holds wrongly."""
        missing = self.missing(record)
        if missing:
            raise UserError(f"{where} lacks {', '.join(missing)}; it has {', '.join(map(str, record))}")
        image, key = self._image(where, record)
        texts = record[self.expression]
        several = isinstance(texts, list | tuple)
        for number, text in enumerate(texts if several else [texts]):
            if text is not None and not isinstance(text, str):
                raise UserError(f"{where}: {self.expression} {shown(text)} is no text; mend the file")
            yield Row(
                where=where,
                image=image,
                image_key=key,
                expression=text or "",
                box=record[self.box],
                id=self._id(where, record, number if several else None),
                size=size_of(*(record.get(name) for name in self.size)),
                category=self._text(record, self.category),
                distractors=count(record.get(self.distractors), where, self.distractors)
                if self.distractors
                else None,
                negation=flag(record.get(self.negation), where, self.negation) if self.negation else None,
                candidates=self._candidates(where, record),
                source=self._text(record, self.source),
                split=self._text(record, "split") or split,
                attributes=self._attributes(where, record),
            )
        if several and not texts:
            yield Row(
                where,
                image,
                key,
                "",
                record[self.box],
                self._id(where, record, None),
                targets=-1,
                split=split,
            )

    def _image(self, where: str, record: Mapping[str, Any]) -> tuple[str | bytes, str]:
        value = next(record[name] for name in self.image if name in record)
        name = record.get(self.key) if self.key else None
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list) and value:
            raise UserError(f"{where}: image holds {len(value)} images where one is needed; mend the file")
        if isinstance(value, dict):  # how the hub stores an image in Parquet
            name, value = name or value.get("path"), value.get("bytes") or value.get("path")
        if isinstance(value, bytes):
            return value, full_name(str(name)) if name else ""
        if not isinstance(value, str) or not value.strip():
            raise UserError(f"{where}: image {shown(value)} names no file; mend the file")
        if name or not self.row_images:
            return value, full_name(str(name) if name else value)
        return value, ""

    def _id(self, where: str, record: Mapping[str, Any], number: int | None) -> str | None:
        if self.id is None or record.get(self.id) in (None, ""):
            return None
        if isinstance(record[self.id], bytes):
            raise UserError(f"{where}: {self.id} {shown(record[self.id])} is no id; mend the file")
        return f"{record[self.id]}" if number is None else f"{record[self.id]}-{number}"

    def _candidates(self, where: str, record: Mapping[str, Any]) -> tuple[Candidate, ...]:
        """Candidates as {"box": …, "category": …}, boxes in the file's convention (pixels only)."""
        listed = (record.get(self.candidates) if self.candidates else None) or []
        try:
            return tuple(
                Candidate(
                    Box(*self.boxes.corners(numbers(one["box"]) or NO_NUMBERS, None)), one.get("category")
                )
                for one in listed
            )
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise UserError(
                f"{where}: {self.candidates} must be a list of objects with a box ({error}); mend the file"
            ) from error

    def _text(self, record: Mapping[str, Any], column: str | None) -> str | None:
        value = record.get(column) if column else None
        return None if value in (None, "") else str(value)

    def _attributes(self, where: str, record: Mapping[str, Any]) -> dict[str, Any]:
        kept = (record.get(self.attributes) if self.attributes else None) or {}
        if not isinstance(kept, dict):
            raise UserError(
                f"{where}: {self.attributes} {shown(kept)} is no object with named fields; mend the file"
            )
        kept = dict(kept)
        if self.human and (human := flag(record.get(self.human), where, self.human)) is not None:
            kept["human_authored"] = human
        return kept


QWEN = Columns(("image",), "sent", "bbox", Convention("xyxy"))
"""Evaluation files of Qwen-VL and InternVL: one expression a line (InternVL, eval/refcoco)."""

SHIKRA = Columns(("img_path",), "expression", "bbox", Convention("xyxy"))
"""Shikra's REC_*.jsonl (mllm/dataset/single_image_dataset/rec.py)."""

VLM_R1 = Columns(("image",), "normal_caption", "solution", Convention("xyxy"))
"""VLM-R1's rec_jsons. `solution` is read: `bbox_list` has corners one pixel smaller (om-ai-lab/VLM-R1#11)."""

LMMS = Columns(("image",), "answer", "bbox", Convention("xywh"), key="file_name")
"""Hub rows of lmms-lab/RefCOCO*: refs with all their expressions, boxes x y width height (README)."""

REF_ADV = Columns(
    ("image", "file_name"),
    "normal_caption",
    "solution",
    Convention("xyxy"),
    id="row_idx",
    key="file_name",
    distractors="distractors",
    negation="use_negation",
    human="human_authored",
    source="image_source",
    category="category",
    candidates="candidates",
    attributes="attributes",
    row_images=True,
)
"""Ref-Adv and Ref-Adv-s as on the hub (dddraxxx/Ref-Adv, run.py and README).

category, candidates and attributes are not published; sets made by the curation pipeline have them."""

REF_ADV_PREDICTIONS = Columns(
    ("file_name",),
    "normal_caption",
    "gt_bbox_xyxy",
    Convention("xyxy"),
    id="row_idx",
    distractors="distractor_count",
    negation="use_negation",
    human="human_authored",
    source="image_source",
    has_images=False,
)
"""The rows in which Ref-Adv-s predictions are published: everything but the images."""

REF_L4 = Columns(("file_name",), "caption", "bbox", Convention("xywh"), id="id", category="ori_category_id")
"""Ref-L4's ref-l4-{val,test}.parquet (ref_l4/evaluation.py)."""

OWN = Columns(
    ("image",),
    "expression",
    "box",
    Convention("xyxy"),
    id="id",
    key="image_key",
    category="category",
    distractors="distractors",
    negation="negation",
    human="human_authored",
    source="source",
    candidates="candidates",
    attributes="attributes",
)
"""One's own file, as docs/data.md describes it."""

USUAL = {
    "image": ("image", "img", "image_path", "img_path", "file_name", "filename", "image_file", "path"),
    "expression": (
        "expression",
        "caption",
        "sentence",
        "sent",
        "text",
        "phrase",
        "query",
        "description",
        "question",
    ),
    "box": ("box", "bbox", "boxes", "bounding_box", "gt_bbox", "gt_box", "target", "solution"),
}
"""What people call the columns of their own files, the usual names first."""


def naming(columns: Sequence[str]) -> str:
    """A clause with the words of a command that name the columns of one's own file, as far as guessed."""
    known = {column.casefold(): column for column in reversed(columns)}
    guessed = {
        key: next((known[name] for name in names if name in known), "…") for key, names in USUAL.items()
    }
    words = " ".join(f"data.forms.{key}={column}" for key, column in guessed.items())
    order = "data.forms.order=xywh for boxes as x, y, width, height"
    return f"name its columns: data=jsonl {words} (and {order}; as YAML: docs/data.md)"
