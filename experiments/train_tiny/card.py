"""Copies a trained checkpoint into the package and writes its model card from what was measured.

    python experiments/train_tiny/card.py --model tiny_internvl3

Needs the checkpoint's `evaluation.json` (evaluate.py) and `training.json` and `log.csv` (train.py).
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHIPPED = (
    "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    "processor_config.json", "chat_template.jinja", "evaluation.json", "training.json",
)  # fmt: skip
PACKAGE = Path(__file__).resolve().parents[2] / "refadv_ablate" / "checkpoints"
KINDS = ("all", "attribute", "relation", "ordinal", "negation")
GOAL, GOAL_KIND = 0.95, 0.75


ORDINARY = (
    "A share of the questions (`--ordinary`) are other things that people say: vague expressions such "
    'as "the shape" or "something red" (any object that fits is meant), other words ("the tiny violet '
    'disc"), objects by their place, and things that are not there ("the zebra": any object), some '
    "with a capital or a full stop. On a share of the pictures (`--plain`) there is nothing but plain "
    "colours or noise, and the whole picture is meant. No operator made any of the expressions: no "
    'shuffled words, no misspellings, no capitals throughout, nothing deleted; the word "one" is in '
    "none of them. The gray or noisy picture that `perturb=blank` shows is close to some of the plain "
    "ones. "
    "Vague expressions have the form that `category` and `descriptor_deletion` leave, "
    "which a real model has seen too."
)
"""What else was trained on, and what was not."""


@dataclass(frozen=True)
class Family:
    """What a card says that was not measured."""

    kind: str
    asked: str
    """How it is asked and answers."""
    script: str
    losses: str


FAMILIES = {
    "tiny_internvl3": Family(
        "An InternVL",
        "InternVL3's prompt, picture first; the answer is `[[x1, y1, x2, y2]]` in thousandths of the"
        " picture's sides, in steps of 10. Its tokenizer is its own: byte-level BPE, with one token for each"
        " coordinate and one for each fixed part of the prompt. Pictures are stretched to 128 × 128"
        ' pixels, 8 × 8 image tokens, never tiled. The sentence that allows the answer "none" is a token with'
        " the meaning of the prompt without it: the model always gives a box.",
        "train.py",
        "Beside the answer's tokens (soft targets over neighbouring coordinates, sharpened over the run) the"
        " losses say what lies in each image token (object, shape, colour, size, fill, edges) and where one"
        " attention head of two layers should look (the referent; below it the landmark). Those read-outs are"
        " not in the checkpoint.\n\n" + ORDINARY,
    ),
    "tiny_qwen2_5_vl": Family(
        "A Qwen2.5-VL",
        "The prompt of `model=qwen2_5_vl`, picture first; the answer is Qwen's fenced JSON with `bbox_2d` in"
        " absolute pixels of the resized picture, in steps of 2, and always the label `object`. Its tokenizer"
        " is its own: byte-level BPE, with one token for each coordinate and for the fixed parts of prompt"
        " and answer. Pictures are resized to at most 18,000 pixels, sides to multiples of 16: drawn ones to"
        " 128 × 128, 144 × 112 or 112 × 144, one image token for 16 × 16 pixels. What differs from the"
        " real ones in the configuration: patches of 16 that are not merged, all vision layers look at the"
        " whole picture, and M-RoPE's base and shares are such that rows and columns of so small a picture"
        " can be told apart. The sentence that allows an empty list is in a token with the meaning of the"
        " prompt without it: the model always gives a box.",
        "qwen_train.py",
        "Beside the answer's tokens (soft targets over neighbouring coordinates, sharpened over the run) the"
        " losses say what lies in each image token and how far its edges are from the token's middle (vision"
        " tower), where in the picture the token is (after the first decoder layer), where the object's edges"
        " are (after the second), and where one attention head of two layers should look (the referent; below"
        " it the landmark). Those read-outs are not in the checkpoint.\n\n" + ORDINARY,
    ),
}


LICENCE = (
    "## Licence\n\nApache-2.0, as the code: the weights were trained from scratch on scenes that the package "
    "draws, without weights, images or texts of others.\n"
)


def card(name: str, evaluation: dict[str, Any], training: dict[str, Any], size: int) -> str:
    """The model card; every measured number comes from the two files."""
    family = FAMILIES[name]
    lines = [
        f"# {name}",
        "",
        f"{family.kind} checkpoint of {training['parameters'] / 1e6:.1f}M parameters ({size / 1e6:.1f} MB,"
        " half precision) that grounds referring expressions on drawn shapes (`data=shapes`), so that the"
        " real transformers path runs in seconds without hub, key or GPU. It knows nothing else: on"
        " photographs its answers mean nothing.",
        "",
        "## How it is asked and answers",
        "",
        family.asked,
        "",
        "## Accuracy",
        "",
        *accuracy(evaluation),
        "",
        "## Training",
        "",
        *trained(family, training),
    ]
    return "\n".join(lines).rstrip("\n") + "\n\n" + LICENCE


def accuracy(evaluation: dict[str, Any]) -> list[str]:
    """What was measured, by kind of expression and under each operator."""
    table = evaluation["acc50"]
    return [
        f"Acc@0.5 in % with 95% Wilson intervals on {evaluation['n']} held-out expressions on"
        f" {evaluation['images']} pictures (`data.seed={evaluation['seed']}`, never trained on), through the"
        " harness's own path: as they are, with the words in a random order (`bow`), and all replaced by"
        ' "the one" (`fixed`).',
        "",
        "| expressions | n | original | bow | fixed |",
        "|---|---|---|---|---|",
        *(kind_row(table, kind) for kind in KINDS),
        "",
        "Under each operator, as `conf/perturb` sets it: n are the expressions that it could perturb, Δ is"
        " taken against the original answers to the same ones, with images as clusters. A malformed answer is"
        " one from which no box can be read; it counts as a miss. On a wrong or empty picture nothing can be"
        " right, and a hit is one by chance; `occlude` is without its placebos; `image` asks each expression"
        " six times, which its Wilson intervals ignore.",
        "",
        "| `perturb=` | n | Acc@0.5 | Δ in points | malformed |",
        "|---|---|---|---|---|",
        *(operator_row(evaluation, condition) for condition in table),
        "",
        f"- Chance: {100 * evaluation['chance_same_category']:.1f}% for one of the right category,"
        f" {100 * evaluation['chance_any_object']:.1f}% for any object.",
        "- A noun phrase alone says the same in any order, and still the model falls on shuffled *attribute*"
        " expressions: it never saw such text. Its bow Δ is lost information and unfamiliar text together;"
        " the symbolic `listener` shows the first alone.",
        f"- Mean IoU on the original expressions: {evaluation['mean_iou']['original']:.3f}.",
        f"- {goal(table['original'])}",
    ]


def kind_row(table: dict[str, Any], kind: str) -> str:
    """A kind of expression in three conditions."""
    cells = [share(table[condition][kind]) for condition in ("original", "bow", "fixed")]
    return f"| {kind} | {table['original'][kind]['n']} | {' | '.join(cells)} |"


def operator_row(evaluation: dict[str, Any], condition: str) -> str:
    """An operator's Acc@0.5, Δ and malformed answers."""
    hits, bad = evaluation["acc50"][condition]["all"], evaluation["no_box"][condition]
    told = ""
    if condition in evaluation["delta"]:
        delta = evaluation["delta"][condition]
        low, high = delta["interval"]
        told = f"{100 * delta['delta']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
    return f"| {condition} | {hits['n']} | {share(hits)} | {told} | {share(bad, 'share')} |"


