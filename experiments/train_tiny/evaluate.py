"""Measures a checkpoint on held-out scenes, through the harness's own path, and writes its card's numbers.

    python experiments/train_tiny/evaluate.py --model tiny_internvl3 --n 1000

The same examples under every operator that needs neither a model nor a file: hits and malformed answers,
by kind of expression. Intervals of shares are Wilson's, which ignore that some images carry several
expressions; Δ's is clustered by image, and taken over the examples that the operator could perturb.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from refadv_ablate import seeding
from refadv_ablate.boxes import Box, iou
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.models.transformers import Transformers
from refadv_ablate.parsing.dialects import read
from refadv_ablate.prompting import prompts
from refadv_ablate.types import ORIGINAL, Example, ModelSpec, NeedsData, Parted, Perturbed, Seen

OPERATORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("bow", "fixed", "category", "descriptor_deletion", "typos", "capitals", "mirror", "blank"), ()
    ),
    "blank, noise": ("perturb.blank.ink=noise",),
    **dict.fromkeys(("wrong_image", "occlude", "erase_distractors"), ()),
    "image, severity 3": ("perturb.image.severities=[3]",),
}
"""Conditions, the operator's name first, and what is set besides."""
FEW = {"wrong_image": 300, "occlude": 300, "erase_distractors": 300, "image, severity 3": 300}
"""Conditions that only the first so many examples are measured in."""
KINDS = ("attribute", "relation", "ordinal", "negation")
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
    return max(0.0, center - half), min(1.0, center + half)


def clustered(differences: np.ndarray, images: list[str]) -> tuple[float, float]:
    """95% interval of a mean difference, images as clusters (normal quantile: hundreds of images)."""
    sums: dict[str, float] = defaultdict(float)
    for image, value in zip(images, differences - differences.mean(), strict=True):
        sums[image] += value
    count = len(sums)
    error = (count / (count - 1) * sum(v * v for v in sums.values())) ** 0.5 / len(differences)
    return float(differences.mean() - 1.96 * error), float(differences.mean() + 1.96 * error)


def perturbed(data: Shapes, condition: str) -> tuple[list[Perturbed], prompts.Style]:
    """All questions of a condition, operators as conf/perturb sets them, and how they are asked."""
    from refadv_ablate.assets import build, compose

    examples = list(data)[: FEW.get(condition)]
    if condition == ORIGINAL:
        return [Perturbed(example, example, "unchanged") for example in examples], prompts.Style("direct")
    name = condition.split(",")[0]
    operator = build(compose([f"perturb={name}", *OPERATORS[condition]]).perturb[name])
    if isinstance(operator, NeedsData):
        operator = operator.with_data(data)
    items = [(e, seeding.generator(0, e.id, condition, 0)) for e in examples]
    if isinstance(operator, Parted):
        made = [one for parts in operator.perturb_parts(items) for one in parts]
    else:
        made = [operator.perturb(*item) for item in items]
    style = replace(prompts.Style("direct"), or_none=getattr(operator, "or_none", False))
    return [one for one in made if one.status != "not_perturbable" and not one.placebo], style


Answers = list[tuple[Example, float]]
"""Original examples and the IoU of the answers, −1 for one without a box."""


def ask(
    engine: Transformers, spec: ModelSpec, items: list[Perturbed], style: prompts.Style, condition: str
) -> Answers:
    """Asks them all."""
    found = []
    for request, reply in engine.answer(prompts.build(spec, style, item, condition, 0) for item in items):
        example = request.perturbed.example
        size = example.image.size()
        answer = read(reply, spec.dialect, spec.frame, Seen(size, size, reply.processed)).answer
        value = iou(answer, example.target) if isinstance(answer, Box) else -1.0
        found.append((request.perturbed.original, value))
    return found


def counted(right: np.ndarray) -> dict[str, Any]:
    """n, share and 95% interval."""
    return {
        "n": len(right),
        "acc50": float(right.mean()) if len(right) else None,
        "interval": wilson(int(right.sum()), len(right)) if len(right) else None,
    }


def by_kind(examples: list[Example], values: np.ndarray) -> dict[str, Any]:
    """Hits of all examples and of each kind."""
    kinds = np.array([example.attributes["kind"] for example in examples])
    return {
        "all": counted(values >= 0.5),
        **{kind: counted(values[kinds == kind] >= 0.5) for kind in KINDS},
    }


def measure(model: str, checkpoint: Path, n: int, seed: int) -> dict[str, Any]:
    """All numbers of the card."""
    spec = spec_of(model, checkpoint)
    engine = Transformers(spec=spec)
    data = Shapes(n=n, seed=seed)
    examples = list(data)
    table, mean, no_box, deltas = {}, {}, {}, {}
    original: dict[str, float] = {}
    for condition in (ORIGINAL, *OPERATORS):
        found = ask(engine, spec, *perturbed(data, condition), condition)
        original = original or {example.id: value for example, value in found}
        asked, values = [example for example, _ in found], np.array([value for _, value in found])
        table[condition] = by_kind(asked, values)
        mean[condition] = float(values.clip(min=0).mean())
        no_box[condition] = {"count": int((values < 0).sum()), **malformed(values)}
        if condition != ORIGINAL:
            deltas[condition] = change(asked, values, original)
        print(condition, table[condition]["all"], no_box[condition], flush=True)
    chance = float(np.mean([1 / (1 + (example.distractors or 0)) for example in examples]))
    anything = float(np.mean([1 / len(example.candidates) for example in examples]))
    return {
        "seed": seed, "n": n, "images": len({example.image.key for example in examples}), "acc50": table,
        "delta": deltas, "mean_iou": mean, "no_box": no_box,
        "chance_same_category": chance, "chance_any_object": anything,
    }  # fmt: skip


def change(asked: list[Example], values: np.ndarray, original: dict[str, float]) -> dict[str, Any]:
    """Δ of Acc@0.5 against the original answers to the same examples."""
    before = np.array([original[example.id] for example in asked]) >= 0.5
    differences = (values >= 0.5).astype(float) - before
    interval = clustered(differences, [example.image.key for example in asked])
    return {"n": len(asked), "delta": float(differences.mean()), "interval": interval}


def malformed(values: np.ndarray) -> dict[str, Any]:
    """n, share and 95% interval of the answers without a box."""
    found = counted(values < 0)
    return {"n": found["n"], "share": found["acc50"], "interval": found["interval"]}


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


if __name__ == "__main__":
    main()
