"""Sets on the Hugging Face hub, streamed through `datasets`, or their Parquet files downloaded before."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from refadv_ablate.data.forms.columns import Columns
from refadv_ablate.data.forms.rows import Place, Row
from refadv_ablate.data.forms.tables import OfColumns
from refadv_ablate.errors import UserError
from refadv_ablate.types import Json

TIMEOUT = 5.0
"""Seconds to wait for the hub before saying that it can't be reached."""


@dataclass(frozen=True, slots=True)
class Hub(OfColumns):
    """Rows of a hub data set. Never chosen by itself: `data.form=hub` or the id as data.path asks for it.

    split: the hub's name of the split, with {split}. mixed: split → what is known against it.
    """

    id: str
    columns: Columns
    split: str = "{split}"
    split_by: str = ""
    mixed: Mapping[str, str] | None = None

    def found(self, place: Place) -> tuple[Path, ...]:
        """No files: the rows are elsewhere."""
        return ()

    def lacks(self, place: Place) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def fingerprint(self, place: Place) -> Mapping[str, Json]:
        """Id, the commit that the revision means now, and the split."""
        return {"hub": self.id, "revision": commit(self.id, place.revision), "split": self._split(place)}

    def rows(self, place: Place) -> Iterator[Row]:
        """Rows as the hub has them. Raises UserError where it can't be reached, and for an empty set."""
        split = self._split(place)
        number = 0
        for number, record in enumerate(_guarded(self.id, split, commit(self.id, place.revision)), 1):
            yield from self.columns.rows(f"{self.id} {split}, row {number}", record, place.split or None)
        if number == 0:
            raise UserError(f"{self.id} gave no rows for split {split}; the hub may be unreachable")

    def _split(self, place: Place) -> str:
        return self.split.replace("{split}", place.split)


@lru_cache(maxsize=32)
def commit(hub_id: str, revision: str | None) -> str:
    """The commit hash of a hub data set's revision. Raises UserError within seconds where it can't be had."""
    where_else = (
        f"download it where there is a network (hf download {hub_id} --repo-type dataset) and set data.path"
    )
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise UserError(f"{hub_id} can't be streamed: HF_HUB_OFFLINE is set; {where_else}")
    from huggingface_hub import HfApi

    try:
        found = HfApi().dataset_info(hub_id, revision=revision, timeout=TIMEOUT).sha
    except Exception as error:
        # the client's network stack has dozens of error classes; none of them may become a traceback
        raise UserError(
            f"{hub_id} can't be had from the hub ({type(error).__name__}: {_first_line(error)}); {where_else}"
        ) from error
    return str(found)


def _guarded(hub_id: str, split: str, revision: str) -> Iterator[Mapping[str, Any]]:
    """The stream with its errors as sentences: a connection that breaks is no end of the set."""
    try:
        yield from stream(hub_id, split, revision)
    except UserError:
        raise
    except GeneratorExit:
        raise
    except Exception as error:
        raise UserError(
            f"{hub_id} broke off while it was streamed ({type(error).__name__}: {_first_line(error)}); start "
            "again, or download it and set data.path"
        ) from error


def stream(hub_id: str, split: str, revision: str) -> Iterable[Mapping[str, Any]]:
    """Rows of one split with images as the bytes of their files."""
    import datasets

    rows = datasets.load_dataset(hub_id, split=split, revision=revision, streaming=True)
    for name, feature in (rows.features or {}).items():
        if isinstance(feature, datasets.Image):
            rows = rows.cast_column(name, datasets.Image(decode=False))
    return rows  # type: ignore[no-any-return] # datasets is untyped here


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
