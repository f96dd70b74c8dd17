"""Annotated images: COCO instances, COCO panoptic, OpenImages, and scenes drawn by the project."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from refadv_ablate.boxes import Box, Size
from refadv_ablate.data.forms.files import read_json
from refadv_ablate.data.forms.instances import load_instances
from refadv_ablate.data.images import FileImage, below
from refadv_ablate.errors import ImageUnreadable, UserError


@dataclass(frozen=True, slots=True)
class Instance:
    """An annotated object, pixels of the stored image. crowd: stands for several, or is no single thing."""

    category: str
    box: Box
    crowd: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """An image and what is annotated on it. name: below the source's image root."""

    name: str
    size: Size
    instances: tuple[Instance, ...]


class Source(Protocol):
    """Where annotated images come from."""

    @property
    def name(self) -> str:
        """The source as exported rows name it."""

    def root(self, out: Path) -> Path:
        """The folder with the images."""

    def pictures(self, out: Path) -> Iterator[Picture]:
        """In stored order. Raises UserError for files it can't read."""


@dataclass(frozen=True, slots=True)
class Coco:
    """COCO instances_*.json."""

    instances: Path
    images: Path
    name: str = "coco"

    def root(self, out: Path) -> Path:
        """As configured."""
        return self.images.absolute()

    def pictures(self, out: Path) -> Iterator[Picture]:
        """Crowd regions (iscrowd = 1) are marked as such."""
        for annotated in load_instances([self.instances]).by_image.values():
            found = tuple(
                Instance(one.candidate.category or "object", one.candidate.box, one.crowd)
                for one in annotated.instances
            )
            size = annotated.size or _size(self.root(out), annotated.name)
            yield Picture(annotated.name, size, found)


@dataclass(frozen=True, slots=True)
class Panoptic:
    """COCO panoptic_*.json; only things are instances."""

    panoptic: Path
    images: Path
    name: str = "coco_panoptic"

    def root(self, out: Path) -> Path:
        """As configured."""
        return self.images.absolute()

    def pictures(self, out: Path) -> Iterator[Picture]:
        """The images' names are those of the file's `images`, not of the PNG segment maps."""
        tree = read_json(self.panoptic)
        try:
            categories = {c["id"]: c for c in tree["categories"]}
            pictures = {i["id"]: i for i in tree["images"]}
            segments = [(a["image_id"], a["segments_info"]) for a in tree["annotations"]]
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{self.panoptic} is no COCO panoptic file (it lacks {error}); for instances use source=coco"
            ) from error
        for image_id, found in segments:
            image = pictures[image_id]
            instances = tuple(
                Instance(categories[s["category_id"]]["name"], box, bool(s.get("iscrowd", 0)))
                for s in found
                if categories[s["category_id"]].get("isthing", 1) and (box := _xywh(s["bbox"])) is not None
            )
            yield Picture(image["file_name"], (int(image["width"]), int(image["height"])), instances)


@dataclass(frozen=True, slots=True)
class OpenImages:
    """OpenImages box CSV (corners as fractions of the image) with the class-descriptions CSV."""

    boxes: Path
    classes: Path
    images: Path
    suffix: str = ".jpg"
    name: str = "openimages"

    def root(self, out: Path) -> Path:
        """As configured."""
        return self.images.absolute()

    def pictures(self, out: Path) -> Iterator[Picture]:
        """IsGroupOf boxes are crowds; IsDepiction and IsInside boxes are left out."""
        names = dict(_csv_rows(self.classes))
        grouped: dict[str, list[dict[str, str]]] = defaultdict(list)
        for row in _csv_dicts(self.boxes):
            if row.get("IsDepiction") != "1" and row.get("IsInside") != "1":
                grouped[row["ImageID"]].append(row)
        for image_id, rows in grouped.items():
            name = f"{image_id}{self.suffix}"
            try:
                width, height = _size(self.root(out), name)
            except ImageUnreadable:
                continue  # the CSV covers more images than anyone downloads
            found = []
            for row in rows:
                box = _fractions(row, width, height)
                if box is not None:
                    label = names.get(row["LabelName"], row["LabelName"]).lower()
                    found.append(Instance(label, box, row.get("IsGroupOf") == "1"))
            yield Picture(name, (width, height), tuple(found))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Scenes drawn by the project, written as PNG below out/drawn: to try the pipeline without images."""

    n: int = 12
    seed: int = 0
    name: str = "drawn"

    def root(self, out: Path) -> Path:
        """out/drawn."""
        return (out / "drawn").absolute()

    def pictures(self, out: Path) -> Iterator[Picture]:
        """One picture per drawn scene."""
        from refadv_ablate.data.shapes import Shapes

        folder = self.root(out)
        folder.mkdir(parents=True, exist_ok=True)
        done: set[str] = set()
        for example in Shapes(n=self.n * 4, seed=self.seed):
            name = f"{example.image.key}.png"
            if name in done:
                continue
            done.add(name)
            if not (folder / name).exists():
                part = folder / f".{name}"
                example.image.load().save(part, "PNG")
                part.replace(folder / name)
            found = tuple(Instance(c.category or "object", c.box) for c in example.candidates)
            yield Picture(name, example.image.size(), found)
            if len(done) >= self.n:
                return


def _size(root: Path, name: str) -> Size:
    return FileImage(below(root, name), name).size()


def _xywh(values: Any) -> Box | None:
    try:
        return Box.from_xywh(*map(float, values))
    except (TypeError, ValueError):
        return None  # without area: nothing to refer to


def _fractions(row: Mapping[str, str], width: int, height: int) -> Box | None:
    try:
        x1, x2, y1, y2 = (float(row[key]) for key in ("XMin", "XMax", "YMin", "YMax"))
        return Box(x1 * width, y1 * height, x2 * width, y2 * height)
    except ValueError:
        return None


def _csv_dicts(path: Path) -> Iterator[dict[str, str]]:
    needed = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [key for key in needed if key not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"{path} is no OpenImages box file: it lacks the column {missing[0]}")
            yield from reader
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}); set source.boxes to the CSV") from error


def _csv_rows(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.reader(file):
                if len(row) >= 2:
                    yield row[0], row[1]
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}); set source.classes to the CSV") from error
