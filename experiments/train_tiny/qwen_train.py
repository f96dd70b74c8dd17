"""Trains the tiny Qwen2.5-VL checkpoint on drawn scenes, on one CPU core, reproducibly from a seed.

    python experiments/train_tiny/scenes.py --qwen                # once: pictures and expressions
    python experiments/train_tiny/qwen_train.py --minutes 30

The recipe is train.py's, but for one thing. This vision tower knows relative positions alone, so an
image token is asked for what it can know: in the vision tower what lies there and how far its edges are
from the token's middle; after the decoder's first layer its own row and column (which it gets by looking
back at the words before the picture, whose places are fixed); after the second the edges themselves.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, ClassVar

import qwen_architecture as architecture
import qwen_forward as forward
import torch
from bank import SHARES, Bank, cell_of, load
from losses import CLASSES, Heads, Trainer, soft_cross_entropy
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # torch's own custom
from train import Run, arguments, tokenizer_of

EARLY = 2
"""After so many decoder layers an image token is to know the edges of its object."""


class QwenHeads(Heads):
    """Read-outs of an image token, used in training alone."""

    def __init__(self, width: int, bins: int) -> None:
        super().__init__(width, bins)
        self.offsets = nn.Linear(width, 4)
        self.place = nn.Linear(width, 2)


class QwenTrainer(Trainer):
    """One model and its losses."""

    look_weights: ClassVar = {"landmark": 0.4, "target": 1.0}

    def __init__(self, model: Any, tokens: Any) -> None:
        self.model, self.tokens = model, tokens
        self.heads = QwenHeads(model.config.text_config.hidden_size, architecture.BINS)
        self.numbers = torch.tensor(architecture.number_ids(tokens))
        self.end = tokens.eos_token_id
        first = "".join(architecture.SYSTEM)
        self.before = torch.tensor(tokens(f"{first}<|vision_start|>")["input_ids"])
        self.after = torch.tensor(tokens(f"<|vision_end|>{architecture.BEFORE}")["input_ids"])
        self.image_at = len(self.before)
        self.tail = tokens(architecture.TAIL)["input_ids"]

    def cells(self, batch: dict[str, Any]) -> Tensor:
        """Image tokens of the batch's pictures."""
        return forward.cells(self.model, batch["pixels"])

    def steps(self, batch: dict[str, Any]) -> Tensor:
        """How many coordinate steps the pictures' sides measure: (4), for x1, y1, x2, y2."""
        return torch.tensor(batch["grid"]).repeat(2) * (architecture.PATCH / architecture.STEP)

    def start(self, x: Tensor, batch: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
        """All that comes before the expression, image tokens in their place, and its positions."""
        embed = self.model.model.language_model.embed_tokens
        before, after = (embed(ids)[None].expand(len(x), -1, -1) for ids in (self.before, self.after))
        places = forward.places(self.image_at, batch["grid"], len(self.after))
        return torch.cat([before, x, after], 1), places

    def target_rows(self, steps: Tensor, start: Tensor, lengths: Tensor) -> Tensor:
        """The expression's last token and the tail; what follows counts little.

        The tail is one token here, and once a coordinate is given its object is found by that alone, so
        that with equal weights the rows of the answer hide that the words are not understood.
        """
        told = (steps >= lengths) & (steps < lengths + 3)
        return ((steps >= start - 1) & (steps < lengths)) + 0.15 * told

    def vision_loss(self, x: Tensor, batch: dict[str, Any], sigma: float) -> dict[str, Tensor]:
        """What lies in each image token; from the decoder's first layers on, where."""
        items, owner, grid = batch["items"], batch["owner"], batch["grid"]
        cell = cell_of(items[:, 4:], grid)
        there = torch.zeros(x.shape[:2])
        there[owner, cell] = 1.0
        at = x[owner, cell]
        logits = self.heads.classes(at).split(CLASSES, dim=-1)
        edges = items[:, 4:] * torch.tensor(grid).repeat(2)
        middle = torch.stack([cell % grid[0], cell // grid[0]], -1) + 0.5
        start, places = self.start(x, batch)
        picture = slice(self.image_at, self.image_at + x.shape[1])
        first, *_, last = (state[:, picture] for state in forward.early(self.model, start, places, EARLY))
        own = torch.cartesian_prod(torch.arange(grid[1]), torch.arange(grid[0])).flip(-1) + 0.5
        late = last[owner, cell]
        bins = self.heads.box(late).view(len(late), 4, -1) @ self.heads.bins.T
        return {
            "object": F.binary_cross_entropy_with_logits(self.heads.object(x)[..., 0], there),
            "named": sum(F.cross_entropy(logit, items[:, k].long()) for k, logit in enumerate(logits)),
            "offsets": F.smooth_l1_loss(self.heads.offsets(at), edges - middle.repeat(1, 2), beta=0.1),
            "place": F.smooth_l1_loss(self.heads.place(first), own.expand(len(x), -1, -1), beta=0.1),
            "cell_box": soft_cross_entropy(bins, items[:, 4:] * self.steps(batch), sigma),
            "edges": F.smooth_l1_loss(self.heads.edges(late), edges, beta=0.1),
        }  # fmt: skip


class QwenBank:
    """A Bank whose pictures are of several sizes; a batch is of one."""

    def __init__(self, bank: Bank, grids: Tensor) -> None:
        self.bank, self.grids = bank, grids

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bank, name)

    def alike(self, scenes: Tensor) -> list[Tensor]:
        """The scenes, one group for each size of picture."""
        which = self.grids[scenes].unique(dim=0, return_inverse=True)[1]
        return [scenes[which == k] for k in range(int(which.max()) + 1)]

    def batch(
        self,
        scenes: Tensor,
        count: int,
        rng: torch.Generator,
        extra: Tensor | None = None,
        shares: Tensor = SHARES,
    ) -> dict[str, Any]:
        """Bank's, and the grid of the pictures, which are cut out of their frames."""
        columns, rows = grid = tuple(self.grids[scenes[0]].tolist())
        found = self.bank.batch(scenes, count, rng, extra, grid, shares)
        side = architecture.PATCH
        found["pixels"] = found["pixels"][..., : rows * side, : columns * side].contiguous()
        return found | {"grid": grid}


def build(args: argparse.Namespace) -> tuple[QwenTrainer, QwenBank]:
    """Network and data, the same for the same arguments."""
    torch.manual_seed(args.seed)
    chunks = [json.loads(path.read_text()) for path in sorted(args.scenes.glob("*.json"))[: args.chunks]]
    words = [said[0] for scene in chunks[0] for said in scene["said"]]
    tokens = tokenizer_of(args.start) if args.start else architecture.tokenizer(words)
    shape = (args.width, args.depth, args.feed, args.vision_width, args.vision_depth)
    trainer = QwenTrainer(architecture.network(tokens, *shape), tokens)
    grids = torch.tensor([scene["size"] for chunk in chunks for scene in chunk]) // architecture.PATCH
    bank = QwenBank(load(args.scenes, tokens, trainer.tail, args.chunks), grids)
    count = sum(p.numel() for p in trainer.model.parameters())
    print(f"{count:,} parameters, {len(bank.pictures):,} scenes, {len(bank.kind):,} expressions", flush=True)
    return trainer, bank


class QwenRun(Run):
    """One run."""

    build = staticmethod(build)
    processor = staticmethod(architecture.processor)
    alike = architecture.ALIKE
    blur = 0.65
    """A step is about 1.5 times as long as train.py's."""

    def draw(self, size: int) -> Tensor:
        """Scenes with pictures of one size, that of a random one."""
        grids = self.bank.grids[: self.usable]
        one = torch.randint(self.usable, (), generator=self.rng)
        same = (grids == grids[one]).all(1).nonzero()[:, 0]
        return same[torch.randperm(len(same), generator=self.rng)[:size]]


if __name__ == "__main__":
    QwenRun(arguments(__doc__, Path("build/tiny_scenes_qwen"), Path("build/tiny_qwen2_5_vl"))).go()
