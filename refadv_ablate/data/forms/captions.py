"""COCO-shaped files in which an image entry carries an expression: MDETR's and FineCops-Ref's.

Each entry of `images` has a caption and one annotation, its referent (x y width height). The same
photograph appears in many entries; `original_id` or the file name tells which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refadv_ablate.data.conventions import Convention
from refadv_ablate.data.forms.files import digest, read_json
from refadv_ablate.data.forms.rows import Place, Row, size_of
from refadv_ablate.data.naming import full_name
from refadv_ablate.errors import UserError
from refadv_ablate.types import Json


@dataclass(frozen=True, slots=True)
class CaptionedCoco:
    """files: alternatives, with {split}. keep: fields of an image entry that become attributes.

    split_by: whose splits the files follow. id: a field that is unique and stable, else ids are made
    from the content. category_names=False: category ids in the file are placeholders.
    negatives: alternatives for a file that has the expressions without a referent too; negative: a field
    that only those have, whatever box they are given.
    """

    files: tuple[str, ...]
    split_by: str = ""
    id: str | None = None
    keep: tuple[str, ...] = ()
    category_names: bool = True
    has_images: bool = True
    negatives: tuple[str, ...] = ()
    negative: str = ""

    @property
    def boxes(self) -> Convention:
        """COCO's."""
        return Convention("xywh")

    def found(self, place: Place) -> tuple[Path, ...]:
        """The named file, if it looks like one, or the one below the folder."""
        if place.path.is_file():
            return (place.path,) if place.path.suffix == ".json" and _captioned(place.path) else ()
        return place.first(self.files)

    def lacks(self, place: Place) -> tuple[str, ...]:
        """Nothing: it is one file, there or not."""
        return ()

    def refusal(self, place: Place) -> str:
        """Why this split can't be served."""
        if self.split_by and place.split_by not in ("", self.split_by):
            return f"its splits are those of {self.split_by}, not of {place.split_by}"
        return ""

    def fingerprint(self, place: Place) -> Mapping[str, Json]:
        """Digests of the file, and of that with the negatives where it is another one."""
        return {path.name: digest(path) for path in (*self.found(place), *self._negatives(place))}

    def rows(self, place: Place) -> Iterator[Row]:
        """One row per image entry."""
        (path,) = self.found(place)
        return self._rows(path, place)

    def no_targets(self, place: Place) -> Iterator[Row]:
        """The rows without a referent, from the file that has them: targets is 0."""
        for path in self._negatives(place) or self.found(place):
            yield from (row for row in self._rows(path, place) if row.targets == 0)

    def _negatives(self, place: Place) -> tuple[Path, ...]:
        beside = Place(place.folder, place.split, place.split_by)
        return tuple(path for path in beside.first(self.negatives) if path not in self.found(place))

    def _rows(self, path: Path, place: Place) -> Iterator[Row]:
        content = read_json(path)
        try:
            names = {one["id"]: one["name"] for one in content.get("categories", ())}
            targets: dict[object, list[Mapping[str, Any]]] = {}
            for annotation in content["annotations"]:
                if not annotation.get("empty"):  # how gRefCOCO's converter marks "no target"
                    targets.setdefault(annotation["image_id"], []).append(annotation)
            for number, entry in enumerate(content["images"], 1):
                where = f"{path.name}, image entry {number}"
                yield self._row(where, entry, targets.get(entry["id"], []), names, place)
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"{path} is no COCO-shaped file with captions ({type(error).__name__}: {error})"
            ) from error

    def _row(
        self,
        where: str,
        entry: Mapping[str, Any],
        targets: list[Mapping[str, Any]],
        names: Mapping[object, str],
        place: Place,
    ) -> Row:
        name = str(entry["file_name"])
        caption = entry["caption"]
        if caption is not None and not isinstance(caption, str):
            raise UserError(f"{where}: caption {caption!r} is no text; mend the file")
        facts = {**(targets[0] if len(targets) == 1 else {}), **entry}
        if self.negative and facts.get(self.negative) is not None:
            targets = []  # a box that it is given all the same is that of the expression it was made from
        one = targets[0] if len(targets) == 1 else None
        category = names.get(one["category_id"]) if one and self.category_names else None
        return Row(
            where=where,
            image=name,
            image_key=full_name(name),
            expression=caption or "",
            box=one["bbox"] if one else [],
            id=str(entry[self.id]) if self.id and entry.get(self.id) is not None else None,
            size=size_of(entry.get("width"), entry.get("height")),
            targets=len(targets),
            category=category,
            split=place.split or None,
            attributes={key: facts[key] for key in self.keep if facts.get(key) is not None},
        )


def _captioned(path: Path) -> bool:
    """Whether the beginning of a JSON file shows COCO's top-level keys."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            head = file.read(200_000)
    except (OSError, ValueError):
        return False
    return head.lstrip().startswith("{") and (
        '"images"' in head or '"annotations"' in head or '"info"' in head
    )
