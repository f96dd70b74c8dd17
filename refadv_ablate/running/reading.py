"""Replies as readings: each in its model's dialect and frame, with a watch on whether they fit the frame."""

from __future__ import annotations

from typing import Protocol

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.edits import Edited
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.parsing import dialects
from refadv_ablate.parsing.confidence import confidence
from refadv_ablate.parsing.frame_check import ENOUGH, FrameCheck
from refadv_ablate.parsing.rejection import with_none
from refadv_ablate.prompting import prompts
from refadv_ablate.running.plan import Plan, Planned
from refadv_ablate.types import Confidence, ImageRef, NoBox, Reading, Record, Reply, Request, Seen, Usage


class Watch(Protocol):
    """What a live display hears of a run."""

    def reply(
        self, condition: str, reading: Reading | None, score: float | None, reply: Reply, stored: bool
    ) -> None:
        """One answer; reading and score are None where the model never answered."""

    def warn(self, text: str) -> None:
        """Something that should be known before the run ends."""


class Reader:
    """Reads replies in the model's dialect and frame, and watches whether they fit the frame."""

    def __init__(self, plan: Plan, watch: Watch) -> None:
        self.plan, self.watch = plan, watch
        self.checks: dict[str, FrameCheck] = {}
        self.noticed: dict[str, list[float]] = {name: [0.0, 0] for name in plan.notice}
        self.usage: dict[str, Usage] = {}
        self.lost: dict[str, str] = {}
        """Condition → the first reason why an example was never answered."""
        self.refused: dict[str, str] = {}
        """Condition → the first reason why an expression could not be perturbed."""
        self._known: dict[int, tuple[Reply, Reading]] = {}
        self._sized: tuple[ImageRef, Size] | None = None
        self._told: tuple[ImageRef, str] | None = None

    def read(self, request: Request, reply: Reply) -> Reading:
        """The reading of one reply; depends on nothing else."""
        known = self._known.get(id(reply))
        if known is not None and known[0] is reply:
            return known[1]
        dialect, frame = prompts.reading(self.plan.spec, self.plan.style, request)
        found = dialects.read(reply, dialect, frame, self.seen(request, reply))
        if request.options.get("or_none"):
            found = with_none(found, reply)
        if not self.plan.durable:
            self._known[id(reply)] = (reply, found)
        return found

    def confidence(self, request: Request, reply: Reply, reading: Reading) -> Confidence | str | None:
        """How sure the answer is, or why that can't be told; None where nobody asked."""
        if reply.logprobs is None and reply.confidence is None:
            return None
        dialect, _ = prompts.reading(self.plan.spec, self.plan.style, request)
        marks = [tuple(quad) for quad in request.options.get("marks", ())]
        return confidence(reply, reading, marks, first=bool(getattr(dialect, "first", False)))

    def forget(self) -> None:
        """Drops the readings of answers that aren't stored; they live as long as their batch."""
        self._known.clear()

    def seen(self, request: Request, reply: Reply) -> Seen:
        """The sizes of the image: stored, sent, and as the processor made it if the engine reported it."""
        stored = request.perturbed.example.image
        original = self._size(stored)
        sent = original if request.image is stored else request.image.size()
        return Seen(original, sent, reply.processed)

    def _size(self, image: ImageRef) -> Size:
        """Requests of one example come together, and asking a file system for its size takes its time."""
        if self._sized is None or self._sized[0] is not image:
            self._sized = (image, image.size())
        return self._sized[1]

    def content(self, image: ImageRef) -> str:
        """What tells the image apart by its content: 16 digits of its digest; empty where it isn't here."""
        if self._told is None or self._told[0] is not image:
            try:
                digest = image.digest()[:16]
            except ImageUnreadable:
                digest = ""
            self._told = (image, digest)
        return self._told[1]

    def heard(self, request: Request, reply: Reply, stored: bool) -> None:
        """Shows a new answer to the watch and to the frame check of its condition."""
        if reply.finish == "error":
            self.watch.reply(request.condition, None, None, reply, stored)
            return
        reading = self.read(request, reply)
        score = score_of(reading.answer, request.perturbed.example.target)
        self.watch.reply(request.condition, reading, score, reply, stored)
        self._check(request, reply, reading)

    def _check(self, request: Request, reply: Reply, reading: Reading) -> None:
        check = self.checks.get(request.condition)
        if check is None:
            frame = prompts.reading(self.plan.spec, self.plan.style, request)[1]
            check = self.checks[request.condition] = FrameCheck(frame, request.condition)
        example = request.perturbed.example
        empty = isinstance(example.image, Edited) and example.image.is_empty
        seen, part = self.seen(request, reply), request.perturbed.part
        check.add(reading, seen, example.id, example.target, empty=empty, part=part)
        if check.boxes == ENOUGH and (found := check.warnings()):
            for text in found:
                self.watch.warn(text)

    def note(self, planned: Planned, record: Record) -> None:
        """Counts what a finished record says beside its score."""
        self.usage[record.condition] = added(self.usage.get(record.condition, Usage()), record.usage)
        if record.outcome in ("missing", "not_perturbable"):
            reasons = self.lost if record.outcome == "missing" else self.refused
            reasons.setdefault(record.condition, f"example {record.example_id}: {record.reason}")
        if planned.condition == self.plan.originals()[0] and planned.request is not None:
            for name, fact in self.plan.notice.items():
                value = fact(planned.request)
                if value is not None:
                    self.noticed[name][0] += value
                    self.noticed[name][1] += 1

    def facts(self) -> dict[str, float]:
        """Means of what was noticed, and `<name>_n`, over how many examples."""
        means = {name: total / n for name, (total, n) in self.noticed.items() if n}
        return means | {f"{name}_n": n for name, (_, n) in self.noticed.items() if n}

    def warnings(self) -> dict[str, tuple[str, ...]]:
        """What looks wrong with the frame, by condition."""
        return {condition: check.warnings() for condition, check in self.checks.items()}


def needs_follow_up(reading: Reading) -> bool:
    """Whether the answer held no box that could be read, for a reason that a further turn may mend."""
    return isinstance(reading.answer, NoBox) and reading.answer.kind in ("empty", "unparsable", "truncated")


def score_of(answer: Box | NoBox, target: Box) -> float:
    """IoU with the referent's box; an answer without a box scores 0."""
    return iou(answer, target) if isinstance(answer, Box) else 0.0


def added(a: Usage, b: Usage) -> Usage:
    """The sum of two."""
    return Usage(a.input_tokens + b.input_tokens, a.output_tokens + b.output_tokens, a.usd + b.usd)
