"""prepare: images with several instances of one category become scenes with numbered candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from refadv_ablate.boxes import Box, iou
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.curate.sources import Instance, Picture, Source
from refadv_ablate.data.images import FileImage, below
from refadv_ablate.errors import ImageUnreadable, UserError
from refadv_ablate.prompting.som import reading_order
from refadv_ablate.running.sweep import slugify
from refadv_ablate.seeding import digest

SAME = 0.95
"""IoU from which two boxes of a category are one instance, annotated twice."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which images and categories become scenes.

    min_instances, max_instances: candidates of the category (the paper: at least 3; more than the
    maximum can't be numbered legibly). min_side: pixels; min_share: of the image's area; an instance
    below either is tiny. tiny and crowd: "skip" leaves the category of that image out, since nobody can
    say that an expression fits one instance alone; "ignore" goes on without the instance and counts it.
    categories: names; null takes all.
    """

    min_instances: int = 3
    max_instances: int = 12
    min_side: float = 16.0
    min_share: float = 0.0005
    tiny: Literal["skip", "ignore"] = "ignore"
    crowd: Literal["skip", "ignore"] = "skip"
    categories: tuple[str, ...] | None = None
    tags: bool = True
    """Whether to write the tagged images to out/tagged, to look at."""

    def __post_init__(self) -> None:
        if not 3 <= self.min_instances <= self.max_instances:
            raise UserError(
                f"prepare.min_instances={self.min_instances} and max_instances={self.max_instances} need "
                "3 ≤ min ≤ max: a similar pair, and at least one more to tell it from"
            )

    def scenes(self, picture: Picture, source: str, root: Path, drops: Counter[str]) -> Iterator[Scene]:
        """The scenes of one image; `drops` counts why categories were left out."""
        grouped: dict[str, list[Instance]] = {}
        for one in picture.instances:
            if self.categories is None or one.category in self.categories:
                grouped.setdefault(one.category, []).append(one)
        chosen = {}
        for category, found in grouped.items():
            boxes, left_out, why = self._candidates(found, picture)
            if why:
                drops[why] += 1
            else:
                chosen[category] = boxes, left_out
        if not chosen:
            return
        try:
            sha256 = FileImage(below(root, picture.name), picture.name).digest()
        except ImageUnreadable:
            drops["the image is not there or can't be read"] += 1
            return
        for category, (boxes, left_out) in chosen.items():
            key = f"{slugify(Path(picture.name).stem)[:60]}-{slugify(category)[:30]}"
            key += f"-{digest(sha256, category, [b.as_list() for b in boxes])[:6]}"
            yield Scene(key, str(root), picture.name, picture.size, category, boxes, source, sha256, left_out)

    def _candidates(self, found: list[Instance], picture: Picture) -> tuple[tuple[Box, ...], int, str]:
        boxes: list[Box] = []
        left_out = 0
        for one in found:
            box = _clipped(one.box, picture.size)
            tiny = box is None or self._tiny(box, picture)
            if one.crowd and self.crowd == "skip":
                return (), 0, "a crowd region of the category"
            if tiny and self.tiny == "skip":
                return (), 0, "a tiny instance of the category"
            if one.crowd or tiny or box is None:
                left_out += 1
            elif not any(iou(box, other) >= SAME for other in boxes):
                boxes.append(box)
        if len(boxes) < self.min_instances:
            return (), 0, f"fewer than {self.min_instances} instances"
        if len(boxes) > self.max_instances:
            return (), 0, f"more than {self.max_instances} instances"
        return reading_order(boxes), left_out, ""

    def _tiny(self, box: Box, picture: Picture) -> bool:
        share = box.area / (picture.size[0] * picture.size[1])
        return min(box.width, box.height) < self.min_side or share < self.min_share


def _clipped(box: Box, size: tuple[int, int]) -> Box | None:
    x1, y1 = max(0.0, box.x1), max(0.0, box.y1)
    x2, y2 = min(float(size[0]), box.x2), min(float(size[1]), box.y2)
    return Box(x1, y1, x2, y2) if x2 > x1 and y2 > y1 else None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the stage did."""

    pictures: int
    scenes: int
    new: int
    candidates: int
    drops: Counter[str]


def prepare(
    source: Source, selection: Selection, out: Path, limit: int | None, heard: Callable[[int], None]
) -> Prepared:
    """Appends the scenes that scenes.jsonl lacks; writes their tagged images to out/tagged."""
    ledger = Ledger(out / "scenes.jsonl")
    drops: Counter[str] = Counter()
    pictures = new = 0
    with ledger.writing():
        known = {row["scene"] for row in ledger}
        counted = {row["scene"]: len(row["boxes"]) for row in ledger}
        for picture in source.pictures(out):
            pictures += 1
            for scene in selection.scenes(picture, source.name, source.root(out), drops):
                if limit is not None and len(counted) >= limit and scene.id not in counted:
                    continue
                counted[scene.id] = len(scene.boxes)
                if scene.id not in known:
                    if selection.tags:
                        _write_tagged(scene, out)
                    ledger.append(scene.to_json())
                    new += 1
            heard(pictures)
            if limit is not None and len(counted) >= limit:
                break
    if pictures == 0:
        raise UserError(f"the source {source.name} has no images; check the source.* keys")
    return Prepared(pictures, len(counted), new, sum(counted.values()), drops)


def _write_tagged(scene: Scene, out: Path) -> None:
    folder = out / "tagged"
    folder.mkdir(parents=True, exist_ok=True)
    scene.marked().load().save(folder / f"{scene.id}.jpg", "JPEG", quality=90)
