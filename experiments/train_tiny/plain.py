"""Pictures on which there is nothing: plain surfaces, soft gradients, grain.

A real model has seen walls, skies and bad photographs. Asked for something on such a picture, ours is
trained to answer with the whole of it, so that it keeps to the form of an answer there too.
"""

from __future__ import annotations

from typing import Any

import torch
from bank import Grid, cell_of
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # torch's own custom

LOW, HIGH = -2.0, 2.0
"""Black and white, as the processor normalises them."""


def picture(size: tuple[int, int], rng: torch.Generator) -> Tensor:
    """(3, height, width): one colour, or a soft gradient, each with more or less grain; or grain alone."""
    coarse = 1 if torch.rand((), generator=rng) < 0.5 else 3
    colours = torch.rand(1, 3, coarse, coarse, generator=rng) * (HIGH - LOW) + LOW
    if torch.rand((), generator=rng) < 0.4:
        colours = colours.mean(1, keepdim=True).expand(-1, 3, -1, -1)
    found = F.interpolate(colours, size=size, mode="bilinear", align_corners=True)[0]
    grain = (0.0, 0.0, 0.3, 3.0)[int(torch.randint(4, (), generator=rng))]
    if grain:
        found = found + grain * torch.randn(3, *size, generator=rng)
    return found.clamp(LOW, HIGH)


def emptied(batch: dict[str, Any], share: float, rng: torch.Generator, grid: Grid) -> dict[str, Any]:
    """The batch with plain pictures in place of a share of those that are asked about."""
    chosen = torch.zeros(len(batch["pixels"]), dtype=torch.bool)
    asked = len(batch["tokens"])
    chosen[:asked] = torch.rand(asked, generator=rng) < share
    if not chosen.any() or chosen.all():
        return batch
    size = tuple(batch["pixels"].shape[-2:])
    pixels, box, mark = (batch[name].clone() for name in ("pixels", "box", "mark_cell"))
    for k in chosen.nonzero()[:, 0].tolist():
        pixels[k] = picture(size, rng)
    box[chosen[:asked]] = torch.tensor([0.0, 0.0, 1.0, 1.0])
    mark[chosen[:asked]] = -1
    kept = ~chosen[batch["owner"]]
    return batch | {
        "pixels": pixels, "box": box, "mark_cell": mark, "target_cell": cell_of(box, grid),
        "items": batch["items"][kept], "owner": batch["owner"][kept],
    }  # fmt: skip
