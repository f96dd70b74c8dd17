"""Candidate boxes for Set-of-Marks from outside the data: a JSON file, or a segmenter's masks."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.errors import ModelUnavailable, UserError
from refadv_ablate.parsing.dialects import PlainBoxes
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.prompting.som import reading_order
from refadv_ablate.seeding import digest
from refadv_ablate.types import Example, Json, ModelSpec


@dataclass(frozen=True, slots=True)
class FileCandidates:
    """Boxes from a JSON object: example id, or image key → [[x1, y1, x2, y2], …], original pixels."""

    path: str

    def boxes(self, example: Example) -> tuple[Box, ...]:
        """Raises UserError for an example that the file lacks and for a box that is none."""
        table = _table(self.path, _stamp(self.path))
        rows = table.get(example.id, table.get(example.image.key))
        if rows is None:
            raise UserError(
                f"{self.path} has no boxes for example {example.id} nor for image {example.image.key};"
                " add them"
            )
        try:
            return reading_order([Box(*map(float, row)) for row in rows])
        except (TypeError, ValueError) as error:
            raise UserError(
                f"{self.path}: the boxes of {example.id} are not [x1, y1, x2, y2] in pixels ({error})"
            ) from error

    def identity(self) -> Mapping[str, Json]:
        """By content, not by path."""
        return {"source": "file", "sha256": hashlib.sha256(_bytes(self.path)).hexdigest()}


def _bytes(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise UserError(
            f"the candidate file {path} can't be read ({error.strerror}); set prompt.candidates.path"
        ) from error


def _stamp(path: str) -> tuple[int, int]:
    """Time and length: a file that changed is read again."""
    try:
        status = Path(path).expanduser().stat()
    except OSError:
        return 0, 0  # reading it says why
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _table(path: str, _when: tuple[int, int]) -> dict[str, Any]:
    content = _bytes(path)
    try:
        table = json.loads(content)
    except ValueError as error:
        raise UserError(f"{path} is not JSON ({error}); write an object of id → boxes") from error
    if not isinstance(table, dict):
        raise UserError(f"{path} holds a {type(table).__name__}, not an object of example id → boxes")
    return table


@dataclass(frozen=True, slots=True)
class SamCandidates:
    """Boxes around the automatic masks of SAM or SAM 2 (Kirillov et al. 2023, Ravi et al. 2024).

    min_area, max_area: of a mask's box, as shares of the image. overlap: box IoU above which only the
    mask with the better predicted IoU stays. most: boxes per image, the largest. points_per_side: the
    grid of prompts. predicted_iou, stability: the authors' thresholds on a mask's quality. cache: folder
    where boxes are kept by image and settings.
    """

    checkpoint: str = "facebook/sam2.1-hiera-large"
    revision: str | None = None
    device: str | None = None
    points_per_side: int = 32
    points_per_batch: int = 64
    predicted_iou: float = 0.88
    stability: float = 0.95
    min_area: float = 0.001
    max_area: float = 0.9
    overlap: float = 0.7
    most: int = 64
    cache: str | None = None

    def identity(self) -> Mapping[str, Json]:
        """What determines the masks; not where they are computed or kept."""
        settings = asdict(self)
        for unimportant in ("device", "cache", "points_per_batch"):
            del settings[unimportant]
        return {"source": "sam", **settings}

    def lacks(self) -> Iterator[tuple[str, str, bool]]:
        """For a dry run: the segmenter's weights, why, and whether a run can't start so."""
        from refadv_ablate.models.checkpoint import lacking

        return lacking(_spec(self.checkpoint, self.revision))

    def boxes(self, example: Example) -> tuple[Box, ...]:
        """Computed once per image. Raises ModelUnavailable where the weights can't be had."""
        key = digest(self.identity(), example.image.digest())
        path = Path(self.cache).expanduser() / f"{key}.json" if self.cache else None
        if path is not None and path.is_file():
            return tuple(Box(*row) for row in json.loads(path.read_text(encoding="utf-8")))
        if key not in _RECENT:
            if len(_RECENT) >= 4096:
                _RECENT.clear()
            _RECENT[key] = self.segment(example)
        if path is not None:
            _keep(path, [box.as_list() for box in _RECENT[key]])
        return _RECENT[key]

    def segment(self, example: Example) -> tuple[Box, ...]:
        """Runs the segmenter on the example's image."""
        image = example.image.load()
        generator = _segmenter(self.checkpoint, self.revision, self.device)
        found = generator(
            image,
            points_per_batch=self.points_per_batch,
            points_per_crop=self.points_per_side,
            pred_iou_thresh=self.predicted_iou,
            stability_score_thresh=self.stability,
        )
        scored = zip(found["masks"], found["scores"], strict=True)
        boxes = [(float(score), box) for mask, score in scored if (box := mask_box(np.asarray(mask)))]
        return self.chosen(boxes, image.size)

    def chosen(self, boxes: Iterable[tuple[float, Box]], size: Size) -> tuple[Box, ...]:
        """The boxes that are marked, out of all with their scores."""
        area = size[0] * size[1]
        fitting = [(s, b) for s, b in boxes if self.min_area <= b.area / area <= self.max_area]
        kept: list[Box] = []
        for _, box in sorted(fitting, key=lambda pair: (-pair[0], pair[1].as_list())):
            if all(iou(box, other) <= self.overlap for other in kept):
                kept.append(box)
        largest = sorted(kept, key=lambda box: -box.area)[: self.most]
        return reading_order(largest)


_RECENT: dict[str, tuple[Box, ...]] = {}
"""Boxes of this process by image and settings: a run asks for an image's boxes several times."""


def mask_box(mask: np.ndarray) -> Box | None:
    """The tight box of a boolean (height, width) mask, None for an empty one."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return Box(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


def _keep(path: Path, rows: list[list[float]]) -> None:
    """Whole or not at all, also where two processes write the same image's boxes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, delete=False, suffix=".part", encoding="utf-8"
    ) as file:
        json.dump(rows, file)
    Path(file.name).replace(path)


def _spec(checkpoint: str, revision: str | None) -> ModelSpec:
    return ModelSpec("the segmenter", checkpoint, PlainBoxes(), OriginalPixels(), {}, revision=revision)


@lru_cache(maxsize=1)
def _segmenter(checkpoint: str, revision: str | None, device: str | None) -> Any:
    from refadv_ablate.models.checkpoint import REMEDY, explain, locate

    spec = _spec(checkpoint, revision)
    try:
        where = locate(spec)
        import torch
        from transformers import pipeline

        chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            return pipeline("mask-generation", model=where, revision=revision, device=chosen)
        except (OSError, ValueError, KeyError) as error:
            raise explain(spec, error) from error
    except ModelUnavailable as error:
        remedy = "set prompt.candidates.checkpoint to a local folder, or use prompt=som_file"
        raise ModelUnavailable(str(error).replace(REMEDY, remedy)) from error
