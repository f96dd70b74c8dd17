"""The prediction files that the authors of Ref-Adv publish, read as records.

Two layouts with the same columns: JSON Lines (outputs/qwen/*_predictions.jsonl of their repository) and
a tab-separated table, without quoting unless somebody wrote it again. Boxes are original pixels, as their
reader took them. Their stored IoU and hit are never used: only compared with what the boxes give.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from refadv_ablate.boxes import Box
from refadv_ablate.data.forms.quoting import cells_of, is_quoted
from refadv_ablate.errors import FieldError, UserError, shown
from refadv_ablate.parsing.scoring import score
from refadv_ablate.report.loading.rows import Row, disagreeing
from refadv_ablate.storage.jsonl import read_each
from refadv_ablate.types import ORIGINAL, Json, Outcome, Record

REQUIRED = ("row_idx", "normal_caption", "gt_bbox_xyxy", "pred_box_xyxy_first")
BACKEND_ERROR = "backend_error"
"""Their mark of a request that failed: the model never answered, so it is missing, not wrong."""


def is_theirs(row: Mapping[str, Json]) -> bool:
    """Whether a line has their columns."""
    return all(name in row for name in REQUIRED)


def read_jsonl(path: Path) -> Iterator[Row]:
    """Raises UserError naming file and line."""
    yield from read_each(path, to_row)


def read_tsv(path: Path) -> Iterator[Row]:
    """Raises UserError naming file and line."""
    names: list[str] = []
    number = 0
    try:
        quoted = is_quoted(path)
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                cells = cells_of(line.rstrip("\r\n"), quoted)
                if not names:
                    names = cells
                    _check_header(path, names)
                elif line.strip():
                    yield _tsv_row(path, number, names, cells)
    except csv.Error as error:
        raise UserError(f"{path}, line {number}: its quotes don't close ({error}); mend the line") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: {error.reason}; save the file as UTF-8") from error
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror or error}") from error


def to_row(line: Mapping[str, Json]) -> Row:
    """Raises FieldError naming the field."""
    absent = [name for name in REQUIRED if name not in line]
    if absent:
        raise FieldError(f"no {absent[0]!r}; a Ref-Adv prediction has {', '.join(REQUIRED)}")
    target = _box(line, "gt_bbox_xyxy")
    if target is None:
        raise FieldError("'gt_bbox_xyxy' is empty")
    outcome, predicted, reason = _answer(line)
    stored = line.get("first_iou")
    value = score(outcome, predicted, target)
    caption, human = str(line["normal_caption"]), _flag(line, "human_authored")
    record = Record(
        example_id=str(line["row_idx"]),
        # without a file name each row is an image of its own
        image_key=str(line.get("file_name") or f"row {line['row_idx']}"),
        condition=ORIGINAL,
        draw=0,
        status="unchanged",
        expression=caption,
        original_expression=caption,
        target=target,
        outcome=outcome,
        predicted=predicted,
        iou=value,
        reason=reason,
        n_boxes=int(predicted is not None),
        notes=("retried",) if _flag(line, "retry_followup_used") else (),
        distractors=_count(line.get("distractor_count")),
        negation=_flag(line, "use_negation"),
        source=line.get("image_source") or None,
        attributes={} if human is None else {"human_authored": human},
    )
    return Row(record, disagreeing(value, None if stored in (None, "") else _real("first_iou", stored)))


def labels(line: Mapping[str, Json]) -> tuple[str | None, str | None]:
    """Model and prompt as a line names them: `Qwen/Qwen3.5-27B`, `direct`."""
    return line.get("model_full_name") or None, line.get("prompt_id") or None


def first_line(path: Path) -> Mapping[str, Json]:
    """The first row of a table as a line of JSON Lines, for its labels; empty for an empty file."""
    quoted = is_quoted(path)
    with path.open(encoding="utf-8-sig") as file:
        head, first = file.readline().rstrip("\r\n"), file.readline().rstrip("\r\n")
    return dict(zip(cells_of(head, quoted), cells_of(first, quoted), strict=False)) if first else {}


def _answer(line: Mapping[str, Json]) -> tuple[Outcome, Box | None, str]:
    problem = str(line.get("parse_error") or "").strip()
    if problem == BACKEND_ERROR:
        return "missing", None, problem
    try:
        predicted = _box(line, "pred_box_xyxy_first")
    except FieldError as error:
        return "unparsable", None, str(error)
    if predicted is None:
        return "unparsable", None, problem or "no box"
    return "box", predicted, ""


def _tsv_row(path: Path, number: int, names: list[str], cells: list[str]) -> Row:
    if len(cells) != len(names):
        raise UserError(f"{path}:{number}: {len(cells)} columns, the header has {len(names)}")
    try:
        return to_row(dict(zip(names, cells, strict=True)))
    except ValueError as error:
        raise UserError(f"{path}:{number}: {error}") from error


def _check_header(path: Path, names: list[str]) -> None:
    absent = [name for name in REQUIRED if name not in names]
    if absent:
        raise UserError(
            f"{path}:1: no column {absent[0]!r}; a Ref-Adv prediction table has {', '.join(REQUIRED)}"
        )


def _box(line: Mapping[str, Json], name: str) -> Box | None:
    """Four numbers in a list or separated by commas; None where there are none."""
    value = line[name]
    parts = value.split(",") if isinstance(value, str) and value.strip() else value
    if not parts:
        return None
    if not isinstance(parts, list) or len(parts) != 4:
        raise FieldError(f"{name!r} needs four numbers, not {shown(value)}")
    plain = all(type(part) is float for part in parts)  # as nearly always; Box looks for NaN itself
    numbers = parts if plain else [_real(name, part) for part in parts]
    try:
        return Box(*numbers)
    except ValueError as error:
        raise FieldError(f"{name!r}: {error}") from error


def _real(name: str, value: Json) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise FieldError(f"{name!r} needs a number, not {shown(value)}") from None
    if not math.isfinite(number) or isinstance(value, bool):
        raise FieldError(f"{name!r} needs a finite number, not {shown(value)}")
    return number


def _count(value: Json) -> int | None:
    if value is None or value == "":
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise FieldError(f"'distractor_count' needs a whole number, not {shown(value)}") from None


_FLAGS = {"1": True, "true": True, "0": False, "false": False, "": None, "none": None}


def _flag(line: Mapping[str, Json], name: str) -> bool | None:
    value = line.get(name, "")
    if value is True or value is False:
        return value
    text = str(value).strip().lower()
    if text not in _FLAGS:
        raise FieldError(f"{name!r} needs true or false, not {shown(line[name])}")
    return _FLAGS[text]
