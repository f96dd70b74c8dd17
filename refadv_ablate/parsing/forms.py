"""The forms in which an answer may hold its boxes, each a function from a final answer to what it found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Protocol

from refadv_ablate.boxes import Quad
from refadv_ablate.parsing import bins, keys, prose
from refadv_ablate.parsing.brackets import Group, Value, Word, scan
from refadv_ablate.parsing.final_answer import leaves
from refadv_ablate.parsing.verdict import Piece, choose
from refadv_ablate.types import NoBox

_TAG = re.compile(
    r"<(?P<bar>\|?)(?P<close>/?)(?P<name>box_start|begin_of_box|box_end|end_of_box|box|det|bbox)\|?>",
    re.IGNORECASE,
)
_CLOSERS = ("box_end", "end_of_box")


class Spelling(Protocol):
    """What a form needs to know of a dialect."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys that hold a box."""

    @property
    def order(self) -> Literal["xyxy", "yxyx"]:
        """How four numbers are read."""

    @property
    def pairs(self) -> bool:
        """Whether two points are a box."""


@dataclass(frozen=True, slots=True)
class Found:
    """Boxes of one answer. firm: it is a whole answer even where the reply was cut off after it."""

    quads: tuple[Quad, ...]
    firm: bool = True
    notes: tuple[str, ...] = ()


LOOP = 10
"""Boxes of an answer from which on it may be one that never came to its end."""


def loops(said: Sequence[Quad]) -> bool:
    """Whether an answer says one box over and over, as a model does that never came to its end."""
    return len(said) >= LOOP and Counter(said).most_common(1)[0][1] > len(said) / 2


@dataclass(frozen=True, slots=True)
class Text:
    """A final answer with its brackets, and the boxes in them as the dialect's keys say."""

    dialect: Spelling
    text: str
    groups: Sequence[Group]

    def quads(self, groups: Iterable[Value], pairs: bool = False) -> list[Quad]:
        """Boxes in some groups, without repetitions, in written order."""
        return list(dict.fromkeys(quad for quad, _ in self.labelled(groups, pairs)))

    def labelled(self, groups: Iterable[Value], pairs: bool = False) -> list[tuple[Quad, str]]:
        """Boxes with what the answer calls them, in written order."""
        pairs = pairs or self.dialect.pairs
        return list(chain.from_iterable(self._walk(group, "", pairs) for group in groups))

    def _walk(self, value: Value, label: str, pairs: bool) -> list[tuple[Quad, str]]:
        if isinstance(value, Word | float):
            return []
        if isinstance(value, str):  # a list inside a string, such as "bbox": "[1, 2, 3, 4]"
            return self.labelled(scan(value), pairs)
        quad = self._quad(value, pairs)
        if quad is not None:
            return [(quad, label)]
        named = keys.entries(value)
        if not named:
            return [box for item in value.groups() for box in self._walk(item, label, pairs)]
        if keys.is_tool_call(named):
            return []
        label = next((str(named[k]) for k in ("label", "name", "id") if isinstance(named.get(k), str)), label)
        return [
            box for key, item in keys.where_boxes_are(named) for box in self._under(key, item, named, label)
        ]

    def _under(self, key: str, item: Value, named: dict[str, Value], label: str) -> list[tuple[Quad, str]]:
        """The boxes under a key that may say in which form they are."""
        if isinstance(item, str) and not isinstance(item, Word):
            item = next(iter(scan(item)), None) or scan(f"[{item}]")[0]
        own = "box" in key or key in self.dialect.keys
        form = keys.stated_form(key, named)
        boxes = self._walk(item, label, pairs=own)
        return [(keys.to_corners(quad, form, self.dialect.order), name) for quad, name in boxes]

    def _quad(self, group: Group, pairs: bool) -> Quad | None:
        """The four numbers of `[a, b, c, d]`, `[[a, b], [c, d]]` or `{"x1": a, …}`, else None."""
        if not group.closed:
            return None
        named = keys.entries(group)
        if named:
            sides = None if keys.is_tool_call(named) else keys.corners(named)
            return sides and keys.to_corners(sides, "xyxy", self.dialect.order)
        values = group.values()
        if pairs and len(values) == 2 and all(isinstance(v, Group) and len(v.items) == 2 for v in values):
            return keys.numbers([number for pair in group.groups() for number in pair.values()])
        if len(values) == 5:  # a label first or last
            texts = [v for v in (values[0], values[4]) if isinstance(v, str) and not isinstance(v, Word)]
            if len(texts) == 1 and keys.number(texts[0]) is None:
                values = values[1:] if values[0] is texts[0] else values[:4]
        return None if keys.thousands(group) else keys.numbers(values)


