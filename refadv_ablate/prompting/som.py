"""Set-of-Marks: numbers drawn on candidate boxes, and answers with a number read back to the box.

Yang et al. 2023 mark the masks of Semantic-SAM, SAM or SEEM. Here a mark is the outline of a candidate
box with a number plate, whichever source the candidates come from; there are no mask contours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from refadv_ablate.boxes import Box, Quad, Size, iou
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.brackets import Group, Value, Word, scan
from refadv_ablate.parsing.final_answer import final_answer, no_box
from refadv_ablate.parsing.forms import Found
from refadv_ablate.parsing.keys import entries, is_tool_call
from refadv_ablate.parsing.verdict import Piece, choose
from refadv_ablate.seeding import canonical
from refadv_ablate.types import Example, ImageRef, Json, NoBox, Request

if TYPE_CHECKING:
    from PIL import Image

LEGIBLE = 448
"""Images whose longer side is shorter than this are enlarged before they are marked, pixels."""

RECALL_IOU = 0.5
"""A candidate this close to the referent's box counts as finding it."""


class Candidates(Protocol):
    """A source of candidate boxes."""

    def boxes(self, example: Example) -> tuple[Box, ...]:
        """Boxes in pixels of the original image, in the order of their numbers (1, 2, …)."""

    def identity(self) -> Mapping[str, Json]:
        """What determines the boxes besides the example. JSON."""


