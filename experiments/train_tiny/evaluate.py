"""Measures a checkpoint on held-out scenes, through the harness's own path, and writes its card's numbers.

    python experiments/train_tiny/evaluate.py --model tiny_internvl3 --n 1000

Three conditions on the same examples: the expression, its words in a random order, and "the one".
Intervals are Wilson's, which ignore that some images carry several expressions; Δ's is clustered.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from perturbations import BagOfWords, Fixed
from refadv_ablate import seeding
from refadv_ablate.boxes import Box, iou
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.models.transformers import Transformers
from refadv_ablate.parsing.dialects import read
from refadv_ablate.prompting import prompts
from refadv_ablate.types import ORIGINAL, Example, ModelSpec, Perturbed, Seen

HELD_OUT_SEED = 20_261_130
"""Not used in training (whose generators are keyed by "train"), nor in any other measurement."""


def spec_of(model: str, checkpoint: Path) -> ModelSpec:
    """conf/model/<model>.yaml with another checkpoint."""
    from refadv_ablate.assets import build, compose

    return build(compose([f"model={model}", f"model.checkpoint={checkpoint}"]).model)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """95% interval of a share."""
    z = 1.959964
    center = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * (hits * (n - hits) / n + z * z / 4) ** 0.5
    return center - half, center + half


def clustered(differences: np.ndarray, images: list[str]) -> tuple[float, float]:
    """95% interval of a mean difference, images as clusters (normal quantile: hundreds of images)."""
    sums: dict[str, float] = defaultdict(float)
    for image, value in zip(images, differences - differences.mean(), strict=True):
        sums[image] += value
    count = len(sums)
    error = (count / (count - 1) * sum(v * v for v in sums.values())) ** 0.5 / len(differences)
    return float(differences.mean() - 1.96 * error), float(differences.mean() + 1.96 * error)


def perturbed(examples: list[Example], condition: str) -> list[Perturbed]:
    """One condition of all examples."""
    if condition == ORIGINAL:
        return [Perturbed(example, example, "unchanged") for example in examples]
    operator = {"bow": BagOfWords(), "fixed": Fixed()}[condition]
    return [operator.perturb(e, seeding.generator(0, e.id, condition, 0)) for e in examples]


def ask(engine: Transformers, spec: ModelSpec, items: list[Perturbed], condition: str) -> dict[str, float]:
    """IoU by example id, −1 for an answer without a box."""
    requests = [prompts.build(spec, "direct", item, condition, 0) for item in items]
    found = {}
    for request, reply in engine.answer(requests):
        example = request.perturbed.original
        size = example.image.size()
        answer = read(reply, spec.dialect, spec.frame, Seen(size, size, reply.processed)).answer
        found[example.id] = iou(answer, example.target) if isinstance(answer, Box) else -1.0
    return found


def measure(model: str, checkpoint: Path, n: int, seed: int) -> dict[str, Any]:
    """All numbers of the card."""
    spec = spec_of(model, checkpoint)
    engine = Transformers(spec=spec)
    examples = list(Shapes(n=n, seed=seed))
    hits, mean, no_box = {}, {}, {}
    for condition in (ORIGINAL, "bow", "fixed"):
        found = ask(engine, spec, perturbed(examples, condition), condition)
        values = np.array([found[example.id] for example in examples])
        hits[condition], mean[condition] = values >= 0.5, float(values.clip(min=0).mean())
        no_box[condition] = float((values < 0).mean())
    groups = {"all": np.ones(n, bool)}
    for name in ("attribute", "relation", "ordinal", "negation"):
        groups[name] = np.array([example.attributes["kind"] == name for example in examples])
    images = [example.image.key for example in examples]
    table = {
        condition: {
            name: {
                "n": int(group.sum()),
                "acc50": float(right[group].mean()),
                "interval": wilson(int(right[group].sum()), int(group.sum())),
            }
            for name, group in groups.items()
        }
        for condition, right in hits.items()
    }
    deltas = {}
    for condition in ("bow", "fixed"):
        differences = hits[condition].astype(float) - hits[ORIGINAL]
        deltas[condition] = {"delta": float(differences.mean()), "interval": clustered(differences, images)}
    chance = float(np.mean([1 / (1 + (example.distractors or 0)) for example in examples]))
    anything = float(np.mean([1 / len(example.candidates) for example in examples]))
    return {
        "seed": seed, "n": n, "images": len(set(images)), "acc50": table, "delta": deltas, "mean_iou": mean,
        "no_box": no_box,
        "chance_same_category": chance, "chance_any_object": anything,
    }  # fmt: skip


def main() -> None:
    """Writes `evaluation.json` beside the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tiny_internvl3")
    parser.add_argument("--checkpoint", type=Path, help="default: build/<model>")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=HELD_OUT_SEED)
    args = parser.parse_args()
    checkpoint = args.checkpoint or Path("build") / args.model
    found = measure(args.model, checkpoint, args.n, args.seed)
    (checkpoint / "evaluation.json").write_text(json.dumps(found, indent=1))
    for condition, rows in found["acc50"].items():
        print(condition, {name: f"{row['acc50']:.3f} (n {row['n']})" for name, row in rows.items()})
    print(found["delta"], found["mean_iou"])


if __name__ == "__main__":
    main()
