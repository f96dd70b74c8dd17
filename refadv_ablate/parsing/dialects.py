"""Reply → Reading: the final answer's boxes, in pixels of the original image, or the reason for none.

Total over any text. What is read is the final answer alone: nothing of a thinking trace, not the
first of several corrected answers, and never four numbers that merely stand in a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal, TypeVar

from refadv_ablate.boxes import Quad
from refadv_ablate.parsing.brackets import Group, Value, Word, scan
from refadv_ablate.parsing.final_answer import TRACE, final_answer, leaves, no_box
from refadv_ablate.types import Dialect, Frame, NoBox, Reading, Reply, Seen

T = TypeVar("T")

BOX_KEYS = (
    "bbox_2d", "bbox", "box_2d", "box", "bboxes", "boxes", "bounding_box", "bounding_boxes",
    "bbox_xyxy", "coordinates", "coord", "location", "position", "predictions", "results", "objects",
    "answer", "final_answer",
)  # fmt: skip
"""Keys under which models write boxes: published prompts and the parsers of public evaluators."""

_SIDES = (
    {"x1", "xmin", "x_min", "left", "x0"},
    {"y1", "ymin", "y_min", "top", "y0"},
    {"x2", "xmax", "x_max", "right"},
    {"y2", "ymax", "y_max", "bottom"},
)
_OPENERS = r"<\|?(?:box_start|begin_of_box|box|det|bbox)\|?>"
_TAGS = re.compile(  # an inside never spans another opener, so the search stays linear
    rf"{_OPENERS}(?P<inside>(?:(?!{_OPENERS}).)*?)<\|?/?(?:end_of_)?(?:box_end|box|det|bbox)\|?>",
    re.IGNORECASE | re.DOTALL,
)
_REF = re.compile(r"<ref>.*?</ref>|<\|object_ref_start\|>.*?<\|object_ref_end\|>|<[^<>]{0,30}>", re.DOTALL)
_TURN = re.compile(r"\b(no|wait|actually|correct(ion|ed)?|sorry|instead|rather|so|final(ly)?|thus|hence"
                   r"|therefore|answer|but|however)\b", re.IGNORECASE)  # fmt: skip
_VERDICT = re.compile(r"\banswer(?:\s+is)?\s*\W{0,4}:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """Boxes of one answer. firm: it is a whole answer even where the reply was cut off after it."""

    quads: tuple[Quad, ...]
    firm: bool = True
    notes: tuple[str, ...] = ()


def read(reply: Reply, dialect: Dialect, frame: Frame, seen: Seen) -> Reading:
    """The box that is scored (the first of the final answer), or why there is none.

    Notes: salvaged, numbers_as_text, and those of the frame. A reply with finish "error" is not an
    answer; reading it is a mistake of the caller and raises ValueError.
    """
    if reply.finish == "error":
        raise ValueError("a failed request is missing data, not an answer to be read")
    found = _find(reply, dialect)
    if isinstance(found, NoBox):
        return Reading(found)
    box, notes = frame.to_pixels(found.quads[0], seen)
    return Reading(box, len(found.quads), found.quads[0], (*found.notes, *notes))


def _find(reply: Reply, dialect: Dialect) -> Found | NoBox:
    cut = reply.finish == "length"
    if reply.finish == "refused":
        return NoBox("refused", "the provider's filter withheld the answer")
    if not reply.text.strip():
        if cut:
            return NoBox("truncated", "the token limit was reached before an answer began")
        return NoBox("empty", "the reply has no text")
    if cut and getattr(dialect, "opens_thinking", False) and not reply.reasoning and not _closed(reply.text):
        return NoBox("truncated", "the token limit was reached within the thinking trace")
    find = getattr(dialect, "find", None)
    found: Found | NoBox = find(reply.text) if find is not None else _plain(dialect.read(reply.text))
    if cut and isinstance(found, NoBox) and found.kind != "refused":
        return NoBox("truncated", f"the token limit was reached before a box was complete ({found.reason})")
    if cut and isinstance(found, Found) and not found.firm:
        return NoBox("truncated", "the token limit was reached before the final answer")
    return found


def _plain(answer: tuple[Quad, ...] | NoBox) -> Found | NoBox:
    return answer if isinstance(answer, NoBox) else Found(answer)


def _closed(text: str) -> bool:
    return any("/" in match.groups() for match in TRACE.finditer(text))


# ── dialects ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BoxText:
    """A family's way to write boxes: which forms count as its answer, best first.

    order: how corners with names (`xmin`, `y2`, …) are put into four numbers, as the frame wants them.
    opens_thinking: the chat template itself opens the trace, so a cut reply without `</think>` is all
    trace.
    """

    keys: tuple[str, ...] = BOX_KEYS
    order: Literal["xyxy", "yxyx"] = "xyxy"
    opens_thinking: bool = False

    forms: ClassVar[tuple[Callable[[BoxText, str], Found | None], ...]] = ()

    def read(self, text: str) -> tuple[Quad, ...] | NoBox:
        """All boxes of the final answer, in order."""
        found = self.find(text)
        return found if isinstance(found, NoBox) else found.quads

    def find(self, text: str) -> Found | NoBox:
        """As `read`, with what was noticed on the way."""
        answer = final_answer(text)
        if isinstance(answer, NoBox):
            return answer
        for form in self.forms:
            found = form(self, answer)
            if found is not None:
                return found
        return no_box(answer)

    def quads(self, groups: Sequence[Value]) -> list[Quad]:
        """Boxes in some groups, without repetitions, in written order."""
        found = chain.from_iterable(self._walk(group) for group in groups)
        return list(dict.fromkeys(found))

    def _walk(self, value: Value) -> list[Quad]:
        if isinstance(value, Word | float):
            return []
        if isinstance(value, str):  # a list inside a string, such as "bbox": "[1, 2, 3, 4]"
            return self.quads(scan(value))
        quad = self._quad(value)
        if quad is not None:
            return [quad]
        named = [item for key in self.keys for name, item in value.items if name == key]
        inside = named or [item for item in value.values() if isinstance(item, Group)]
        return [quad for item in inside for quad in self._walk(item)]

    def _quad(self, group: Group) -> Quad | None:
        """The four numbers of `[a, b, c, d]`, `[[a, b], [c, d]]` or `{"x1": a, …}`, else None."""
        if not group.closed:
            return None
        names = [key for key, _ in group.items if key is not None]
        if names:
            return self._named(group)
        values = group.values()
        if len(values) == 2 and all(isinstance(v, Group) and len(v.items) == 2 for v in values):
            values = [number for pair in group.groups() for number in pair.values()]
        numbers = [number for number in map(_number, values) if number is not None]
        if len(values) != 4 or len(numbers) != 4:
            return None
        return (numbers[0], numbers[1], numbers[2], numbers[3])

    def _named(self, group: Group) -> Quad | None:
        sides = {(key or "").lower(): _number(value) for key, value in group.items}
        corner = [next((v for k, v in sides.items() if k in side), None) for side in _SIDES]
        x1, y1, x2, y2 = corner
        if x1 is None or y1 is None or x2 is None or y2 is None:
            return None
        return (x1, y1, x2, y2) if self.order == "xyxy" else (y1, x1, y2, x2)


def _number(value: Value) -> float | None:
    """A finite number, also where it is written as text ("12"); never a truth value."""
    if isinstance(value, float):
        return value
    if isinstance(value, str) and not isinstance(value, Word):
        inner = scan(f"[{value}]")
        if len(inner) == 1 and len(inner[0].items) == 1 and isinstance(inner[0].values()[0], float):
            return _number(inner[0].values()[0])
    return None


def _fenced(dialect: BoxText, text: str) -> Found | None:
    """The last ``` fence that holds a box; a fence that the token limit left open is salvaged."""
    parts = text.split("```")
    for index in range(len(parts) - 1 - len(parts) % 2, 0, -2):
        groups = scan(parts[index])
        quads = dialect.quads(groups)
        if quads:
            closed = index < len(parts) - 1 or (bool(groups) and groups[-1].closed)
            return _found(quads, groups, firm=True, cut=not closed)
    return None


