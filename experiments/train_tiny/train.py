"""Trains the tiny InternVL checkpoint on drawn scenes, on one CPU core, reproducibly from a seed.

    python experiments/train_tiny/scenes.py                       # once: pictures and expressions
    python experiments/train_tiny/train.py --steps 5400           # as long as the shipped one
    python experiments/train_tiny/train.py --minutes 6            # a try: the same run in small

Beside the answer's tokens the losses ask what lies in each image token (objects, colour, size, fill,
edges) and where one attention head of two layers should look (the referent; in the lower layer the
landmark, or for a rank the one before it). What answers those questions is not in the checkpoint.

The course of a run is the same for any length: vision losses alone, then all; soft targets sharpen; at
last the learning rate falls. `log.csv` and `curve.png` in the output folder show the losses and the held-out
accuracy. With --steps the result depends on the seed and the scenes alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import architecture
import numpy as np
import torch
from bank import KINDS, SHARES, SQUARE, Bank, load
from card import curve
from losses import Trainer
from plain import emptied
from torch import Tensor

VISION, SHARP, DECAY = 0.09, 0.46, 0.6
"""Shares of the run: the end of vision alone, targets at their sharpest, the rate begins to fall."""
HELD_OUT = 300
"""The last so many scenes are not trained on."""
SAVE_EVERY = 100
THAW = 150
"""Steps in which the read-outs alone learn, when a run starts from the weights of a checkpoint."""


def main() -> None:
    """Trains for so many steps, or minutes."""
    Run(arguments(__doc__, Path("build/tiny_scenes"), Path("build/tiny_internvl3"))).go()


def arguments(about: str | None, scenes: Path, out: Path) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--scenes", type=Path, default=scenes)
    add("--out", type=Path, default=out)
    add("--seed", type=int, default=0)
    add("--steps", type=int, default=5400)
    add("--minutes", type=float, help="instead of --steps; how far it gets depends on the machine")
    add("--stop-at", type=int, help="stop after this step, to go on later with --resume")
    add("--start", type=Path, help="a checkpoint to go on training; its read-outs are learnt anew first")
    add("--resume", action="store_true", help="go on from the state in the output folder")
    add("--check", type=int, default=250, help="steps between measurements of held-out accuracy")
    add("--batch", type=int, default=8, help="scenes per step")
    add("--count", type=int, default=12, help="expressions per scene")
    add("--extra", type=int, default=16, help="further pictures per step, for the vision losses alone")
    add("--ordinary", type=float, default=0.0, help="share of the expressions that are `ordinary`'s")
    add("--shares", type=float, nargs=4, default=SHARES[:4].tolist(), help="of " + ", ".join(KINDS))
    add("--plain", type=float, default=0.0, help="share of the pictures that are plain surfaces")
    add("--lr", type=float, default=1.5e-3)
    add("--width", type=int, default=128)
    add("--depth", type=int, default=5)
    add("--feed", type=int, default=320)
    add("--vision-width", type=int, default=128)
    add("--vision-depth", type=int, default=4)
    add("--chunks", type=int, help="how many of the chunks of scenes to use; default: all")
    return parser.parse_args()


def learning_rate(step: int, done: float, peak: float) -> float:
    """Warm-up over 200 steps, constant, then linear down to a fiftieth. done: share of the run."""
    return peak * min(1.0, (step + 1) / 200) * max(0.02, min(1.0, (1 - done) / (1 - DECAY)))


def sharpness(done: float) -> float:
    """Standard deviation of soft targets, in coordinate steps: 2.5 at first, 0.7 from SHARP on."""
    return max(0.7, 2.5 - 1.8 * done / SHARP)


def build(args: argparse.Namespace) -> tuple[Trainer, Bank]:
    """Network and data, the same for the same arguments."""
    torch.manual_seed(args.seed)
    some = json.loads(min(args.scenes.glob("*.json")).read_text())
    words = [said[0] for scene in some for said in scene["said"]]
    tokens = tokenizer_of(args.start) if args.start else architecture.tokenizer(words)
    shape = (args.width, args.depth, args.feed, args.vision_width, args.vision_depth)
    trainer = Trainer(architecture.network(tokens, *shape), tokens)
    bank = load(args.scenes, tokens, trainer.tail, args.chunks)
    count = sum(p.numel() for p in trainer.model.parameters())
    print(f"{count:,} parameters, {len(bank.pictures):,} scenes, {len(bank.kind):,} expressions", flush=True)
    return trainer, bank


class Run:
    """One run: model, data, optimizer and how far it is."""

    build = staticmethod(build)
    processor = staticmethod(architecture.processor)
    alike = architecture.ALIKE
    blur = 1.0
    """Widens or narrows the soft targets."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.trainer, self.bank = self.build(args)
        self.rng = torch.Generator().manual_seed(args.seed)
        self.usable = len(self.bank.pictures) - HELD_OUT
        self.weights = [*self.trainer.model.parameters(), *self.trainer.heads.parameters()]
        self.optimizer = torch.optim.AdamW(self.weights, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.02)
        self.look_at = {args.depth - 4: "landmark", args.depth - 2: "target"}
        self.step, self.at = 0, 0
        self.order = torch.randperm(self.usable, generator=self.rng)
        self.started, self.stages = time.time(), [{"from_step": 0, "arguments": decisive(args)}]
        args.out.mkdir(parents=True, exist_ok=True)
        if args.start and not args.resume:
            self.trainer.model.load_state_dict(weights_of(self.trainer.model, args.start))
        if args.resume:
            self.restore()

    @property
    def minutes(self) -> float:
        """Since the start, pauses left out."""
        return (time.time() - self.started) / 60

    @property
    def done(self) -> float:
        """Share of the run."""
        return self.minutes / self.args.minutes if self.args.minutes else self.step / self.args.steps

    def go(self) -> None:
        """The loop."""
        window: list[dict[str, float]] = []
        with (self.args.out / "log.csv").open("a" if self.args.resume else "w", newline="") as log:
            writer = csv.writer(log)
            if not self.args.resume:
                writer.writerow(["step", "minutes", *COLUMNS, "acc50", *KINDS])
            while self.done < 1 and self.step != self.args.stop_at:
                vision_only = self.step < THAW if self.args.start else self.done < VISION
                window.append(self.one_step(vision_only))
                if self.step % 50 == 0:
                    full = self.step % self.args.check == 0 and not vision_only
                    scores = self.accuracy() if full else {}
                    report(window, scores, self.step, self.minutes, self.look_at, writer)
                    log.flush()
                    window = []
                if self.step % SAVE_EVERY == 0:
                    self.save()
        self.save()
        curve(self.args.out / "log.csv", self.args.out / "curve.png")

    def one_step(self, vision_only: bool) -> dict[str, float]:
        """Draws a batch and learns from it."""
        args = self.args
        for group in self.optimizer.param_groups:
            thawed = args.start and self.step >= THAW
            group["lr"] = learning_rate(self.step - (THAW if thawed else 0), self.done, args.lr)
        self.trainer.model.requires_grad_(not args.start or self.step >= THAW)
        size = args.batch * 4 if vision_only else args.batch + args.extra
        scenes = self.draw(size)
        if vision_only:
            batch = self.bank.batch(scenes, 1, self.rng)
        else:
            shares = torch.tensor([*((1 - args.ordinary) * share for share in args.shares), args.ordinary])
            batch = self.bank.batch(
                scenes[: args.batch], args.count, self.rng, scenes[args.batch :], shares=shares
            )
            batch = emptied(batch, args.plain, self.rng, batch.get("grid", SQUARE))
        look_at = {} if vision_only else self.look_at
        found = self.trainer.step(
            batch,
            self.blur * sharpness(1.0 if args.start else self.done),
            look_at,
            self.optimizer,
            self.weights,
        )
        self.step += 1
        return found

    def draw(self, size: int) -> Tensor:
        """The next scenes of a random order of all."""
        if self.at + size > self.usable:
            self.order, self.at = torch.randperm(self.usable, generator=self.rng), 0
        self.at += size
        return self.order[self.at - size : self.at]

    @torch.no_grad()
    def accuracy(self) -> dict[str, float]:
        """Share of held-out expressions hit at IoU 0.5, the true coordinates before each given."""
        rng = torch.Generator().manual_seed(0)
        hits, kinds = [], []
        for group in self.bank.alike(torch.arange(self.usable, len(self.bank.pictures))):
            for part in group.split(20):
                batch = self.bank.batch(part, 6, rng)
                x = self.trainer.cells(batch)
                hits.append(self.trainer.answer_losses(x, batch, 1.0, self.look_at)["hit"].flatten())
                kinds.append(batch["kind"].flatten())
        hit, kind = torch.cat(hits), torch.cat(kinds)
        by_kind = {name: hit[kind == k].mean().item() for k, name in enumerate(KINDS)}
        return {"all": hit.mean().item(), **by_kind}

    def save(self) -> None:
        """The checkpoint as it is now, the facts about it, and all that is needed to go on."""
        out = self.args.out
        architecture.save(self.trainer.model, self.processor(self.trainer.tokens), out, self.alike)
        facts = {
            "stages": self.stages,
            "steps": self.step,
            "minutes": self.minutes,
            "parameters": sum(p.numel() for p in self.trainer.model.parameters()),
            "scenes": self.usable,
            "expressions": int(self.bank.first[self.usable]),
        }
        (out / "training.json").write_text(json.dumps(facts, indent=1))
        state = {
            "model": self.trainer.model.state_dict(),
            "heads": self.trainer.heads.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": self.rng.get_state(),
            **{name: getattr(self, name) for name in ("step", "at", "order", "minutes")},
        }
        torch.save(state, out / "state.pt")

    def restore(self) -> None:
        """Goes on where `save` was."""
        state = torch.load(self.args.out / "state.pt", weights_only=True)
        self.trainer.model.load_state_dict(state["model"])
        self.trainer.heads.load_state_dict(state["heads"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rng.set_state(state["rng"])
        self.step, self.at, self.order = state["step"], state["at"], state["order"]
        self.started = time.time() - 60 * state["minutes"]
        before = json.loads((self.args.out / "training.json").read_text())["stages"]
        self.stages = [*before, {"from_step": self.step, "arguments": decisive(self.args)}]


def weights_of(model: Any, folder: Path) -> dict[str, Tensor]:
    """The weights of a saved checkpoint of the same shape, in single precision."""
    return dict(type(model).from_pretrained(folder, dtype=torch.float32).state_dict())


def tokenizer_of(folder: Path) -> Any:
    """The tokenizer of a saved checkpoint: learnt on other scenes it would number its tokens otherwise."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def decisive(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments that decide the outcome: no folders but the name of a checkpoint to start from."""
    idle = ("scenes", "out", "resume", "check", *(["steps"] if args.minutes else []))
    said = {k: v for k, v in vars(args).items() if k not in idle}
    return said | {"start": args.start.name if args.start else None}


COLUMNS = ("answer", "form", "object", "named", "cell_box", "edges", "landmark", "target", "offsets", "place")


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


if __name__ == "__main__":
    main()
