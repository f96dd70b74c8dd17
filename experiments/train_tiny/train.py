"""Trains the tiny InternVL checkpoint on drawn scenes, on one CPU core, reproducibly from a seed.

    python experiments/train_tiny/scenes.py                       # once: pictures and expressions
    python experiments/train_tiny/train.py --minutes 60 --out build/tiny_internvl3

Beside the next-token loss on the answer there are three that are dropped from the checkpoint: what lies
in each image token (objects, colour, size, fill, box), where one attention head of two layers should
look (the referent; in a lower layer the landmark), and soft targets for neighbouring coordinates.
`log.csv` and `curve.png` in the output folder show the losses and held-out accuracy over steps.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import architecture
import forward
import numpy as np
import torch
from bank import KINDS, Bank, load
from losses import Trainer
from torch import Tensor


def main() -> None:
    """Trains for so many minutes or steps, whichever ends first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenes", type=Path, default=Path("build/tiny_scenes"))
    parser.add_argument("--out", type=Path, default=Path("build/tiny_internvl3"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="the decay begins in time to end by then")
    parser.add_argument("--decay-at", type=int, help="step at which the decay begins, whatever the time")
    parser.add_argument("--decay-steps", type=int, default=800)
    parser.add_argument(
        "--vision-steps", type=int, default=600, help="first steps, on the vision losses alone"
    )
    parser.add_argument("--anneal", type=int, default=3000, help="steps over which soft targets sharpen")
    parser.add_argument("--batch", type=int, default=8, help="scenes per step")
    parser.add_argument("--count", type=int, default=12, help="expressions per scene")
    parser.add_argument(
        "--extra", type=int, default=12, help="further pictures per step, vision losses alone"
    )
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--feed", type=int, default=320)
    parser.add_argument("--vision-width", type=int, default=128)
    parser.add_argument("--vision-depth", type=int, default=4)
    parser.add_argument("--chunks", type=int, help="how many of the chunks of scenes to use; default: all")
    parser.add_argument("--resume", action="store_true", help="go on from the state in the output folder")
    run(parser.parse_args())


def learning_rate(step: int, peak: float, decay_at: int | None, decay_steps: int) -> float:
    """Warm-up over 200 steps, constant, then linear down to a fiftieth."""
    rate = peak * min(1.0, (step + 1) / 200)
    if decay_at is not None and step >= decay_at:
        rate *= max(0.02, 1 - (step - decay_at) / decay_steps)
    return rate


def build(args: argparse.Namespace) -> tuple[Trainer, Bank]:
    """Network and data, the same for the same arguments."""
    torch.manual_seed(args.seed)
    some = json.loads(min(args.scenes.glob("*.json")).read_text())
    words = [said[0] for scene in some for said in scene["said"]]
    tokens = architecture.tokenizer(words)
    shape = (args.width, args.depth, args.feed, args.vision_width, args.vision_depth)
    trainer = Trainer(architecture.network(tokens, *shape), tokens)
    bank = load(args.scenes, tokens, trainer.tail, args.chunks)
    count = sum(p.numel() for p in trainer.model.parameters())
    print(f"{count:,} parameters, {len(bank.pictures):,} scenes, {len(bank.kind):,} expressions", flush=True)
    return trainer, bank


def run(args: argparse.Namespace) -> None:
    """The loop: vision losses alone first, then all of them; the last 300 scenes are held out."""
    trainer, bank = build(args)
    rng = torch.Generator().manual_seed(args.seed)
    usable = len(bank.pictures) - 300
    check = torch.arange(usable, usable + 300)
    weights = [*trainer.model.parameters(), *trainer.heads.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.02)
    look_at = {args.depth - 4: "landmark", args.depth - 2: "target"}
    args.out.mkdir(parents=True, exist_ok=True)
    step, decay_at, before, order, at = 0, args.decay_at, 0.0, torch.randperm(usable, generator=rng), 0
    state_file = args.out / "state.pt"
    if args.resume:
        state = torch.load(state_file, weights_only=True)
        trainer.model.load_state_dict(state["model"])
        trainer.heads.load_state_dict(state["heads"])
        optimizer.load_state_dict(state["optimizer"])
        step, before, order, at = state["step"], state["minutes"], state["order"], state["at"]
        rng.set_state(state["rng"])
    stages_file = args.out / "stages.json"
    stages = json.loads(stages_file.read_text()) if args.resume and stages_file.exists() else []
    stages.append({"from_step": step, "arguments": facts_of(args)})
    stages_file.write_text(json.dumps(stages, indent=1))
    log = (args.out / "log.csv").open("a" if args.resume else "w", newline="")
    writer = csv.writer(log)
    if not args.resume:
        writer.writerow(["step", "minutes", *COLUMNS, "acc50", *KINDS])
    started, window = time.time() - before * 60, []
    while decay_at is None or step < decay_at + args.decay_steps:
        minutes = (time.time() - started) / 60
        pace = (minutes - before) / max(1, len(window)) if step < 100 else minutes / step
        if decay_at is None and (
            minutes + pace * args.decay_steps >= args.minutes or (args.out / "decay").exists()
        ):
            decay_at = step
            print(f"decay from step {step}", flush=True)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.lr, decay_at, args.decay_steps)
        vision_only = step < args.vision_steps
        size = args.batch * 4 if vision_only else args.batch + args.extra
        if at + size > usable:
            order, at = torch.randperm(usable, generator=rng), 0
        scenes = order[at : at + size]
        if vision_only:
            batch = bank.batch(scenes, 1, rng)
        else:
            batch = bank.batch(scenes[: args.batch], args.count, rng, scenes[args.batch :])
        at += size
        sigma = max(0.7, 2.5 - 1.8 * step / args.anneal)
        found = trainer.step(batch, sigma, {} if vision_only else look_at, optimizer, weights)
        window.append(found)
        step += 1
        if step % 100 == 0:
            full = step % 500 == 0 and not vision_only
            scores = accuracy(trainer, bank, check, look_at) if full else {}
            report(window, scores, step, (time.time() - started) / 60, look_at, writer)
            log.flush()
            window = []
        if step % 500 == 0:
            architecture.save(trainer.model, trainer.tokens, args.out)
            torch.save(
                {
                    "model": trainer.model.state_dict(), "heads": trainer.heads.state_dict(),
                    "optimizer": optimizer.state_dict(), "step": step, "order": order, "at": at,
                    "minutes": (time.time() - started) / 60, "rng": rng.get_state(),
                },
                state_file,
            )  # fmt: skip
    architecture.save(trainer.model, trainer.tokens, args.out)
    log.close()
    facts = {
        "stages": stages,
        "decay_at": decay_at,
        "steps": step,
        "minutes": (time.time() - started) / 60,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "scenes": usable,
        "expressions": int(bank.first[usable]),
    }
    (args.out / "training.json").write_text(json.dumps(facts, indent=1))


