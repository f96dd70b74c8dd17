"""Which of several boxes in one text is meant: each box's part in its sentence, then the verdict.

A box that is rejected ("not the man at …"), that is the image's extent, stands in a question or gives a
reason is no answer. Of the rest the last verdict counts, else the candidate that a later sentence names,
else the last boxes that stand together. The words are those of `cues`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Literal, TypeVar

from refadv_ablate.parsing import cues
from refadv_ablate.parsing.naming import named
from refadv_ablate.types import NoBox

T = TypeVar("T")
_BLANK = re.compile(r"[\s,;\[\](){}\"'-]*")
_SAYS = re.compile(r"[^\s,;\[\](){}\"'-]")
_BULLETS = " \t*-`#$>|•_"
Part = Literal["", "rejected", "whole", "question", "compared", "reason", "supposed"]
_NEXT_CLAUSE = re.compile(r"(?:,\s*)?\b(?:and|but|while|whereas|und|et|y|и)\s|;", re.IGNORECASE)
_IS = re.compile(r"\b(?:is|are|was|ist|est|es)\b|的.{0,8}(?:位于|在|是)", re.IGNORECASE)
_AND = re.compile(
    r"[\s,;/&]*(?:and|or|nor|und|oder|et|ou|y|o|e|и|или|和|或|与|と|や|및|와|과|ve|ya da)?[\s,;/&]*",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<ref>[^<]{0,200}</ref>|<\|object_ref_start\|>[^<]{0,200}<\|object_ref_end\|>|<[^<>]{0,30}>"
)
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_CJK}]{{1,2}}|[^\W\d_{_CJK}]+")


@dataclass(frozen=True, slots=True)
class Piece(Generic[T]):
    """Boxes (or marks) that are written together. No items: the answer says that there is none.

    label: what the answer itself calls them, such as the "label" of a JSON object, for each item.
    """

    start: int
    end: int
    items: tuple[T, ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Seen(Generic[T]):
    piece: Piece[T]
    part: Part
    near: bool
    level: int
    turned: bool


def choose(text: str, pieces: Sequence[Piece[T]]) -> Piece[T] | NoBox:
    """The pieces that are the answer, as one. Linear in the text; `pieces` are in order and apart."""
    seen: list[_Seen[T]] = []
    for index, piece in enumerate(pieces):
        before = pieces[index - 1].end if index else 0
        after = pieces[index + 1].start if index + 1 < len(pieces) else len(text)
        seen.append(_look(text, piece, before, after, seen, index + 1 < len(pieces)))
    kept = _kept(seen)
    if not kept and re.search(
        r"\bneither\b", text[max(0, pieces[0].start - cues.WINDOW) : pieces[0].start], re.I
    ):
        return NoBox("empty", "the answer says of each box that it is none")
    if not kept:
        return NoBox("unparsable", "the only box of the answer is one that it rejects")
    told = _told(text, pieces, kept)
    return told if told is not None else _run(text, kept)


def _kept(seen: list[_Seen[T]]) -> list[_Seen[T]]:
    """Those that may be meant, after the last change of mind."""
    free = [s for s in seen if not s.part]
    kept = free or [s for s in seen if not (s.near and s.part in ("rejected", "whole", "question"))]
    turns = [i for i, s in enumerate(kept) if s.turned]
    return kept[turns[-1] :] if turns else kept


def _told(text: str, pieces: Sequence[Piece[T]], kept: list[_Seen[T]]) -> Piece[T] | NoBox | None:
    """What sentences behind the last box say about listed candidates."""
    if len(pieces) < 2 and len(pieces[0].items) < 2:
        return None
    tail = text[pieces[-1].end : pieces[-1].end + 2 * cues.WINDOW]
    if cues.NONE_MATCHES.search(tail) and max(s.level for s in kept) < 2:
        return NoBox("empty", "the answer lists candidates and says that none matches")
    if any(s.level == 2 for s in kept) and not any(s.level == 2 for s in kept[-1:]):
        return None
    flat = [
        (Piece(p.start, p.end, (item,)), p.labels[i] if i < len(p.labels) else "")
        for p in pieces
        for i, item in enumerate(p.items)
    ]
    leads = [text[max(0, p.start - 120) : p.start] for p, _ in flat]
    answer = named(leads, [label for _, label in flat], tail)
    if isinstance(answer, NoBox) or answer is None:
        return answer
    return flat[answer][0]


def _run(text: str, kept: list[_Seen[T]]) -> Piece[T]:
    """The pieces of the last verdict, else the last that stand together."""
    level = max(s.level for s in kept)
    runs: list[list[_Seen[T]]] = [[kept[0]]]
    for left, right in pairwise(kept):
        if _joined(text, left.piece, right.piece, right):
            runs[-1].append(right)
        else:
            runs.append([right])
    if level:
        marked = [run for run in runs if any(s.level == level for s in run)]
        run = marked[-1]
        run = run[next(i for i, s in enumerate(run) if s.level == level) :]
    else:
        run = runs[-1]
    items = tuple(dict.fromkeys(item for s in run for item in s.piece.items))
    return Piece(run[0].piece.start, run[-1].piece.end, items)


def _joined(text: str, left: Piece[T], right: Piece[T], seen: _Seen[T]) -> bool:
    if right.start - left.end > cues.WINDOW:
        return False
    between = _TAG.sub(" ", text[left.end : right.start])
    signs = (cues.TURN, cues.BREAK, cues.ANSWER_AFTER)
    apart = seen.level or any(sign.search(between) for sign in signs)
    return len(_WORD.findall(between)) <= 3 and not apart


def _look(text: str, piece: Piece[T], before: int, after: int, seen: list[_Seen[T]], more: bool) -> _Seen[T]:
    gap = text[max(before, piece.start - cues.WINDOW) : piece.start]
    if (
        before
        and more
        and _BLANK.fullmatch(gap)
        and not _SAYS.search(text[piece.end : min(after, piece.end + cues.WINDOW)])
    ):
        return _Seen(piece, seen[-1].part, seen[-1].near, 0, False)
    lead, whole = _lead(gap)
    tail = text[piece.end : min(after, piece.end + cues.WINDOW)]
    stop = cues.SENTENCE_END.search(tail)
    rest = tail[: stop.start()] if stop else tail
    complete = stop is not None
    if more and not complete and (clause := _NEXT_CLAUSE.search(rest)):
        rest, complete = rest[: clause.start()], True
    turned = bool(before and cues.TURN.search(gap))
    part: Part
    if seen and seen[-1].part and _AND.fullmatch(gap.strip(_BULLETS)):
        part, near = seen[-1].part, seen[-1].near
    else:
        company = (bool(seen) and whole) or (more and stop is None)
        asked = stop is not None and tail[stop.start()] == "?"
        part, near = _part(lead, rest, asked, company, more and not complete)
    return _Seen(piece, part, near, 0 if part else _level(lead, rest), turned and not part)


def _lead(gap: str) -> tuple[str, bool]:
    """The words of a box's own sentence before it, and whether that sentence begins before the gap."""
    ends = [match.end() for match in cues.SENTENCE_END.finditer(gap)]
    for index in range(len(ends) - 1, -2, -1):
        lead = gap[ends[index] if index >= 0 else 0 :]
        words = lead.strip(_BULLETS + "\n")
        if words or index < 0 or gap[ends[index] - 1] != "\n":
            # a line above a box on its own line is its lead-in where it is a heading
            above = index < len(ends) - 1
            heading = words[-1:] in (":", "") or len(_WORD.findall(words)) <= 8
            return (lead, index < 0) if not above or heading else ("", index < 0)
    return gap, True


