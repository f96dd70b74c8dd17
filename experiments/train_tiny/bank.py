"""Scenes and expressions in memory, and batches drawn from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import architecture
import numpy as np
import torch
from torch import Tensor

from refadv_ablate.data.shapes.scene import COLOURS, FILLS, SHAPES, SIZES
from refadv_ablate.models.listeners.meaning import listen

Grid = tuple[int, int]
"""Image tokens: columns, rows."""
SQUARE = (architecture.CELLS, architecture.CELLS)
KINDS = ("attribute", "relation", "ordinal", "negation")
SHARES = torch.tensor([0.2, 0.3, 0.28, 0.22, 0.0])
"""How often each kind is asked about; the last are those of `ordinary`, which accuracy isn't measured on."""


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
    weight: Tensor
    """How often an expression is drawn: thirds less often than they can be said, as in data=shapes."""
    tail: int
    """Tokens between expression and answer, at the end of each row."""

    def alike(self, scenes: Tensor) -> list[Tensor]:
        """The scenes in groups that one batch can hold: here all, for all pictures have one size."""
        return [scenes]

    def batch(
        self,
        scenes: Tensor,
        count: int,
        rng: torch.Generator,
        extra: Tensor | None = None,
        grid: Grid = SQUARE,
        shares: Tensor = SHARES,
    ) -> dict[str, Tensor]:
        """`count` expressions of each scene, kinds by their shares; `extra` scenes come as pictures alone."""
        # most batches keep to shorter expressions: less padding
        longest = self.tail + (8 if torch.rand((), generator=rng) < 0.7 else 99)
        pick = []
        for s in scenes.tolist():
            a, b = int(self.first[s]), int(self.first[s + 1])
            kinds = self.kind[a:b]
            weight = (shares / torch.bincount(kinds, minlength=5).clamp(min=1))[kinds] * self.weight[a:b]
            fits = self.lengths[a:b] <= longest
            weight = weight * fits if fits.any() else weight
            few = int((weight > 0).sum()) < count
            pick.append(a + torch.multinomial(weight, count, replacement=few, generator=rng))
        chosen = torch.stack(pick)
        boxes, marks = (
            torch.stack(
                [
                    torch.from_numpy(self.items[s][which[row].numpy(), 4:])
                    for s, row in zip(scenes.tolist(), chosen, strict=True)
                ]
            )
            for which in (self.target, self.landmark)
        )
        seen = scenes.tolist() + ([] if extra is None else extra.tolist())
        items = [torch.from_numpy(self.items[s]) for s in seen]
        return {
            "pixels": pixels(np.stack([self.pictures[s] for s in seen])),
            "tokens": self.tokens[chosen].long(),
            "lengths": self.lengths[chosen],
            "box": boxes,
            "target_cell": cell_of(boxes, grid),
            "mark_cell": torch.where(self.landmark[chosen] >= 0, cell_of(marks, grid), -1),
            "kind": self.kind[chosen],
            "items": torch.cat(items),
            "owner": torch.arange(len(items)).repeat_interleave(torch.tensor([len(i) for i in items])),
        }


COLUMNS = {"shape": (0, SHAPES), "colour": (1, COLOURS), "size": (2, SIZES), "fill": (3, FILLS)}


def before(text: str, items: np.ndarray) -> int:
    """For "the second … from the left" the first one, for the third the second, else −1.

    A rank is found by way of the one before, as a relation is by way of its landmark.
    """
    heard = listen(text)
    if heard.nth not in (2, 3) or heard.edge is None or heard.noun is None:
        return -1
    wanted = [("shape", heard.noun), *heard.has]
    fits = np.ones(len(items), bool)
    for name, value in wanted:
        column, values = COLUMNS[name]
        fits &= items[:, column] == values.index(value)
    axis, sign = (0 if heard.edge in ("left", "right") else 1), (1 if heard.edge in ("left", "above") else -1)
    places = sign * (items[:, 4 + axis] + items[:, 6 + axis])
    order = sorted(np.flatnonzero(fits), key=lambda i: places[i])
    return int(order[heard.nth - 2])


def everything(scene: dict[str, Any]) -> list[list[Any]]:
    """All that is said about a scene: data=shapes' kinds, then what else people say."""
    return [*scene["said"], *scene.get("also", [])]


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
        texts = [said[0] for scene in scenes for said in everything(scene)]
        rows.extend(ids + tail for ids in known(texts, add_special_tokens=False)["input_ids"])
        for scene in scenes:
            items.append(np.array(scene["items"], np.float32))
            for text, target, mark, kind in everything(scene):
                mark = before(text, items[-1]) if kind == KINDS.index("ordinal") else mark
                facts.append([target, mark, kind, int("third" not in text)])
            first.append(len(facts))
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int16)
    for k, row in enumerate(rows):
        tokens[k, : len(row)] = torch.tensor(row)
    target, landmark, kind, usual = torch.tensor(facts).T
    return Bank(
        pictures,
        items,
        tokens,
        lengths,
        target,
        landmark,
        kind,
        torch.tensor(first),
        usual * 0.7 + 0.3,
        len(tail),
    )


def pixels(pictures: np.ndarray) -> Tensor:
    """uint8 (n, side, side, 3) → normalised as the processor does it."""
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25


def cell_of(boxes: Tensor, grid: Grid = SQUARE) -> Tensor:
    """Index of the image token in which a box's centre lies."""
    sides = torch.tensor(grid)
    center = ((boxes[..., :2] + boxes[..., 2:]) / 2 * sides).long().clamp(min=0)
    column, row = torch.minimum(center, sides - 1).unbind(-1)
    return row * grid[0] + column
