"""Annotated instances of images: candidates, and distractors of the referent's category.

A distractor is another instance of the referent's category in the same image. Crowd regions
(iscrowd = 1) are neither candidates nor distractors: they are no single instance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.data.conventions import numbers
from refadv_ablate.data.forms import openimages
from refadv_ablate.data.forms.files import read_json
from refadv_ablate.data.forms.rows import size_of
from refadv_ablate.data.naming import Names, coco_name, ends_with, full_name, last
from refadv_ablate.errors import UserError
from refadv_ablate.types import Candidate

SAME = 0.9
"""IoU from which an annotated instance is taken for the referent, where only boxes can be compared."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An annotated object. id: of the annotation."""

    id: int
    candidate: Candidate
    crowd: bool = False


@dataclass(frozen=True, slots=True)
class Annotated:
    """An image of an annotation file with what is annotated on it."""

    name: str
    size: Size | None
    instances: tuple[Instance, ...]
    fractions: bool = False
    """Whether boxes are fractions of an image whose size the file doesn't tell."""

    def on(self, size: Size | None) -> Annotated | None:
        """With boxes in pixels of an image of this (width, height); None where it is needed and unknown."""
        if not self.fractions:
            return self
        if size is None:
            return None
        width, height = size

        def pixels(box: Box) -> Box:
            return Box(box.x1 * width, box.y1 * height, box.x2 * width, box.y2 * height)

        return replace(self.mapped(pixels), size=size, fractions=False)

    def by_id(self, ann_id: int) -> Instance | None:
        """The instance of this annotation id."""
        return next((one for one in self.instances if one.id == ann_id), None)

    def at(self, box: Box) -> Instance | None:
        """The instance whose box is this one (IoU ≥ SAME, the best)."""
        close = [(iou(one.candidate.box, box), -i, one) for i, one in enumerate(self.instances)]
        best = max(close, default=None, key=lambda item: item[:2])
        return best[2] if best and best[0] >= SAME else None

    def candidates(self) -> tuple[Candidate, ...]:
        """All instances but crowd regions, in stored order."""
        return tuple(one.candidate for one in self.instances if not one.crowd)

    def mapped(self, place: Callable[[Box], Box]) -> Annotated:
        """The same with every box put elsewhere."""
        moved = (replace(one.candidate, box=place(one.candidate.box)) for one in self.instances)
        return replace(
            self, instances=tuple(replace(a, candidate=b) for a, b in zip(self.instances, moved, strict=True))
        )

    def distractors(self, target: Instance) -> int:
        """Other instances of the target's category, crowd regions excluded."""
        return sum(
            one.candidate.category == target.candidate.category
            for one in self.instances
            if one.id != target.id and not one.crowd
        )


@dataclass(frozen=True, slots=True)
class InstanceIndex:
    """Instances of a whole file, by image id and by the last component of the image's name."""

    path: Path
    by_image: Mapping[int | str, Annotated]
    by_base: Mapping[str, Sequence[Annotated]]
    without_area: frozenset[int] = frozenset()
    """Ids of annotations whose box has no area: no instance, but not unknown either."""

    def find(self, full: str, names: Names, size: Size | None) -> tuple[Annotated | None, bool]:
        """The image of this name, and whether there was one of that last component but it isn't clear.

        Names agree where one ends with the other, or where COCO gave them. An image of another size is
        another image: its boxes would not lie on this one.
        """
        group = self.by_base.get(last(full), ())
        exact = [one for one in group if full_name(one.name) == full]
        fitting = exact or [one for one in group if self._agree(full, full_name(one.name), names)]
        found = fitting[0] if len(fitting) == 1 else None
        if found is not None and found.size and size and found.size != size:
            found = None
        found = found.on(size) if found is not None else None
        return found, bool(group) and found is None

    def _agree(self, full: str, name: str, names: Names) -> bool:
        if ends_with(full, name):
            return "/" in name or last(full) not in names.shared
        return ends_with(name, full) or (coco_name(full) and last(full) not in names.shared)