def fenced(answer: Text) -> Found | NoBox | None:
    """The last ``` fence that holds a box; a fence that the token limit left open is salvaged."""
    text = answer.text.replace("~~~", "```")
    parts = text.split("```")
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part) + 3)
    for index in range(len(parts) - 1 - len(parts) % 2, 0, -2):
        groups = scan(parts[index])
        boxes = answer.labelled(groups)
        if boxes:
            closed = index < len(parts) - 1 or (bool(groups) and groups[-1].closed)
            start, end = offsets[index], offsets[index] + len(parts[index])
            fence = _piece(start, min(end + 3, len(text)), boxes)
            chosen = choose(text, [fence]) if len(boxes) > 1 else fence
            if isinstance(chosen, NoBox):
                return chosen
            return _found(chosen.items, groups, firm=True, cut=not closed)
    return None


def _piece(start: int, end: int, boxes: Sequence[tuple[Quad, str]]) -> Piece[Quad]:
    boxes = list(dict(reversed(boxes)).items())[::-1] if len({q for q, _ in boxes}) < len(boxes) else boxes
    return Piece(start, end, tuple(q for q, _ in boxes), tuple(label for _, label in boxes))


def _tag_insides(text: str) -> Iterable[tuple[int, int, str]]:
    """(start, end, inside) of each box tag; one that is never closed encloses what follows it."""
    tags = list(_TAG.finditer(text))
    for index, tag in enumerate(tags):
        if tag["close"] or tag["name"].lower() in _CLOSERS:
            continue
        after = tags[index + 1] if index + 1 < len(tags) else None
        if after is not None and (after["close"] or after["name"].lower() in _CLOSERS):
            yield tag.start(), after.end(), text[tag.end() : after.start()]
        else:
            limit = after.start() if after else len(text)
            opened = re.compile(
                r"\s{0,9}(?:\[[\[\s]{0,9}|\((?=[^()]{1,40}\),)|\()[^\[\]\n]{3,120}?(?:\]{1,3}|\)(?!\s?,))"
            ).match(text, tag.end(), min(limit, tag.end() + 200))
            if opened:
                yield tag.start(), opened.end(), opened[0]


def _tagged_pieces(answer: Text) -> tuple[list[Piece[Quad]], list[Group]]:
    pieces: list[Piece[Quad]] = []
    every: list[Group] = []
    for start, end, inside in _tag_insides(answer.text):
        groups = scan("[" + inside.replace("<", "[").replace(">", "]") + "]")
        every += groups
        boxes = answer.labelled(groups, pairs=True)
        if boxes:
            pieces.append(_piece(start, end, boxes))
    return pieces, every


def tagged(answer: Text) -> Found | NoBox | None:
    """`<box>…</box>`, `<|box_start|>…<|box_end|>`, `<|begin_of_box|>…<|end_of_box|>`, `<|det|>…<|/det|>`."""
    pieces, every = _tagged_pieces(answer)
    if not pieces:
        return None
    if answer.dialect.pairs:  # Qwen-VL's evaluator takes the first token form
        return _found([q for p in pieces for q in p.items], every, firm=True)
    chosen = choose(answer.text, pieces)
    return chosen if isinstance(chosen, NoBox) else _found(chosen.items, every, firm=True)


def objects(answer: Text) -> Found | NoBox | None:
    """JSON objects, or lists of them, wherever they stand; the last verdict among them is the answer."""
    if "{" not in answer.text:
        return None
    return _bracketed(answer, lambda g: g.opener == "{" or any(i.opener == "{" for i in g.groups()))


def lists(answer: Text) -> Found | NoBox | None:
    """Bare lists of four numbers; the last verdict among them is the answer."""
    return _bracketed(answer, lambda g: True)


