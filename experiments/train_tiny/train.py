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
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import architecture
import forward
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

KINDS = ("attribute", "relation", "ordinal", "negation")
SHARES = torch.tensor([0.2, 0.36, 0.22, 0.22])
CLASSES = (5, 6, 2, 2)
"""Shapes, colours, sizes, fills."""


@dataclass
class Bank:
    """Scenes in memory; expressions as padded token rows, `first[s]:first[s + 1]` those of scene s."""

    pictures: list[np.ndarray]
    items: list[np.ndarray]
    tokens: Tensor
    lengths: Tensor
    target: Tensor
    landmark: Tensor
    kind: Tensor
    first: Tensor


def load(folder: Path, known: Any, tail: list[int], most: int | None = None) -> Bank:
    """Reads the chunks of a folder; `tail` are the tokens between expression and answer."""
    pictures: list[np.ndarray] = []
    items: list[np.ndarray] = []
    rows: list[list[int]] = []
    facts: list[list[int]] = []
    first = [0]
    for path in sorted(folder.glob("*.json"))[:most]:
        scenes = json.loads(path.read_text())
        pictures.extend(np.load(path.with_suffix(".npy"), mmap_mode="r"))
        texts = [said[0] for scene in scenes for said in scene["said"]]
        rows.extend(ids + tail for ids in known(texts, add_special_tokens=False)["input_ids"])
        for scene in scenes:
            items.append(np.array(scene["items"], np.float32))
            facts.extend(said[1:] for said in scene["said"])
            first.append(len(facts))
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int16)
    for k, row in enumerate(rows):
        tokens[k, : len(row)] = torch.tensor(row)
    target, landmark, kind = torch.tensor(facts).T
    return Bank(pictures, items, tokens, lengths, target, landmark, kind, torch.tensor(first))


