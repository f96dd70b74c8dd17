"""Reply → Reading: the final answer's boxes, in pixels of the original image, or the reason for none.

Total over any text. What is read is the final answer alone: nothing of a thinking trace or a tool call, not
the first of several corrected answers, no box that the answer rejects, and never four numbers that merely
stand in a sentence. The rules with their sources: docs/answers.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from refadv_ablate.boxes import Quad
from refadv_ablate.parsing import forms
from refadv_ablate.parsing.brackets import scan
from refadv_ablate.parsing.final_answer import TRACE, final_answer, no_box
from refadv_ablate.parsing.forms import Found, Text
from refadv_ablate.parsing.keys import BOX_KEYS
from refadv_ablate.types import Dialect, Frame, NoBox, Reading, Reply, Seen


def read(reply: Reply, dialect: Dialect, frame: Frame, seen: Seen) -> Reading:
    """The box that is scored (the first of the final answer), or why there is none.

    Notes: salvaged, numbers_as_text, repeated, and those of the frame. A reply with finish "error" is not an
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
    if isinstance(answer, NoBox):
        return answer
    return Found(answer, notes=("repeated",) if forms.loops(answer) else ())


def _closed(text: str) -> bool:
    return any("/" in match.groups() for match in TRACE.finditer(text))


# ── dialects ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BoxText:
    """A family's way to write boxes: which forms count as its answer, best first.

    order: how corners with names (`xmin`, `y2`, …) are put into four numbers, as the frame wants them.
    opens_thinking: the chat template itself opens the trace, so a cut reply without `</think>` is all
    trace.
    pairs: the family writes corners as two points, so `(x1,y1),(x2,y2)` is a box without its tokens too.
    first: the family's own evaluator takes the first box of the text, whatever is said around it.
    """

    keys: tuple[str, ...] = BOX_KEYS
    order: Literal["xyxy", "yxyx"] = "xyxy"
    opens_thinking: bool = False
    pairs: bool = False
    first: bool = False

    forms: ClassVar[tuple[Callable[[Text], Found | NoBox | None], ...]] = ()

    def read(self, text: str) -> tuple[Quad, ...] | NoBox:
        """All boxes of the final answer, in order."""
        found = self.find(text)
        return found if isinstance(found, NoBox) else found.quads

    def find(self, text: str) -> Found | NoBox:
        """As `read`, with what was noticed on the way."""
        answer = final_answer(text)
        if isinstance(answer, NoBox):
            return answer
        refused: NoBox | None = None
        scanned = Text(self, answer, scan(answer))
        for form in (
            *((forms.first,) if self.first else ()),
            *self.forms,
            forms.corner_pairs,
            forms.named,
            forms.bare,
        ):
            found = form(scanned)
            if isinstance(found, Found):
                loop = forms.repeats(scanned) and "repeated" not in found.notes
                return replace(found, notes=(*found.notes, "repeated")) if loop else found
            refused = refused or found
        return refused or no_box(answer)


class JsonBoxes(BoxText):
    """JSON, fenced or not, as Qwen, Gemini and general chat models write it."""

    __slots__ = ()
    forms = (forms.fenced, forms.objects, forms.tagged, forms.corner_pairs, forms.lists)


class TaggedBoxes(BoxText):
    """Box tokens first, as InternVL, Qwen-VL, GLM and DeepSeek-VL2 write them; brackets or JSON else."""

    __slots__ = ()
    forms = (forms.tagged, forms.fenced, forms.objects, forms.lists, forms.angles)


class BinBoxes(BoxText):
    """Location tokens, as Rex-Omni (`<12><305><480><999>`) and PaliGemma (`<loc0012>…`) write them; brackets
    or JSON else."""

    __slots__ = ()
    forms = (forms.binned, forms.fenced, forms.objects, forms.lists)


class BracketBoxes(BoxText):
    """`[[012,345,678,901;…]]`, as CogVLM writes them; box tokens or JSON else."""

    __slots__ = ()
    forms = (forms.lists, forms.tagged)


class PlainBoxes(BoxText):
    """Any of the forms: replayed answers, controls."""

    __slots__ = ()
    forms = (forms.tagged, forms.fenced, forms.objects, forms.lists)