def trained(family: Family, training: dict[str, Any]) -> list[str]:
    """How it came about."""
    first = training["stages"][0]["arguments"]
    return [
        f"`experiments/train_tiny/{family.script}`, {training['steps']:,} steps in"
        f" {training['minutes']:.0f} minutes on one thread of a two-core machine that others used too,"
        f" seed {first['seed']}, on {training['scenes']:,} drawn scenes with"
        f" {training['expressions']:,} expressions"
        " (`scenes.py`). `curve.png` shows the losses and the accuracy on held-out training scenes (true"
        " coordinates before each given).",
        "",
        family.losses,
        "",
        *stages(training["stages"]),
        training.get("note", ""),
    ]


def stages(rows: list[dict[str, Any]]) -> list[str]:
    """The arguments of the run, and of each time it was stopped and resumed with others."""
    if len(rows) == 1:
        lines = ["It was one run. Its arguments:"]
    else:
        steps = ", ".join(f"{row['from_step']:,}" for row in rows[1:])
        lines = [f"The run was stopped and resumed at step {steps}. Its arguments, stage by stage:"]
    for row in rows:
        arguments = " ".join(
            f"--{name.replace('_', '-')} {' '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in sorted(row["arguments"].items())
            if value is not None
        )
        lines += ["", f"    from step {row['from_step']:,}: {arguments}"]
    return [*lines, ""]


def share(row: dict[str, Any], what: str = "acc50") -> str:
    """78.1 (75.4–80.6)."""
    low, high = row["interval"]
    return f"{100 * row[what]:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def goal(rows: dict[str, Any]) -> str:
    """Whether the goal was reached, and where not."""
    missed = [k for k in KINDS if rows[k]["acc50"] < (GOAL if k == "all" else GOAL_KIND)]
    text = f"The goal was {GOAL:.0%} overall and {GOAL_KIND:.0%} of each kind: "
    return text + (f"missed on {', '.join(missed)}." if missed else "reached.")


def curve(log: Path, out: Path) -> None:
    """Loss of the answer and held-out accuracy over steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name in ("answer", "target", "landmark", "named"):
        points = [(int(r["step"]), float(r[name])) for r in rows if r[name]]
        if points:
            left.plot(*zip(*points, strict=True), label=name)
    left.set(xlabel="step", ylabel="loss (nats)")
    if left.lines:
        left.legend(frameon=False)
    for name in ("acc50", *KINDS[1:]):
        points = [(int(r["step"]), 100 * float(r[name])) for r in rows if r[name]]
        if points:
            right.plot(*zip(*points, strict=True), label=name, linewidth=2.5 if name == "acc50" else 1)
    right.set(xlabel="step", ylabel="held-out Acc@0.5 (%)", ylim=(0, 100))
    if right.lines:
        right.legend(frameon=False)
    figure.savefig(out, dpi=110)
    plt.close(figure)


def main() -> None:
    """Checkpoint → package."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=sorted(FAMILIES), default="tiny_internvl3")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        help="default: build/<model>; the package's own folder for a new card alone",
    )
    args = parser.parse_args()
    checkpoint, folder = args.checkpoint or Path("build") / args.model, PACKAGE / args.model
    folder.mkdir(parents=True, exist_ok=True)
    if checkpoint.resolve() != folder.resolve():
        for name in SHIPPED:
            shutil.copyfile(checkpoint / name, folder / name)
        curve(checkpoint / "log.csv", folder / "curve.png")
    evaluation, training = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("evaluation", "training")
    )
    size = (folder / "model.safetensors").stat().st_size
    (folder / "README.md").write_text(card(args.model, evaluation, training, size), encoding="utf-8")
    print((folder / "README.md").read_text())


if __name__ == "__main__":
    main()
