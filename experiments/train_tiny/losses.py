"""The losses: the answer's tokens, where to look, and what lies in each image token."""

from __future__ import annotations

from typing import Any, ClassVar

import architecture
import forward
import torch
from bank import cell_of
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # torch's own custom

WEIGHTS = {"object": 2.0, "named": 0.5, "cell_box": 0.3, "edges": 1.0, "offsets": 1.0, "place": 1.0}
"""Of the losses on image tokens."""
CLASSES = (5, 6, 2, 2)
"""Shapes, colours, sizes, fills."""


class Heads(nn.Module):
    """Read-outs of an image token, used in training alone."""

    def __init__(self, width: int, bins: int = architecture.BINS) -> None:
        super().__init__()
        self.object = nn.Linear(width, 1)
        self.classes = nn.Linear(width, sum(CLASSES))
        self.box = nn.Linear(width, 4 * width)
        self.bins = nn.Parameter(0.1 * architecture.waves(width, bins))
        self.edges = nn.Linear(width, 4)


class Trainer:
    """One model, its losses and its data."""

    look_weights: ClassVar = {"landmark": 0.4, "target": 0.4}

    def __init__(self, model: Any, tokens: Any, device: str = "cpu") -> None:
        self.model, self.tokens, self.device = model, tokens, device
        self.heads = Heads(model.config.text_config.hidden_size)
        self.numbers = torch.tensor(architecture.number_ids(tokens))
        self.end = tokens.eos_token_id
        image = f"<img>{'<IMG_CONTEXT>' * architecture.CELLS**2}</img>"
        self.prefix = torch.tensor(tokens(f"{architecture.USER}{image}{architecture.ASK}")["input_ids"])
        self.image_at = int((self.prefix == tokens.convert_tokens_to_ids("<IMG_CONTEXT>")).nonzero()[0])
        self.tail = tokens(f"{architecture.AFTER}{architecture.TURN}")["input_ids"]

    def cells(self, batch: dict[str, Tensor]) -> Tensor:
        """Image tokens of the batch's pictures."""
        return forward.cells(self.model, batch["pixels"])

    def steps(self, batch: dict[str, Tensor]) -> Tensor:
        """How many coordinate steps the picture's sides measure: (4), for x1, y1, x2, y2."""
        return torch.tensor(1000 / architecture.STEP).expand(4)

    def start(self, x: Tensor, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """All that comes before the expression, image tokens in their place, and its positions."""
        prefix = self.model.model.language_model.embed_tokens(self.prefix)[None].expand(len(x), -1, -1)
        a, n = self.image_at, x.shape[1]
        return torch.cat([prefix[:, :a], x, prefix[:, a + n :]], dim=1), None

    def vision_loss(self, x: Tensor, batch: dict[str, Tensor], sigma: float) -> dict[str, Tensor]:
        """What lies in each image token: whether an object's centre does, and which object."""
        items, owner = batch["items"], batch["owner"]
        cell = cell_of(items[:, 4:])
        there = torch.zeros(x.shape[:2])
        there[owner, cell] = 1.0
        at = x[owner, cell]
        logits = self.heads.classes(at).split(CLASSES, dim=-1)
        named = sum(F.cross_entropy(logit, items[:, k].long()) for k, logit in enumerate(logits))
        logits = self.heads.box(at).view(len(at), 4, -1) @ self.heads.bins.T
        box = soft_cross_entropy(logits, items[:, 4:] * self.steps(batch), sigma)
        edges = F.smooth_l1_loss(self.heads.edges(at), items[:, 4:] * architecture.CELLS, beta=0.1)
        return {
            "object": F.binary_cross_entropy_with_logits(self.heads.object(x)[..., 0], there),
            "named": named,
            "cell_box": box,
            "edges": edges,
        }

    def step(
        self,
        batch: dict[str, Tensor],
        sigma: float,
        look_at: dict[int, str],
        optimizer: Any,
        weights: list[Any],
    ) -> dict[str, float]:
        """One step of the optimizer on the vision losses, or on all where `look_at` says where to look."""
        x = self.cells(batch)
        found = self.vision_loss(x, batch, sigma)
        if look_at:
            # the batch may hold more pictures than questions: those are for the vision losses alone
            found |= self.answer_losses(x[: len(batch["tokens"])], batch, sigma, look_at)
        loss = sum(weight * found[name] for name, weight in WEIGHTS.items() if name in found)
        if look_at:
            looks = sum(self.look_weights[what] * found[f"look_{layer}"] for layer, what in look_at.items())
            loss = loss * 0.5 + found["answer"] + found["form"] + looks
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        return {k: v.detach().mean().item() for k, v in found.items()}

    def answer_losses(
        self, x: Tensor, batch: dict[str, Tensor], sigma: float, look_at: dict[int, str]
    ) -> dict[str, Tensor]:
        """The losses of the questions, by name, and which of them are answered right at IoU 0.5."""
        found = {}
        batch_size, count, _ = batch["tokens"].shape
        steps = self.steps(batch)
        bins = (batch["box"] * steps).round().long().clamp(0, self.numbers.shape[1] - 1)
        answer = torch.stack([self.numbers[k][bins[..., k]] for k in range(4)], -1)
        width = int(batch["lengths"].max()) + answer.shape[-1]
        suffix = torch.full((batch_size, count, width), self.tokens.pad_token_id)
        suffix[..., : batch["tokens"].shape[-1]] = batch["tokens"][..., :width]
        spot = batch["lengths"][..., None] + torch.arange(answer.shape[-1])
        suffix.scatter_(2, spot, answer)
        embed = self.model.model.language_model.embed_tokens
        start, places = self.start(x, batch)
        look = forward.Look(dict.fromkeys(look_at, 0), {})
        # the state before each answer token predicts it; the last one predicts the end of the turn
        asked = torch.cat([batch["lengths"][..., None] - 1, spot], -1)
        asked_states = forward.decode(self.model, start, embed(suffix), asked, look, places)
        logits = self.model.lm_head(asked_states)
        numbers = torch.stack([logits[..., k, self.numbers[k]] for k in range(4)], -2)
        found["answer"] = soft_cross_entropy(
            numbers.flatten(0, 1), (batch["box"] * steps).flatten(0, 1), sigma
        )
        # that each is a number of the right form, and that the last one ends the turn
        stray = torch.logsumexp(logits[..., :4, :], -1) - torch.logsumexp(numbers, -1)
        found["form"] = stray.mean() - logits[..., 4, :].log_softmax(-1)[..., self.end].mean()
        for layer, what in look_at.items():
            attention = look.found[layer].view(batch_size, count, width, -1)
            found[f"look_{layer}"] = self.look_loss(attention, batch, what, width)
        guess = numbers.detach().argmax(-1) / steps
        found["hit"] = (iou(guess, batch["box"]) >= 0.5).float()
        return found

    def target_rows(self, steps: Tensor, start: Tensor, lengths: Tensor) -> Tensor:
        """Weights of the rows that should look at the referent: from the tail on, up to the third number.

        start: where the tail begins; lengths: where the answer does.
        """
        return (steps >= start) & (steps < lengths + 3)

    def look_loss(self, attention: Tensor, batch: dict[str, Tensor], what: str, width: int) -> Tensor:
        """−log of the attention on the referent's (or landmark's) token and its neighbours' share.

        Rows: from the end of the expression on (for the landmark: up to where the answer begins).
        """
        steps = torch.arange(width)[None, None]
        lengths = batch["lengths"][..., None]
        start = lengths - len(self.tail)
        if what == "target":
            rows, cell = self.target_rows(steps, start, lengths), batch["target_cell"]
        else:
            rows, cell = (steps >= start - 1) & (steps < lengths), batch["mark_cell"]
            rows = rows & (cell >= 0)[..., None]
        column = (self.image_at + cell.clamp(min=0))[..., None, None].expand(*attention.shape[:3], 1)
        value = attention.gather(3, column)[..., 0]
        return -(value * rows).sum() / rows.sum().clamp(min=1)


def soft_cross_entropy(logits: Tensor, boxes: Tensor, sigma: float) -> Tensor:
    """Cross-entropy with a Gaussian of `sigma` around the true coordinate; boxes (…, 4) in coordinate
    steps, logits (…, 4, bins)."""
    scale = torch.arange(logits.shape[-1], dtype=torch.float32)
    gap = (boxes[..., None] - scale) / sigma
    target = (-0.5 * gap.square()).softmax(-1)
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


def iou(a: Tensor, b: Tensor) -> Tensor:
    """Row-wise."""
    side = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    area = [(c[..., 2:] - c[..., :2]).clamp(min=0).prod(-1) for c in (a, b)]
    return side.prod(-1) / (area[0] + area[1] - side.prod(-1)).clamp(min=1e-9)
