"""Examples across all cells of a report: each with the answers of every model to every expression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from refadv_ablate.boxes import Box
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.pages.gallery import flip, pairs_of
from refadv_ablate.report.pages.imagery import images_of
from refadv_ablate.report.pages.thumbnails import Thumbnails
from refadv_ablate.statistics.formatting import cell_name, operator_name
from refadv_ablate.storage.remembered import Remembered
from refadv_ablate.types import ORIGINAL, Comparison, ImageRef, Record

MOST = 60
"""Examples on the page; each cell's gallery has the others."""
Pairs = Sequence[tuple[Cell, Comparison]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: who gave it, to what, and the page of its cell opened at this example."""

    model: str
    prompt: str
    condition: str
    record: Record
    link: str = ""

    @property
    def box(self) -> Box | None:
        """The predicted box where it is one on the original image."""
        return None if self.record.picture else self.record.predicted


@dataclass(slots=True)
class Shown:
    """One example; `image` is a data URI, or empty where the image can't be had."""

    id: str
    data: str
    image: str
    answers: list[Answer] = field(default_factory=list)

    @property
    def flips(self) -> list[tuple[Answer, Answer]]:
        """(original, perturbed) of the cells in which a right answer became a wrong one."""
        before = {(a.model, a.prompt): a for a in self.answers if a.condition == ORIGINAL}
        pairs = ((before.get((a.model, a.prompt)), a) for a in self.answers if a.condition != ORIGINAL)
        return [(o, p) for o, p in pairs if o is not None and flip(o.record, p.record) == "rw"]


def gather(pairs: Pairs, pages: Mapping[str, str], most: int = MOST) -> list[Shown]:
    """The examples that changed sides in most cells; `pages` are the galleries' addresses by `cell_name`."""
    counts = Remembered()
    for cell, comparison in pairs:
        for original, perturbed in _pairs(cell, comparison):
            if flip(original, perturbed) in ("rw", "wr"):
                counts.add(f"{cell.names.data}\0{original.example_id}")
    chosen = [_key(text) for text, _ in counts.top(most)]
    found = _with_images(chosen, pairs)
    for cell, comparison in pairs:
        link = pages.get(cell_name(comparison), "")
        for original, perturbed in _pairs(cell, comparison):
            shown = found.get((cell.names.data, original.example_id))
            if shown is not None:
                _add(shown, cell, comparison, (original, perturbed), link)
    return [found[key] for key in chosen if key in found]


def _key(text: str) -> tuple[str, str]:
    data, _, example = text.partition("\0")
    return data, example


def _pairs(cell: Cell, comparison: Comparison) -> Iterator[tuple[Record, Record]]:
    wanted = (ORIGINAL, comparison.operator)

    def read() -> Iterator[Record]:
        return (record for record in cell.records() if record.condition in wanted)

    return pairs_of(read(), read)


def _with_images(chosen: Sequence[tuple[str, str]], pairs: Pairs) -> dict[tuple[str, str], Shown]:
    """The chosen examples, each with a small image; every data set is opened once."""
    thumbnails = Thumbnails()
    found = {}
    for data in dict.fromkeys(data for data, _ in chosen):
        cells = [cell for cell, _ in pairs if cell.names.data == data]
        wanted = {example for other, example in chosen if other == data}
        image_of = (images_of(cells[0], wanted) if cells else None) or _no_image
        for key in (key for key in chosen if key[0] == data):
            index = thumbnails.add(image_of(key[1]))
            found[key] = Shown(key[1], data, "" if index is None else thumbnails.sources[index])
    return found


def _no_image(_id: str) -> ImageRef | None:
    return None


def _add(shown: Shown, cell: Cell, comparison: Comparison, pair: tuple[Record, Record], link: str) -> None:
    original, perturbed = pair
    place = f"{link}#example={quote(shown.id, safe='')}" if link else ""
    names = (cell.names.model, cell.prompt)
    if not any((a.model, a.prompt, a.condition) == (*names, ORIGINAL) for a in shown.answers):
        shown.answers.append(Answer(*names, ORIGINAL, original))
    draw = f" #{perturbed.draw}" if perturbed.draw else ""
    shown.answers.append(Answer(*names, operator_name(comparison) + draw, perturbed, place))