def _bracketed(answer: Text, wanted: Callable[[Group], bool]) -> Found | NoBox | None:
    text = answer.text
    groups = [group for group in answer.groups if wanted(group)]
    pieces = []
    for group in groups:
        boxes = answer.labelled([group])
        if boxes or keys.says_none(group):
            pieces.append(_piece(group.start, group.end, boxes))
    if not any(piece.items for piece in pieces):
        return NoBox("empty", "the answer lists no box") if pieces else None
    chosen = choose(text, pieces)
    if isinstance(chosen, NoBox):
        return chosen
    if not chosen.items:
        return NoBox("empty", "the last answer lists no box")
    start, end = chosen.start, chosen.end
    cut = bool(groups) and not groups[-1].closed and end == groups[-1].end
    # after the token limit struck, prose around a box is unfinished reasoning, not an answer
    whole = not text[:start].strip(" \n`*:") or not text[end:].strip(" \n`*.")
    return _found(chosen.items, groups, firm=whole or cut, cut=cut)


def first(answer: Text) -> Found | NoBox | None:
    """The first box of the text, in tags or brackets, as the evaluators of InternVL and CogVLM take it."""
    tagged, every = _tagged_pieces(answer)
    listed = [_piece(g.start, g.end, boxes) for g in answer.groups if (boxes := answer.labelled([g]))]
    pieces = sorted([*tagged, *listed], key=lambda piece: piece.start)
    if not pieces:
        return None
    start, end = pieces[0].start, pieces[0].end
    text = answer.text
    whole = bool(tagged) or not text[:start].strip(" \n`*:") or not text[end:].strip(" \n`*.")
    cut = not answer.groups[-1].closed if answer.groups else False
    quads = list(dict.fromkeys(quad for piece in pieces for quad in piece.items))
    return _found(quads, [*every, *answer.groups], firm=whole or cut, cut=cut and not tagged)


def repeats(answer: Text) -> bool:
    """Whether the text says one box over and over; the forms themselves leave repetitions out."""
    if len(answer.text) < LOOP * len("1,2,3,4"):
        return False
    tagged, _ = _tagged_pieces(answer)
    paired = prose.corner_pairs(answer.text) if answer.dialect.pairs else []
    listed = [quad for quad, _ in answer.labelled(answer.groups)]
    return any(loops(said) for said in (listed, _items(tagged), _items(paired)))


def _items(pieces: Iterable[Piece[Quad]]) -> list[Quad]:
    return [quad for piece in pieces for quad in piece.items]


def corner_pairs(answer: Text) -> Found | NoBox | None:
    """The first `(x1,y1),(x2,y2)` of a family that writes corners so."""
    if not answer.dialect.pairs or "quad_start" in answer.text:
        return None
    pieces = prose.corner_pairs(answer.text)
    return Found(tuple(dict.fromkeys(p.items[0] for p in pieces))) if pieces else None


def angles(answer: Text) -> Found | NoBox | None:
    """`<x1, y1, x2, y2>` without its box tokens: GLM's bracket style may vary, as its README says."""
    return _from_prose(answer, prose.angle_lists(answer.text))


def binned(answer: Text) -> Found | NoBox | None:
    """Four location tokens in a row; of several boxes the first counts."""
    quads = bins.quads(answer.text)
    if quads:
        return Found(tuple(dict.fromkeys(quads)), notes=("repeated",) if loops(quads) else ())
    return NoBox("empty", "the answer lists no box") if bins.says_none(answer.text) else None


def named(answer: Text) -> Found | NoBox | None:
    """Corners by name outside brackets: `x1=…`, XML elements, "top left (…), bottom right (…)"."""
    return _from_prose(answer, prose.named_corners(answer.text, answer.dialect.order))


def bare(answer: Text) -> Found | NoBox | None:
    """A reply that is nothing but four numbers, or announces them."""
    return _from_prose(answer, prose.bare_numbers(answer.text))


def _from_prose(answer: Text, pieces: list[Piece[Quad]]) -> Found | NoBox | None:
    if not pieces:
        return None
    chosen = choose(answer.text, pieces)
    return chosen if isinstance(chosen, NoBox) else Found(chosen.items)


def _found(quads: Sequence[Quad], groups: Sequence[Group], firm: bool, cut: bool = False) -> Found:
    notes = ["salvaged"] * cut
    if any(isinstance(v, str) and not isinstance(v, Word) and keys.number(v) is not None
           for group in groups for v in leaves(group)):  # fmt: skip
        notes.append("numbers_as_text")
    return Found(tuple(quads), firm, tuple(notes))
