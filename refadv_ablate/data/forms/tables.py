"""Sets that are tables of rows: JSON lines, JSON, tab-separated text or Parquet, each with its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from refadv_ablate.data.conventions import Convention
from refadv_ablate.data.forms.columns import Columns
from refadv_ablate.data.forms.files import SUFFIXES, digest, first_record, records
from refadv_ablate.data.forms.rows import Place, Row
from refadv_ablate.errors import UserError
from refadv_ablate.types import Json

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.parquet$")


def missing_shards(paths: Sequence[Path]) -> tuple[str, ...]:
    """Names of the shards (…-00001-of-00004.parquet) that a set of files lacks."""
    names = {path.name for path in paths}
    wanted: dict[str, None] = {}
    for name in sorted(names):
        if match := _SHARD.search(name):
            stem = name[: match.start()]
            wanted |= dict.fromkeys(f"{stem}-{i:05d}-of-{match[2]}.parquet" for i in range(int(match[2])))
    return tuple(name for name in wanted if name not in names)


class OfColumns:
    """What forms of rows share, on disk or on the hub: columns, and whose splits they can serve."""

    __slots__ = ()

    columns: Columns
    split_by: str
    mixed: Mapping[str, str] | None

    @property
    def boxes(self) -> Convention:
        """How boxes are written."""
        return self.columns.boxes

    @property
    def has_images(self) -> bool:
        """Whether images come with it."""
        return self.columns.has_images

    def refusal(self, place: Place) -> str:
        """Why this split can't be served."""
        if self.mixed and place.split in self.mixed:
            return self.mixed[place.split]
        if self.split_by and place.split_by not in ("", self.split_by):
            return f"its splits are those of {self.split_by}, not of {place.split_by}"
        return ""


@dataclass(frozen=True, slots=True)
class Table(OfColumns):
    """A table of rows. files: alternatives, with {split}; the first that exists is read.

    split_by: whose splits the files follow. mixed: split → what is known against it.
    """

    columns: Columns
    files: tuple[str, ...] = ()
    split_by: str = ""
    mixed: Mapping[str, str] | None = None

    def found(self, place: Place) -> tuple[Path, ...]:
        """The named file if its columns are these, else what matches below the folder."""
        if place.path.is_file():
            suits = place.path.suffix.lower() in SUFFIXES and self.columns.known_in(first_record(place.path))
            return (place.path,) if suits else ()
        paths = place.first(self.files)
        if missing_shards(paths):
            return ()
        known = [path for path in paths if self.columns.known_in(first_record(path))]
        if len(known) > 1 and not _SHARD.search(known[0].name):
            names = ", ".join(path.name for path in known)
            raise UserError(
                f"{place.folder} holds several tables of this kind ({names}); name one with data.path"
            )
        return tuple(known)

    def lacks(self, place: Place) -> tuple[str, ...]:
        """Shards that are missing beside others."""
        return missing_shards(place.first(self.files)) if not place.path.is_file() else ()

    def rows(self, place: Place) -> Iterator[Row]:
        """Rows in stored order, one per expression."""
        for path in self.found(place):
            for where, record in records(path):
                yield from self.columns.rows(where, record, place.split or None)

    def fingerprint(self, place: Place) -> Mapping[str, Json]:
        """Digests of the files."""
        return {path.name: digest(path) for path in self.found(place)}
