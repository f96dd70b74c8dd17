"""The seam between the forms in which sets lie about and the one way in which they become examples."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, get_args, runtime_checkable

from refadv_ablate.boxes import Size
from refadv_ablate.data.conventions import Convention
from refadv_ablate.errors import UserError
from refadv_ablate.types import Candidate, Json

Kind = Literal[
    "empty_expression",
    "broken_expression",
    "no_expressions",
    "degenerate_box",
    "outside_image",
    "missing_image",
    "broken_image",
    "size_mismatch",
    "transposed_size",
    "no_target",
    "multi_target",
    "duplicate_id",
    "duplicate_expression",
]
"""What can be wrong with a row. All but duplicate_expression stop a run unless they are excluded.

duplicate_expression: the same words on the same image again. RefCOCO's published counts contain such
rows, so they are kept, counted and listed; `data.exclude=[duplicate_expression]` drops the later ones.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Row:
    """One expression as a file has it. `box` holds the stored numbers in the form's convention.

    image: a name under the image root, or the bytes of the image's file. image_key: the whole relative
    name by which the set knows the image (naming.full_name), empty where only its content tells.
    targets: how many instances the expression refers to. ann_id: the referent among the annotated
    instances, where the form says.
    """

    where: str
    image: str | bytes
    image_key: str
    expression: str
    box: Sequence[object]
    id: str | None = None
    size: Size | None = None
    targets: int = 1
    category: str | None = None
    ann_id: int | None = None
    candidates: tuple[Candidate, ...] = ()
    distractors: int | None = None
    negation: bool | None = None
    source: str | None = None
    split: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a set is looked for: a folder, one of its files, or a hub id that is no local path."""

    path: Path
    split: str = ""
    split_by: str = ""
    revision: str | None = None

    @property
    def folder(self) -> Path:
        """The folder, of the file where the path is a file."""
        return self.path.parent if self.path.is_file() else self.path

    def first(self, patterns: Sequence[str]) -> tuple[Path, ...]:
        """Files of the first pattern that matches any, below the folder; {split}, {split_by} are filled."""
        for pattern in patterns:
            filled = pattern.replace("{split}", self.split).replace("{split_by}", self.split_by)
            if "*" in filled:
                found = tuple(sorted(self.folder.glob(filled)))
            else:  # parentheses and plus signs are part of names such as refs(unc).p
                found = tuple(path for path in [self.folder / filled] if path.is_file())
            if found:
                return found
        return ()


@runtime_checkable
class Form(Protocol):
    """A way in which annotations are stored; one reader each, shared by the sets that use it."""

    @property
    def boxes(self) -> Convention:
        """How boxes are written."""

    @property
    def has_images(self) -> bool:
        """Whether images come with it; without, they are absent unless an image root is named."""

    def found(self, place: Place) -> tuple[Path, ...]:
        """The files it would read, all of them; empty where one is missing."""

    def lacks(self, place: Place) -> tuple[str, ...]:
        """Names of missing files where others are there: a half-present set."""

    def refusal(self, place: Place) -> str:
        """Why this form can't serve the split that is asked for; empty where it can."""

    def rows(self, place: Place) -> Iterator[Row]:
        """Rows in stored order. Raises UserError for files it can't read."""

    def fingerprint(self, place: Place) -> Mapping[str, Json]:
        """What determines the rows: digests of files, or hub id and revision."""


def shown(value: object) -> str:
    """A value as an error sentence shows it: bytes as their number, the rest cut to 60 characters."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value):,} bytes>"
    if isinstance(value, Mapping):
        return f"an object with {', '.join(map(str, value)) or 'no fields'}"[:80]
    if isinstance(value, list | tuple) and not all(
        isinstance(one, int | float | str | None) for one in value
    ):
        return f"a list of {len(value)}"
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 64 else text[:60] + "…"


def count(value: object, where: str, column: str) -> int | None:
    """A count as sets write it: 5, "5", a list of things, or such a list as text; None where unknown."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                value = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                raise UserError(f"{where}: {column} {shown(value)} is no list; mend the file") from None
        elif not text or text.lower() in ("none", "null", "nan"):
            return None
        else:
            try:
                value = float(text)
            except ValueError:
                raise UserError(f"{where}: {column} {shown(value)} is no count; mend the file") from None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, list | tuple):
        return len(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) >= 0:
        return int(value)
    raise UserError(f"{where}: {column} {shown(value)} is no count; mend the file")


def flag(value: object, where: str, column: str) -> bool | None:
    """A yes or no as sets write it: true, 1, "1", "true"; None where unknown."""
    if value is None or value == "":
        return None
    word = str(value).strip().lower()
    if word in ("true", "1", "yes"):
        return True
    if word in ("false", "0", "no"):
        return False
    raise UserError(f"{where}: {column} {shown(value)} is neither true nor false; mend the file")


def whole(value: object) -> int | None:
    """An image's width or height; None for what isn't a positive whole number."""
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return int(value)
    return None


def size_of(width: object, height: object) -> Size | None:
    """(width, height) where both are known."""
    w, h = whole(width), whole(height)
    return (w, h) if w and h else None