def _tagged(dialect: BoxText, text: str) -> Found | None:
    """`<box>…</box>`, `<|box_start|>…<|box_end|>`, `<|begin_of_box|>…<|end_of_box|>`, `<|det|>…<|/det|>`."""
    pieces: list[tuple[int, int, list[Quad]]] = []
    every: list[Group] = []
    for tag in _TAGS.finditer(text):
        groups = scan("[" + tag["inside"].replace("<", "[").replace(">", "]") + "]")
        every += groups
        quads = dialect.quads(groups)
        if quads:
            pieces.append((tag.start(), tag.end(), quads))
    quads = last_run(text, pieces)[2]
    return _found(quads, every, firm=True) if quads else None


def _objects(dialect: BoxText, text: str) -> Found | None:
    """JSON objects, or lists of them, wherever they stand; the last run of them is the answer."""
    if "{" not in text:
        return None
    return _bracketed(dialect, text, lambda g: g.opener == "{" or any(i.opener == "{" for i in g.groups()))


def _lists(dialect: BoxText, text: str) -> Found | None:
    """Bare lists of four numbers; the last run of them is the answer."""
    return _bracketed(dialect, text, lambda g: True)


def _bracketed(dialect: BoxText, text: str, wanted: Callable[[Group], bool]) -> Found | None:
    groups = [group for group in scan(text) if wanted(group)]
    pieces = [(g.start, g.end, quads) for g in groups if (quads := dialect.quads([g]))]
    if not pieces:
        return None
    start, end, quads = last_run(text, pieces)
    if not quads:
        return None
    cut = bool(groups) and not groups[-1].closed and end == groups[-1].end
    # after the token limit struck, prose around a box is unfinished reasoning, not an answer
    whole = not text[:start].strip(" \n`*:") or not text[end:].strip(" \n`*.")
    return _found(quads, groups, firm=whole or cut, cut=cut)