class Heads(nn.Module):
    """Read-outs of an image token, used in training alone."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.object = nn.Linear(width, 1)
        self.classes = nn.Linear(width, sum(CLASSES))
        self.box = nn.Linear(width, 4 * architecture.BINS)


class Trainer:
    """One model, its losses and its data."""

    def __init__(self, model: Any, tokens: Any, device: str = "cpu") -> None:
        self.model, self.tokens, self.device = model, tokens, device
        self.heads = Heads(model.config.text_config.hidden_size)
        ids = tokens.convert_tokens_to_ids
        self.comma, self.close = ids("0, "), ids("0]]")
        self.open, self.end = ids(architecture.OPEN), tokens.eos_token_id
        before, after = architecture.PROMPT.split("{expression}")
        start = tokens(f"<|im_start|>user\n<img>{'<IMG_CONTEXT>' * architecture.CELLS**2}</img>\n{before}")
        self.prefix = torch.tensor(start["input_ids"])
        self.image_at = int((self.prefix == ids("<IMG_CONTEXT>")).nonzero()[0])
        self.tail = tokens(f"{after}<|im_end|>\n<|im_start|>assistant\n")["input_ids"]

    def batch(self, bank: Bank, scenes: Tensor, count: int, rng: torch.Generator) -> dict[str, Tensor]:
        """`count` expressions of each scene, kinds by their shares."""
        # most batches keep to shorter expressions: less padding
        longest = len(self.tail) + (8 if torch.rand((), generator=rng) < 0.7 else 99)
        pick = []
        for s in scenes.tolist():
            a, b = int(bank.first[s]), int(bank.first[s + 1])
            kinds = bank.kind[a:b]
            weight = (SHARES / torch.bincount(kinds, minlength=4).clamp(min=1))[kinds]
            fits = bank.lengths[a:b] <= longest
            weight = weight * fits if fits.any() else weight
            few = int((weight > 0).sum()) < count
            pick.append(a + torch.multinomial(weight, count, replacement=few, generator=rng))
        chosen = torch.stack(pick)
        boxes = torch.stack(
            [torch.from_numpy(bank.items[s][bank.target[row].numpy(), 4:]) for s, row in zip(scenes.tolist(), chosen, strict=True)]
        )
        marks = torch.stack(
            [torch.from_numpy(bank.items[s][bank.landmark[row].numpy(), 4:]) for s, row in zip(scenes.tolist(), chosen, strict=True)]
        )
        items = [torch.from_numpy(bank.items[s]) for s in scenes.tolist()]
        return {
            "pixels": pixels(np.stack([bank.pictures[s] for s in scenes.tolist()])),
            "tokens": bank.tokens[chosen].long(),
            "lengths": bank.lengths[chosen],
            "box": boxes,
            "target_cell": cell_of(boxes),
            "mark_cell": torch.where(bank.landmark[chosen] >= 0, cell_of(marks), -1),
            "kind": bank.kind[chosen],
            "items": torch.cat(items),
            "owner": torch.arange(len(items)).repeat_interleave(torch.tensor([len(i) for i in items])),
        }

    def vision_loss(self, x: Tensor, batch: dict[str, Tensor], sigma: float) -> dict[str, Tensor]:
        """What lies in each image token: whether an object's centre does, and which object."""
        items, owner = batch["items"], batch["owner"]
        cell = cell_of(items[:, 4:])
        there = torch.zeros(x.shape[:2])
        there[owner, cell] = 1.0
        at = x[owner, cell]
        logits = self.heads.classes(at).split(CLASSES, dim=-1)
        named = sum(F.cross_entropy(logit, items[:, k].long()) for k, logit in enumerate(logits))
        box = soft_cross_entropy(self.heads.box(at).view(-1, 4, architecture.BINS), items[:, 4:], sigma)
        return {
            "object": F.binary_cross_entropy_with_logits(self.heads.object(x)[..., 0], there),
            "named": named,
            "cell_box": box,
        }

    def step(
        self, batch: dict[str, Tensor], sigma: float, look_at: dict[int, str], optimizer: Any, weights: list[Any]
    ) -> dict[str, float]:
        """One step of the optimizer on the vision losses, or on all where `look_at` says where to look."""
        if look_at:
            found = self.losses(batch, sigma, look_at)
        else:
            found = self.vision_loss(forward.cells(self.model, batch["pixels"]), batch, sigma)
        loss = found["object"] * 2 + found["named"] * 0.5 + found["cell_box"] * 0.3
        if look_at:
            looks = sum(found[f"look_{layer}"] for layer in look_at)
            loss = loss * 0.5 + found["answer"] + found["form"] + 0.4 * looks
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        return {k: v.detach().mean().item() for k, v in found.items()}

    def losses(self, batch: dict[str, Tensor], sigma: float, look_at: dict[int, str]) -> dict[str, Tensor]:
        """All losses of a batch, by name, and the share of questions whose cell was looked at most."""
        x = forward.cells(self.model, batch["pixels"])
        found = self.vision_loss(x, batch, sigma)
        batch_size, count, _ = batch["tokens"].shape
        bins = (batch["box"] * 1000 / architecture.STEP).round().long().clamp(0, architecture.BINS - 1)
        answer = torch.cat(
            [torch.full_like(bins[..., :1], self.open), bins[..., :3] + self.comma, bins[..., 3:] + self.close], -1
        )
        width = int(batch["lengths"].max()) + answer.shape[-1]
        suffix = torch.full((batch_size, count, width), self.tokens.pad_token_id)
        suffix[..., : batch["tokens"].shape[-1]] = batch["tokens"][..., :width]
        spot = batch["lengths"][..., None] + torch.arange(answer.shape[-1])
        suffix.scatter_(2, spot, answer)
        embed = self.model.model.language_model.embed_tokens
        prefix = embed(self.prefix)[None].expand(batch_size, -1, -1)
        a, n = self.image_at, x.shape[1]
        start = torch.cat([prefix[:, :a], x, prefix[:, a + n :]], dim=1)
        look = forward.Look(dict.fromkeys(look_at, 0), {})
        # the state before each answer token predicts it; the last one predicts the end of the turn
        asked = torch.cat([batch["lengths"][..., None] - 1, spot], -1)
        asked_states = forward.decode(self.model, start, embed(suffix), asked, look)
        logits = self.model.lm_head(asked_states)
        ends = torch.full_like(answer[..., :1], self.end)
        sure = logits[..., [0, 5], :].flatten(0, 2)
        found["form"] = F.cross_entropy(sure, torch.cat([answer[..., :1], ends], -1).flatten())
        numbers = torch.stack(
            [logits[..., 1 + k, self.comma if k < 3 else self.close :][..., : architecture.BINS] for k in range(4)], -2
        )
        total = torch.logsumexp(logits[..., 1:5, :], -1) - torch.logsumexp(numbers, -1)
        found["answer"] = soft_cross_entropy(numbers.flatten(0, 1), batch["box"].flatten(0, 1), sigma)
        found["form"] = found["form"] + total.mean()
        for layer, what in look_at.items():
            attention = look.found[layer].view(batch_size, count, width, -1)
            found[f"look_{layer}"] = self.look_loss(attention, batch, what, width)
        guess = numbers.detach().argmax(-1) * architecture.STEP / 1000
        found["hit"] = (iou(guess, batch["box"]) >= 0.5).float()
        return found

    def look_loss(self, attention: Tensor, batch: dict[str, Tensor], what: str, width: int) -> Tensor:
        """−log of the attention on the referent's (or landmark's) token and its neighbours' share.

        Rows: from the end of the expression on (for the landmark: up to where the answer begins).
        """
        steps = torch.arange(width)[None, None]
        lengths = batch["lengths"][..., None]
        start = lengths - len(self.tail)
        if what == "target":
            rows, cell = (steps >= start + 3) & (steps < lengths + 4), batch["target_cell"]
        else:
            rows, cell = (steps >= start - 1) & (steps < start + 2), batch["mark_cell"]
            rows = rows & (cell >= 0)[..., None]
        column = (self.image_at + cell.clamp(min=0))[..., None, None].expand(*attention.shape[:3], 1)
        value = attention.gather(3, column)[..., 0]
        return -(value * rows).sum() / rows.sum().clamp(min=1)


