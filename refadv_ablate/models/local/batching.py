"""Which requests go together, and how many: batches of like length, a size that finds its own height."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from refadv_ablate.models.local.preparing import PIXELS, Prepared
from refadv_ablate.seeding import canonical


@dataclass
class BatchSize:
    """Doubles after each batch that fitted, halves on out-of-memory and stays below that."""

    value: int
    highest: int
    grows: bool = True
    _ceiling: int = field(init=False)

    def __post_init__(self) -> None:
        self._ceiling = self.highest
        self.value = min(self.value, self.highest)

    def fitted(self, count: int) -> None:
        """A batch of so many went through."""
        if self.grows and count * 2 > self.value:  # batches are cut between images
            self.value = min(self._ceiling, self.value * 2)

    def too_many(self, count: int) -> None:
        """A batch of so many didn't fit in memory."""
        self._ceiling = self.value = max(1, count // 2)


def kind(item: Prepared) -> str:
    """Requests of one kind may share a call of generate."""
    sampling = item.request.sampling
    alone = [item.request.id, item.request.repeat] if sampling.temperature > 0 else None
    limits = [sampling.max_new_tokens, sampling.repetition_penalty]
    return canonical([limits, item.request.options.get("stop"), alone])


def arranged(items: Iterable[Prepared]) -> list[list[Prepared]]:
    """By kind: requests of one image next to each other, images by the longest of their requests."""
    lists = []
    for _, same in groupby(sorted(items, key=kind), key=kind):
        by_image: dict[tuple[str, ...], list[Prepared]] = {}
        for item in same:
            by_image.setdefault(tuple(p.key for p in item.images), []).append(item)
        groups = sorted(by_image.values(), key=lambda group: max(item.length for item in group))
        lists.append([item for group in groups for item in sorted(group, key=lambda item: item.length)])
    return lists


def take(todo: deque[Prepared], size: int) -> list[Prepared]:
    """The next batch: up to `size`, cut between images rather than within one where half a batch allows."""
    batch = [todo.popleft() for _ in range(min(size, len(todo)))]
    if todo and todo[0].images and todo[0].images[0] is batch[-1].images[0]:
        edge = next((i for i in range(len(batch) - 1, 0, -1) if not _same_image(batch[i], batch[i - 1])), 0)
        if edge * 2 >= size:
            todo.extendleft(reversed(batch[edge:]))
            del batch[edge:]
    return batch


def _same_image(a: Prepared, b: Prepared) -> bool:
    return [p.key for p in a.images] == [p.key for p in b.images]


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs of one generate call. first, index: for shared vision, the first place of each distinct
    image among the images of the batch, and for each of those which distinct one it is."""

    inputs: dict[str, Any]
    rows: tuple[int, ...]
    first: tuple[int, ...]
    index: tuple[int, ...]

    @property
    def shares(self) -> bool:
        """Whether an image occurs more than once, and its pixels are in `inputs` only once."""
        return len(self.first) < len(self.index)


def collated(items: Sequence[Prepared], pad: int, share: bool) -> Batch:
    """Left-padded tokens; with `share`, the pixels of each distinct image once."""
    import torch

    inputs = {name: _left_padded([i.tokens[name] for i in items], pad if name == "input_ids" else 0)
              for name in items[0].tokens}  # fmt: skip
    for name in items[0].other:
        inputs[name] = torch.cat([item.other[name] for item in items])
    everyone = [pixels for item in items for pixels in item.images]
    places: dict[str, int] = {}
    first: list[int] = []
    for place, pixels in enumerate(everyone):
        if not share or pixels.key not in places:
            places[pixels.key if share else f"{place}"] = len(first)
            first.append(place)
    index = [places[p.key] if share else place for place, p in enumerate(everyone)]
    if everyone and PIXELS in everyone[0].fields:
        inputs[PIXELS] = torch.cat([everyone[place].fields[PIXELS] for place in first])
    rows = tuple(int(everyone[place].fields[PIXELS].shape[0]) for place in first)
    return Batch(inputs, rows, tuple(first), tuple(index))


def _left_padded(rows: Sequence[Any], value: int) -> Any:
    import torch

    longest = max(row.shape[0] for row in rows)
    out = torch.full((len(rows), longest), value, dtype=rows[0].dtype)
    for number, row in enumerate(rows):
        out[number, longest - row.shape[0] :] = row
    return out


def windows(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of up to `size`, pulled as they are asked for."""
    from itertools import islice

    while window := list(islice(items, size)):
        yield window
