"""Annotated instances of images: candidates, and distractors of the referent's category.

A distractor is another instance of the referent's category in the same image. Crowd regions
(iscrowd = 1) are neither candidates nor distractors: they are no single instance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.data.conventions import numbers
from refadv_ablate.data.forms.files import read_json
from refadv_ablate.data.forms.rows import size_of
from refadv_ablate.errors import UserError
from refadv_ablate.types import Candidate

SAME = 0.9
"""IoU from which an annotated instance is taken for the referent, where only boxes can be compared."""

_REF_SUFFIX = re.compile(r"^(COCO_\w+_\d{12})_\d+(\.\w+)$")


def image_key(name: str) -> str:
    """The last component of a path, without the reference number that UNC adds: COCO_…_000000000009.jpg."""
    base = PurePosixPath(name.replace("\\", "/")).name
    match = _REF_SUFFIX.match(base)
    return "".join(match.groups()) if match else base


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

    def distractors(self, target: Instance) -> int:
        """Other instances of the target's category, crowd regions excluded."""
        return sum(
            one.candidate.category == target.candidate.category
            for one in self.instances
            if one.id != target.id and not one.crowd
        )


@dataclass(frozen=True, slots=True)
class InstanceIndex:
    """Instances of a whole file, by image id and by image key."""

    path: Path
    by_image: Mapping[int | str, Annotated]
    by_key: Mapping[str, Annotated]
    without_area: frozenset[int] = frozenset()
    """Ids of annotations whose box has no area: no instance, but not unknown either."""


def load_instances(path: Path) -> InstanceIndex:
    """COCO-shaped instances (images, annotations, categories) or GQA scene graphs. Raises UserError."""
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(
            f"{path} is not there ({error.strerror}); set data.instances to the instance annotations"
        ) from error
    return _load(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=2)  # a hundred megabytes of JSON, asked for again with each iteration
def _load(path: Path, _time: int, _length: int) -> InstanceIndex:
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
    return InstanceIndex(
        path, images, {image_key(image.name): image for image in images.values()}, without_area
    )


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
