"""Training scenes in bulk: pictures at the model's resolution and many expressions for each.

Scenes come from the same generator as data=shapes, from seeds that it never uses ("train" is part of
the generator's key), so no training scene can be an evaluation scene.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import qwen_architecture
from ordinary import ordinary
from PIL import Image

from refadv_ablate import seeding
from refadv_ablate.data.shapes.drawing import render
from refadv_ablate.data.shapes.language import KINDS, Denotation, Relation, meanings
from refadv_ablate.data.shapes.scene import COLOURS, FILLS, SHAPES, SIZES, Scene, draw_scene
from refadv_ablate.data.shapes.wording import say
from refadv_ablate.types import Resize

QUOTA = {"attribute": 5, "relation": 9, "ordinal": 5, "negation": 6}
"""At most so many expressions of a kind on one training scene."""


def expressions(rng: random.Random, scene: Scene) -> list[list[Any]]:
    """[text, target, landmark or −1, kind] for a sample of what can be said about a scene."""
    denotation = Denotation(scene)
    rows = []
    for kind in KINDS:
        found = list(meanings(scene, kind, denotation))
        rng.shuffle(found)
        # half by chance, half with words whose order matters: those are what bag-of-words is about
        half = QUOTA[kind] // 2
        found[half:] = sorted(found[half:], key=lambda pair: not denotation.order_sensitive(*pair))
        for meaning, target in found[: QUOTA[kind]]:
            modifier = meaning.modifier
            mark = denotation.phrase(modifier.landmark)[0] if isinstance(modifier, Relation) else -1
            rows.append([say(meaning, rng)[0], target, mark, KINDS.index(kind)])
    return rows


def describe(scene: Scene) -> list[list[float]]:
    """Per object: shape, colour, size, fill as indices, then x1 y1 x2 y2 as fractions of the image."""
    width, height = scene.size
    return [
        [
            SHAPES.index(item.shape), COLOURS.index(item.colour),
            SIZES.index(item.size), FILLS.index(item.fill),
            item.box.x1 / width, item.box.y1 / height, item.box.x2 / width, item.box.y2 / height,
        ]
        for item in scene.items
    ]  # fmt: skip


def chunk(
    seed: int, number: int, count: int, side: int, resize: Resize | None = None
) -> tuple[np.ndarray, list[Any]]:
    """Pictures (count, side, side, 3) uint8 and their descriptions.

    Pictures are stretched to the square, or resized by the rule and put in its top left corner.
    """
    pictures, rows = np.zeros((count, side, side, 3), np.uint8), []
    for k in range(count):
        rng = seeding.generator(seed, "train", number, k)
        while True:
            scene = draw_scene(rng, 420)
            said = expressions(rng, scene)
            if len(said) >= 6:
                break
        size = resize(scene.size) if resize else (side, side)
        picture = render(scene).resize(size, Image.Resampling.BICUBIC)
        pictures[k, : size[1], : size[0]] = np.asarray(picture)
        items = describe(scene)
        also = ordinary(seeding.generator(seed, "ordinary", number, k), items, said)
        rows.append({"items": items, "said": said, "also": also, "size": size})
    return pictures, rows


def main() -> None:
    """Writes chunks until there are enough; chunks that are there already are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="default: build/tiny_scenes or build/tiny_scenes_qwen")
    parser.add_argument("--qwen", action="store_true", help="pictures as Qwen2.5-VL's processor sees them")
    parser.add_argument("--scenes", type=int, default=29_000)
    parser.add_argument("--chunk", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--side", type=int, default=128)
    args = parser.parse_args()
    out = args.out or Path("build/tiny_scenes_qwen" if args.qwen else "build/tiny_scenes")
    side, resize = (qwen_architecture.ROOM, qwen_architecture.RESIZE) if args.qwen else (args.side, None)
    out.mkdir(parents=True, exist_ok=True)
    for number in range(-(-args.scenes // args.chunk)):
        path = out / f"scenes-{args.seed}-{number:03d}"
        if path.with_suffix(".json").exists():
            continue
        pictures, rows = chunk(args.seed, number, args.chunk, side, resize)
        np.save(path.with_suffix(".npy"), pictures)
        path.with_suffix(".json").write_text(json.dumps(rows))
        print(path, flush=True)


if __name__ == "__main__":
    main()