def _part(lead: str, rest: str, asked: bool, company: bool, more: bool) -> tuple[Part, bool]:
    """The part of a box that is no answer, and whether the words that say so stand right beside it."""
    clause = lead[max(lead.rfind(sign) for sign in ":;") + 1 :]
    if asked and len(rest) < 40:
        return "question", True
    whole = _last(cues.WHOLE_BEFORE, lead)
    if whole > _last(cues.ANSWER_BEFORE, lead) and not cues.FILLS.search(lead[:whole]):
        return "whole", True
    rejected = _last(cues.REJECTED_BEFORE, clause or lead)
    behind = (clause or lead)[rejected:]
    if rejected >= 0 and rejected + 1 >= _last(cues.ANSWER_BEFORE, clause or lead) and "," not in behind:
        described = (clause or lead)[:rejected].strip(" ,(—–-") and _IS.search(behind)
        if not described:
            return "rejected", len(_WORD.findall(behind)) <= 6
    return _behind(clause, rest, company, more)


def _behind(clause: str, rest: str, company: bool, more: bool) -> tuple[Part, bool]:
    """As `_part`, for what the words behind a box say of it and for the weaker words before it."""
    short = rest[:60].split(",")[0]
    says = cues.REJECTED_AFTER.search(short)
    # "[…] is not […]" denies the second box, where the words end at it; a postposition denies the first
    denied = cues.POSTFIX.search(short) or (says and short[says.end() :].strip(" .") + ("" if more else "x"))
    right = cues.ANSWER_AFTER.search(short)
    if denied and not (right and (says is None or right.end() <= says.start())):
        return "rejected", not re.search(r"\b(?:is|are|was) not \w+ing\b", short)
    verdict = _last(cues.ANSWER_BEFORE, clause)
    if verdict < 0 <= _last(cues.REASON_BEFORE, clause):
        return "reason", False
    if _last(cues.SUPPOSED_BEFORE, clause) > max(verdict, _last(cues.SO_BEFORE, clause)):
        return "supposed", False
    if company and not cues.ANSWER_AFTER.search(rest):
        compared = _last(cues.COMPARED_BEFORE, clause)
        behind = clause[compared:]
        if compared > verdict and "," not in behind and not _IS.search(behind):
            return "compared", False
        if cues.COMPARED_AFTER.search(rest):
            return "compared", False
    return "", False


def _level(lead: str, rest: str) -> int:
    if cues.ANSWER_BEFORE.search(lead) or cues.ANSWER_AFTER.search(rest):
        return 2
    return 1 if cues.SO_BEFORE.search(lead) else 0


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in pattern.finditer(text)), default=-1)
