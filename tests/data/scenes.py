"""A few drawn photographs' stand-ins, and writers that store them in every published form."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf
from PIL import Image, ImageDraw

from refadv_ablate import assets
from refadv_ablate.data.loading import Annotations

SIZES = {1: (64, 48), 2: (40, 90), 3: (80, 80)}
CATEGORIES = {1: "person", 2: "cat"}
# (annotation id, image id, category id, x, y, width, height, iscrowd)
ANNOTATIONS = [
    (11, 1, 1, 4, 6, 20, 30, 0),
    (12, 1, 1, 30, 8, 15, 25, 0),
    (13, 1, 2, 46, 20, 16, 20, 0),
    (14, 1, 1, 0, 0, 64, 10, 1),
    (21, 2, 2, 5, 40, 30, 45, 0),
    (22, 2, 2, 8.25, 2.5, 25.5, 30.75, 0),
    (31, 3, 1, 10, 10, 60, 20, 0),
]
# (ref id, annotation id, split, sentences)
REFS = [
    (1, 11, "val", ["the person on the left", "left one, “big”"]),
    (2, 12, "val", ["person between the cat and the other person"]),
    (3, 22, "val", ["cat that isn't below"]),
    (4, 31, "testA", ["lone person"]),
]


def name_of(image_id: int) -> str:
    return f"COCO_train2014_{image_id:012d}.jpg"


@dataclass
class Scenes:
    """Drawn images in a folder, and the set's records."""

    folder: Path
    refs: list[tuple[int, int, str, list[str]]] = field(default_factory=lambda: list(REFS))

    @property
    def images(self) -> Path:
        return self.folder / "coco"

    def draw(self) -> Scenes:
        self.images.mkdir(parents=True)
        for image_id, size in SIZES.items():
            image = Image.new("RGB", size, (20 * image_id, 120, 90))
            for _, owner, category, x, y, w, h, _crowd in ANNOTATIONS:
                if owner == image_id:
                    colour = "red" if category == 1 else "blue"
                    ImageDraw.Draw(image).rectangle([x, y, x + w - 1, y + h - 1], outline=colour)
            image.save(self.images / name_of(image_id), quality=95)
        return self

    def rows(self, split: str) -> list[tuple[int, str, str, list[float], tuple[int, int]]]:
        """(annotation id, image, expression, xywh, size), one per sentence."""
        boxes = {a[0]: (a[1], [*a[3:7]]) for a in ANNOTATIONS}
        return [
            (ann, name_of(boxes[ann][0]), sentence, list(boxes[ann][1]), SIZES[boxes[ann][0]])
            for _, ann, where, sentences in self.refs
            if where == split
            for sentence in sentences
        ]

    def instances(self) -> dict[str, Any]:
        return {
            "images": [
                {"id": i, "file_name": name_of(i), "width": w, "height": h} for i, (w, h) in SIZES.items()
            ],
            "annotations": [
                {"id": a, "image_id": i, "category_id": c, "bbox": [x, y, w, h], "iscrowd": crowd}
                for a, i, c, x, y, w, h, crowd in ANNOTATIONS
            ],
            "categories": [{"id": i, "name": name} for i, name in CATEGORIES.items()],
        }

    def unc_refs(self) -> list[dict[str, Any]]:
        of = {a[0]: (a[1], a[2]) for a in ANNOTATIONS}
        return [
            {
                "ref_id": ref,
                "ann_id": ann,
                "category_id": of[ann][1],
                "image_id": of[ann][0],
                "file_name": name_of(of[ann][0]).replace(".jpg", f"_{ref}.jpg"),
                "split": split,
                "sentences": [
                    {"sent": text, "raw": text.upper(), "tokens": text.split(), "sent_id": 100 * ref + n}
                    for n, text in enumerate(sentences)
                ],
                "sent_ids": [100 * ref + n for n in range(len(sentences))],
            }
            for ref, ann, split, sentences in self.refs
        ]

    # ── one writer per form: the folder that data.path names ───────────────────────────────────

    def unc(self, split_by: str = "unc") -> Path:
        folder = self._made("unc")
        (folder / f"refs({split_by}).p").write_bytes(pickle.dumps(self.unc_refs(), protocol=0))
        write_json(folder / "instances.json", self.instances())
        return folder

    def mdetr(self, split: str = "val") -> Path:
        folder = self._made("mdetr")
        of = {a[0]: a[2] for a in ANNOTATIONS}
        rows = self.rows(split)
        content = {
            "info": {},
            "images": [
                {
                    "file_name": image,
                    "width": w,
                    "height": h,
                    "id": n,
                    "caption": text,
                    "dataset_name": "refcoco",
                }
                for n, (_, image, text, _, (w, h)) in enumerate(rows)
            ],
            "annotations": [
                {
                    "id": n,
                    "image_id": n,
                    "bbox": box,
                    "category_id": of[ann],
                    "original_id": ann,
                    "iscrowd": 0,
                }
                for n, (ann, _, _, box, _) in enumerate(rows)
            ],
            "categories": self.instances()["categories"],
        }
        write_json(folder / f"finetune_refcoco_{split}.json", content)
        return folder

    def qwen(self, split: str = "val") -> Path:
        rows = [
            {"image": f"data/coco/train2014/{i}", "sent": t, "bbox": xyxy(b), "width": s[0], "height": s[1]}
            for _, i, t, b, s in self.rows(split)
        ]
        return write_lines(self._made("qwen") / f"refcoco_{split}.jsonl", rows)

    def shikra(self, split: str = "val") -> Path:
        rows = [
            {
                "img_path": i,
                "expression": t,
                "bbox": xyxy(b),
                "dataset_name": "refcoco",
                "width": s[0],
                "height": s[1],
            }
            for _, i, t, b, s in self.rows(split)
        ]
        return write_lines(self._made("shikra") / f"REC_refcoco_unc_{split}.jsonl", rows)

    def vlm_r1(self, split: str = "val") -> Path:
        rows = [
            {"image": f"train2014/{i}", "problem": "…", "normal_caption": t, "solution": xyxy(b)}
            for _, i, t, b, _ in self.rows(split)
        ]
        folder = self._made("vlm_r1")
        write_json(folder / f"refcoco_{split}.json", rows)
        return folder

    def lmms_rows(self, split: str = "val") -> list[dict[str, Any]]:
        boxes = {a[0]: (a[1], [float(v) for v in a[3:7]]) for a in ANNOTATIONS}
        return [
            {
                "question_id": str(ref),
                "image": {"bytes": (self.images / name_of(boxes[ann][0])).read_bytes(), "path": None},
                "question": "Describe the area.",
                "answer": sentences,
                "bbox": boxes[ann][1],
                "iscrowd": 0,
                "file_name": name_of(boxes[ann][0]).replace(".jpg", f"_{ref}.jpg"),
            }
            for ref, ann, where, sentences in self.refs
            if where == split
        ]

    def parquet(self, split: str) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = self._made("parquet")
        (folder / "data").mkdir(exist_ok=True)
        table = pa.Table.from_pylist(self.lmms_rows(split))
        pq.write_table(table, folder / "data" / f"{split}-00000-of-00001.parquet")
        return folder

    def own(self) -> Path:
        rows = [{"image": i, "expression": t, "box": xyxy(b)} for _, i, t, b, _ in self.rows("val")]
        write_lines(self._made("own") / "mine.jsonl", rows)
        return self.folder / "own" / "mine.jsonl"

    def _made(self, name: str) -> Path:
        (self.folder / name).mkdir(exist_ok=True)
        return self.folder / name


def xyxy(box: list[float]) -> list[float]:
    x, y, w, h = box
    return [x, y, x + w, y + h]


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path.parent


@cache
def composed(name: str) -> DictConfig:
    assets.register()
    with initialize_config_dir(str(assets.asset_dir("conf")), version_base="1.3"):
        return compose(f"data/{name}")


def load(name: str, *overrides: str, **values: object) -> Annotations:
    """The set that conf/data/<name>.yaml describes, with overrides as a user would write them."""
    words = [*overrides, *(f"data.{key}={value}" for key, value in values.items())]
    config = OmegaConf.merge(composed(name), OmegaConf.from_dotlist(words))
    data = assets.build(config.data, "data")
    assert isinstance(data, Annotations)
    return data
