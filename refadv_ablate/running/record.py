"""From a planned answer and its reply to the record that is scored and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from refadv_ablate import changes
from refadv_ablate.boxes import SAME_FRAME, Box, Size
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.parsing.landing import landing
from refadv_ablate.running.plan import Planned
from refadv_ablate.running.reading import Reader, added, score_of
from refadv_ablate.types import (
    ORIGINAL,
    ORIGINAL_OR_NONE,
    Confidence,
    Example,
    Record,
    Reply,
    Request,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Further:
    """The second turn of an answer that needed one; reply is None where none came."""

    key: str
    request: Request
    reply: Reply | None


def record(
    planned: Planned,
    reply: Reply | None,
    further: Further | None,
    failures: Mapping[str, str],
    reader: Reader,
) -> Record:
    """The record of one planned answer; `further` is the second turn, where there was one.

    A second turn that was never answered leaves the answer missing, not wrong: the next run asks it.
    """
    perturbed, request = planned.perturbed, planned.request
    example, original = perturbed.example, perturbed.original
    before = original.target if perturbed.frame is SAME_FRAME else perturbed.frame(original.target)
    blank = Record(
        example_id=example.id,
        image_key=original.image.key,
        condition=planned.condition,
        draw=planned.draw,
        status=perturbed.status,
        expression=example.expression,
        original_expression=original.expression,
        target=example.target,
        outcome="not_perturbable",
        reason=perturbed.reason,
        category=example.category,
        distractors=example.distractors,
        negation=example.negation,
        source=example.source,
        split=example.split,
        attributes=example.attributes,
        trace=perturbed.trace,
        image_digest=reader.content(original.image),
        expectation=perturbed.expectation,
        part=perturbed.part,
        placebo=perturbed.placebo,
        frame=perturbed.frame,
        original_target=before if before != example.target else None,
        picture=changes.picture(perturbed),
        or_none=bool(request and request.options.get("or_none")),
    )
    if planned.unaskable:
        return replace(blank, outcome="missing", reason=planned.unaskable, size=_size(example))
    if request is None:
        return blank
    if reply is None or (further is not None and further.reply is None):
        key = further.key if further else planned.key
        reason = failures.get(key, "it was not answered before the run stopped")
        usage = reply.usage if reply else Usage()
        return replace(blank, outcome="missing", reason=reason, size=_size(example), usage=usage)
    return _answered(blank, request, reply, further, reader)


def _size(example: Example) -> Size:
    """Of the image, (0, 0) where it can't be had."""
    try:
        return example.image.size()
    except ImageUnreadable:
        return 0, 0


def as_original(record: Record) -> Record:
    """The record as a cell has it: there is one original condition, whichever question it was asked with."""
    return replace(record, condition=ORIGINAL) if record.condition == ORIGINAL_OR_NONE else record


def _answered(
    blank: Record, request: Request, reply: Reply, further: Further | None, reader: Reader
) -> Record:
    usage = reply.usage
    notes: tuple[str, ...] = ()
    if further is not None and further.reply is not None:
        usage = added(reply.usage, further.reply.usage)
        request, reply = further.request, further.reply
        notes = ("retried",)
    reading = reader.read(request, reply)
    sure = reader.confidence(request, reply, reading)
    if isinstance(sure, str):
        notes = (*notes, sure)
    answer = reading.answer
    example, size = request.perturbed.example, reader.seen(request, reply).original
    box = answer if isinstance(answer, Box) else None
    return replace(
        blank,
        landed=landing(box, blank.target, example.candidates, example.category, size),
        outcome="box" if isinstance(answer, Box) else answer.kind,
        predicted=box,
        iou=score_of(answer, blank.target),
        reason="" if isinstance(answer, Box) else answer.reason,
        n_boxes=reading.n_boxes,
        notes=(*reading.notes, *notes),
        size=size,
        text=reply.text,
        reasoning=reply.reasoning,
        usage=usage,
        attempts=reply.attempts,
        engine=reply.engine,
        confidence=sure if isinstance(sure, Confidence) else None,
    )