def _bare(dialect: BoxText, text: str) -> Found | None:
    """A reply that is nothing but four numbers."""
    if re.fullmatch(r"[\s,;\d.eE+-]+", text):
        quads = dialect.quads(scan(f"[{text}]"))
        return Found(tuple(quads)) if quads else None
    return None


def _found(quads: list[Quad], groups: list[Group], firm: bool, cut: bool = False) -> Found:
    notes = ["salvaged"] * cut
    if any(isinstance(v, str) and not isinstance(v, Word) and _number(v) is not None
           for group in groups for v in leaves(group)):  # fmt: skip
        notes.append("numbers_as_text")
    return Found(tuple(quads), firm, tuple(notes))


def last_run(text: str, pieces: list[tuple[int, int, list[T]]]) -> tuple[int, int, list[T]]:
    """(start, end, items) of the last items that belong together: no sentence or change of mind between.

    After an announcement such as "Answer:", the first that belong together.
    """
    announced = None
    if pieces:
        starts = [piece[0] for piece in pieces]
        ends = [match.end() for match in _VERDICT.finditer(text)]
        outside = [v for v in ends if not (i := bisect_left(starts, v)) or pieces[i - 1][1] <= v]
        announced = next((v for v in reversed(outside) if v <= pieces[-1][0]), None)
    breaks = [i for i in range(1, len(pieces)) if not _joined(text, pieces[i - 1], pieces[i])]
    if announced is not None:
        begin = next(i for i, piece in enumerate(pieces) if piece[0] >= announced)
        pieces = pieces[begin : next((i for i in breaks if i > begin), None)]
    elif breaks:
        pieces = pieces[breaks[-1] :]
    quads = list(dict.fromkeys(chain.from_iterable(piece[2] for piece in pieces)))
    return (pieces[0][0], pieces[-1][1], quads) if pieces else (0, 0, [])


def _joined(text: str, left: tuple[int, int, list[T]], right: tuple[int, int, list[T]]) -> bool:
    between = _REF.sub(" ", text[left[1] : right[0]])
    return len(re.findall(r"[^\W\d_]+", between)) <= 3 and not _TURN.search(between)


class JsonBoxes(BoxText):
    """JSON, fenced or not, as Qwen, Gemini and general chat models write it."""

    __slots__ = ()
    forms = (_fenced, _objects, _tagged, _lists)


class TaggedBoxes(BoxText):
    """Box tokens first, as InternVL, Qwen-VL, GLM and DeepSeek-VL2 write them; brackets or JSON else."""

    __slots__ = ()
    forms = (_tagged, _fenced, _objects, _lists)


class BracketBoxes(BoxText):
    """`[[012,345,678,901;…]]`, as CogVLM writes them; box tokens or JSON else."""

    __slots__ = ()
    forms = (_lists, _tagged)


class PlainBoxes(BoxText):
    """Any of the forms, and a reply that is nothing but four numbers: replayed answers, controls."""

    __slots__ = ()
    forms = (_tagged, _fenced, _objects, _lists, _bare)