def load_instances(paths: Sequence[Path], wanted: frozenset[str] | None = None) -> InstanceIndex:
    """COCO-shaped instances (images, annotations, categories), GQA scene graphs or OpenImages box CSVs.

    wanted: names of images without suffix; of a CSV only theirs are kept, of all images for None. Several
    files are one index, as for a set that holds images of COCO and of OpenImages. Raises UserError.
    """
    parts = [_stamped(path, wanted if path.suffix == ".csv" else None) for path in paths]
    if len(parts) == 1:
        return parts[0]
    by_image: dict[int | str, Annotated] = {}
    by_base: dict[str, list[Annotated]] = {}
    for part in parts:
        by_image |= part.by_image
        for base, group in part.by_base.items():
            by_base.setdefault(base, []).extend(group)
    names = ", ".join(path.name for path in paths)
    return InstanceIndex(Path(names), by_image, by_base, frozenset().union(*(p.without_area for p in parts)))


def _stamped(path: Path, wanted: frozenset[str] | None) -> InstanceIndex:
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(
            f"{path} is not there ({error.strerror}); set data.instances to the instance annotations"
        ) from error
    return _load(path, status.st_mtime_ns, status.st_size, wanted)


@lru_cache(maxsize=4)  # a hundred megabytes of JSON, asked for again with each iteration
def _load(path: Path, _time: int, _length: int, wanted: frozenset[str] | None) -> InstanceIndex:
    if path.suffix == ".csv":
        return _indexed(path, _openimages(path, wanted), frozenset())
    content = read_json(path)
    try:
        if isinstance(content, dict) and "annotations" in content:
            images, without_area = _coco(content)
        else:
            images, without_area = _scene_graphs(content), frozenset[int]()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(
            f"{path} holds no instance annotations (COCO: images, annotations, categories; or GQA scene "
            f"graphs): {type(error).__name__} {error}"
        ) from error
    return _indexed(path, images, without_area)


def _openimages(path: Path, wanted: frozenset[str] | None) -> dict[int | str, Annotated]:
    """Images are <id>.jpg; an annotation has no id of its own, so it has its place in the file."""
    grouped: dict[str, list[Instance]] = {}
    for number, (image, category, box, group) in enumerate(openimages.rows(path, wanted)):
        grouped.setdefault(image, []).append(Instance(number, Candidate(box, category), group))
    return {
        image: Annotated(f"{image}.jpg", None, tuple(found), fractions=True)
        for image, found in grouped.items()
    }


def _indexed(path: Path, images: dict[int | str, Annotated], without_area: frozenset[int]) -> InstanceIndex:
    by_base: dict[str, list[Annotated]] = {}
    for image in images.values():
        by_base.setdefault(last(full_name(image.name)), []).append(image)
    return InstanceIndex(path, images, by_base, without_area)


def _coco(content: Mapping[str, Any]) -> tuple[dict[int | str, Annotated], frozenset[int]]:
    names = {category["id"]: category["name"] for category in content["categories"]}
    grouped: dict[int | str, list[Instance]] = {}
    without_area = set()
    for annotation in content["annotations"]:
        box = _box(annotation["bbox"])
        if box is None:  # reported by the row that refers to it, if one does
            without_area.add(annotation["id"])
            continue
        candidate = Candidate(box, names.get(annotation["category_id"]))
        grouped.setdefault(annotation["image_id"], []).append(
            Instance(annotation["id"], candidate, bool(annotation.get("iscrowd", 0)))
        )
    images = {
        image["id"]: Annotated(
            image["file_name"],
            size_of(image.get("width"), image.get("height")),
            tuple(grouped.get(image["id"], ())),
        )
        for image in content["images"]
    }
    return images, frozenset(without_area)


def _scene_graphs(content: Mapping[str, Any]) -> dict[int | str, Annotated]:
    """GQA: image id → {width, height, objects: id → {name, x, y, w, h}}; images are <id>.jpg."""
    images: dict[int | str, Annotated] = {}
    for image_id, graph in content.items():
        instances = []
        for object_id, thing in graph["objects"].items():
            box = _box([thing["x"], thing["y"], thing["w"], thing["h"]])
            if box is not None:
                instances.append(Instance(int(object_id), Candidate(box, thing["name"])))
        size = size_of(graph.get("width"), graph.get("height"))
        images[image_id] = Annotated(f"{image_id}.jpg", size, tuple(instances))
    return images


def _box(xywh: Sequence[object]) -> Box | None:
    quad = numbers(xywh)
    if quad is None:
        raise ValueError(f"bbox {xywh!r} is not x, y, width, height")
    try:
        return Box.from_xywh(*quad)
    except ValueError:
        return None