def facts_of(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments that decide the outcome: no folders, no clock."""
    return {k: v for k, v in vars(args).items() if k not in ("scenes", "out", "resume", "minutes")}


COLUMNS = ("answer", "form", "object", "named", "cell_box", "edges", "landmark", "target")


def report(
    window: list[dict[str, float]], scores: dict[str, float], step: int, minutes: float,
    look_at: dict[int, str], writer: Any,
) -> None:  # fmt: skip
    """One line on the screen and in the log; held-out accuracy where it was measured."""
    mean = {k: float(np.mean([w[k] for w in window if k in w])) for k in set().union(*window)}
    for layer, what in look_at.items():
        if f"look_{layer}" in mean:
            mean[what] = mean.pop(f"look_{layer}")
    numbers = [mean.get(k, "") for k in COLUMNS] + [scores.get(k, "") for k in ("all", *KINDS)]
    writer.writerow([step, round(minutes, 2), *(n if n == "" else round(n, 4) for n in numbers)])
    line = " ".join(f"{k} {mean[k]:.3f}" for k in (*COLUMNS, "hit") if k in mean)
    print(f"{step} {minutes:.1f}min {line} {({k: round(v, 3) for k, v in scores.items()}) or ''}", flush=True)


@torch.no_grad()
def accuracy(trainer: Trainer, bank: Bank, check: Tensor, look_at: dict[int, str]) -> dict[str, float]:
    """Share of held-out expressions hit at IoU 0.5, the true coordinates before each given."""
    rng = torch.Generator().manual_seed(0)
    hits, kinds = [], []
    for part in check.split(20):
        batch = bank.batch(part, 6, rng)
        x = forward.cells(trainer.model, batch["pixels"])
        hits.append(trainer.answer_losses(x, batch, 1.0, look_at)["hit"].flatten())
        kinds.append(batch["kind"].flatten())
    hit, kind = torch.cat(hits), torch.cat(kinds)
    return {"all": hit.mean().item(), **{name: hit[kind == k].mean().item() for k, name in enumerate(KINDS)}}


if __name__ == "__main__":
    main()