def reading_order(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """From top to bottom, then left to right: a number says nothing about which box is the referent."""
    return tuple(sorted(set(boxes), key=lambda b: (b.center[1], b.center[0], b.area, b.x1)))


@dataclass(frozen=True, slots=True)
class DataCandidates:
    """The data's own instance boxes."""

    def boxes(self, example: Example) -> tuple[Box, ...]:
        """Raises UserError for an example without them."""
        if not example.candidates:
            raise UserError(
                f"the data has no candidate boxes for example {example.id}; "
                "use prompt=som_sam, or prompt=som_file with a JSON file of boxes"
            )
        return reading_order([candidate.box for candidate in example.candidates])

    def identity(self) -> Mapping[str, Json]:
        """The boxes are the data's."""
        return {"source": "data"}


def recalled(request: Request) -> bool | None:
    """Whether a marked candidate meets the referent at IoU 0.5; None for a request without marks.

    Its mean over examples is the candidate recall, which bounds the accuracy of Set-of-Marks.
    """
    if "marks" not in request.options:
        return None
    target = request.perturbed.example.target
    return any(iou(Box(*quad), target) >= RECALL_IOU for quad in request.options["marks"])


# ── marks ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Marked:
    """An image with numbered marks; the same image for the inference."""

    of: ImageRef
    marks: tuple[Box, ...] = field(repr=False)

    @property
    def key(self) -> str:
        """The key of the image underneath."""
        return self.of.key

    def size(self) -> Size:
        """That of the image underneath, times a whole number where it is too small for legible numbers."""
        width, height = self.of.size()
        times = self._times()
        return width * times, height * times

    def _times(self) -> int:
        return -(-LEGIBLE // max(1, *self.of.size()))

    def load(self) -> Image.Image:
        """RGB, with the marks."""
        from refadv_ablate.prompting.marks import draw_marks

        image, times = self.of.load(), self._times()
        if times > 1:
            image = image.resize(self.size(), resample=0)
        scaled = [Box(*(times * side for side in box.as_list())) for box in self.marks]
        return draw_marks(image, scaled)

    def digest(self) -> str:
        """SHA-256 over the image, the marks and the way they are drawn."""
        from refadv_ablate.prompting.marks import VERSION

        told = canonical([self.of.digest(), [box.as_list() for box in self.marks], VERSION])
        return hashlib.sha256(told.encode()).hexdigest()


# ── answers ─────────────────────────────────────────────────────────────────────────────────────

_KEYS = (
    "mark",
    "marks",
    "mark_id",
    "number",
    "id",
    "label",
    "region",
    "answer",
    "object",
    "objects",
    "result",
)
# a number is a whole token: no 3.5, 3rd, 12:30 or 1/2
_WORDS = re.compile(
    r"(?:\b(?:mark|marker|number|object|region|label|box|candidate|no)\b\.?|#|标记|标号"
    r"|编号|数字|番号|マーク|번호|마크)"
    r"\s{0,3}(?:(?:is|number|no)\b\.?|[:#]|是|为|は)?\s{0,3}[(*#\"\[]{0,4}(\d{1,4})(?![A-Za-z0-9_%²³½]|[.:/,-]\d)",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"\b(?:final answer|answer)\b(?:\s+is)?|答案(?:是|为)?|最终|答え(?:は)?|正解(?:は)?"
    r"|정답(?:은)?|\b(?:antwort|réponse|respuesta"
    r"|resposta|risposta|ответ)\b(?:\s(?:ist|est|es|é|è))?",
    re.IGNORECASE,
)
_ALONE = re.compile(r"[^\w-]*(\d{1,4})\W*")
_AFTER_VERDICT = re.compile(
    r"[^\w\[]{0,6}(?:(?:is|mark|number|object|region)\s){0,2}#?(\d{1,4})(?![A-Za-z0-9_%²³½]|[.:/,-]\d)"
)


@dataclass(frozen=True, slots=True)
class MarkNumbers:
    """Answers such as `[3]`, `mark 3` or `{"mark": 3}`, as the box of that mark."""

    marks: tuple[Box, ...] = field(repr=False)

    def read(self, text: str) -> tuple[Quad, ...] | NoBox:
        """The boxes of the numbers of the final answer, pixels of the original image."""
        found = self.find(text)
        return found if isinstance(found, NoBox) else found.quads

    def find(self, text: str) -> Found | NoBox:
        """As `read`; a number amid reasoning is not firm."""
        answer = final_answer(text)
        if isinstance(answer, NoBox):
            return answer
        numbers = self._numbers(answer)
        if isinstance(numbers, NoBox):
            return numbers
        if not numbers:
            found = no_box(answer)
            told = NoBox("unparsable", "no mark number in the answer")
            return found if found.kind in ("empty", "refused") else told
        boxes = [self.marks[n - 1] for n in numbers if 1 <= n <= len(self.marks)]
        if not boxes:
            return NoBox("unparsable", f"there is no mark {numbers[0]}; the marks are 1 to {len(self.marks)}")
        firm = bool(_VERDICT.search(answer) or re.match(r"\W*(?:mark\W*)?\d", answer, re.I) or "}" in answer)
        return Found(tuple((b.x1, b.y1, b.x2, b.y2) for b in boxes), firm)

    def _numbers(self, text: str) -> tuple[int, ...] | NoBox:
        """The clearest form there is: JSON, then `[3]`, then words, then a bare number; the last verdict."""
        groups = [group for group in scan(text) if group.closed]
        objects = [Piece(g.start, g.end, _keyed(g)) for g in groups if g.opener == "{"]
        lists = [Piece(g.start, g.end, _whole(g.values())) for g in groups if g.opener == "["]
        words = [Piece(m.start(), m.end(), (int(m[1]),)) for m in _WORDS.finditer(text)]
        # "number 12" beside "[3]" may be a player's; behind "final answer" it is the mark
        told = [v for verdict in _VERDICT.finditer(text) if (v := _behind(text, verdict.end()))]
        for pieces in (objects, _apart([*lists, *told]), _apart([*words, *told])):
            said = [piece for piece in pieces if piece.items]
            if said:
                chosen = choose(text, said)
                return chosen if isinstance(chosen, NoBox) else chosen.items
        bare = _ALONE.fullmatch(text) if len(text) < 200 else None
        return (int(bare[1]),) if bare else ()


def _behind(text: str, end: int) -> Piece[int] | None:
    """The mark right behind a verdict, in words or as a number alone."""
    found = _WORDS.match(text, end + 1) or _AFTER_VERDICT.match(text, end)
    return Piece(found.start(1), found.end(), (int(found[1]),)) if found else None


def _apart(pieces: Sequence[Piece[int]]) -> list[Piece[int]]:
    """The pieces in order, without those that lie within the one before."""
    kept: list[Piece[int]] = []
    for piece in sorted(pieces, key=lambda p: (p.start, -p.end)):
        if piece.items and not (kept and piece.start < kept[-1].end):
            kept.append(piece)
    return kept


def _keyed(group: Group) -> tuple[int, ...]:
    named = entries(group)
    if is_tool_call(named):
        return ()
    for key in _KEYS:
        if key in named:
            value = named[key]
            values = value.values() if isinstance(value, Group) else [value]
            if numbers := _whole(values):
                return numbers
    return ()


def _whole(values: Sequence[Value]) -> tuple[int, ...]:
    """The values as mark numbers, empty if one of them is none."""
    numbers = []
    for value in values:
        if isinstance(value, str) and not isinstance(value, Word):
            digits = re.fullmatch(r"\D{0,12}(\d{1,4})[^\w.]*", value)
            value = float(digits[1]) if digits else -1.0
        if not isinstance(value, float) or value != int(value) or value < 0:
            return ()
        numbers.append(int(value))
    return tuple(numbers)