def pixels(pictures: np.ndarray) -> Tensor:
    """uint8 (n, side, side, 3) → normalised as the processor does it."""
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25


def cell_of(boxes: Tensor) -> Tensor:
    """Index of the image token in which a box's centre lies."""
    center = (boxes[..., :2] + boxes[..., 2:]) / 2 * architecture.CELLS
    column, row = center.clamp(0, architecture.CELLS - 1e-3).long().unbind(-1)
    return row * architecture.CELLS + column


def soft_cross_entropy(logits: Tensor, boxes: Tensor, sigma: float) -> Tensor:
    """Cross-entropy with a Gaussian of `sigma` bins around the true coordinate; logits (n, …, 4, bins)."""
    scale = torch.arange(architecture.BINS, dtype=torch.float32)
    gap = (boxes[..., None] * 1000 / architecture.STEP - scale) / sigma
    target = (-0.5 * gap.square()).softmax(-1)
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def iou(a: Tensor, b: Tensor) -> Tensor:
    """Row-wise."""
    side = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    area = [(c[..., 2:] - c[..., :2]).clamp(min=0).prod(-1) for c in (a, b)]
    return side.prod(-1) / (area[0] + area[1] - side.prod(-1)).clamp(min=1e-9)


def main() -> None:
    """Trains for so many minutes or steps, whichever ends first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=Path, default=Path("build/tiny_scenes"))
    parser.add_argument("--out", type=Path, default=Path("build/tiny_internvl3"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="the decay begins in time to end by then")
    parser.add_argument("--decay-at", type=int, help="step at which the decay begins, whatever the time")
    parser.add_argument("--decay-steps", type=int, default=800)
    parser.add_argument("--vision-steps", type=int, default=500, help="first steps, on the vision losses alone")
    parser.add_argument("--anneal", type=int, default=3000, help="steps over which soft targets sharpen")
    parser.add_argument("--batch", type=int, default=12, help="scenes per step")
    parser.add_argument("--count", type=int, default=12, help="expressions per scene")
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=6)
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
    tokens = architecture.tokenizer([*words, *[architecture.PROMPT, "user\n", "assistant\n"] * 200])
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
    look_at = {args.depth // 2 - 2: "landmark", args.depth // 2: "target", args.depth // 2 + 1: "target"}
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
        size = args.batch * 3 if vision_only else args.batch
        if at + size > usable:
            order, at = torch.randperm(usable, generator=rng), 0
        batch = trainer.batch(bank, order[at : at + size], 1 if vision_only else args.count, rng)
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


COLUMNS = ("answer", "form", "object", "named", "cell_box", "landmark", "target")


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
        batch = trainer.batch(bank, part, 6, rng)
        hits.append(trainer.losses(batch, 1.0, look_at)["hit"].flatten())
        kinds.append(batch["kind"].flatten())
    hit, kind = torch.cat(hits), torch.cat(kinds)
    return {"all": hit.mean().item(), **{name: hit[kind == k].mean().item() for k, name in enumerate(KINDS)}}


if __name__ == "__main__":
    main()
