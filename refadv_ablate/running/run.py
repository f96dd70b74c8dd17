"""The main job on one screen: plan, ask, read, compare.

Every condition of an example is planned next to the others, so that a server's image cache and an
engine's shared preprocessing can be used. Answers go to the store the moment they arrive; records are
made afterwards, in the order of the data, from what the store holds. So a run that was interrupted and
started again ends with the numbers of one that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.errors import ImageUnreadable, UserError
from refadv_ablate.parsing import dialects
from refadv_ablate.parsing.frames import ENOUGH, FrameCheck
from refadv_ablate.prompting import prompts
from refadv_ablate.running.ask import Keys, ReplyStore, ask, batched
from refadv_ablate.storage.jsonl import FieldError
from refadv_ablate.storage.records import perturbed_from_json
from refadv_ablate.types import (
    EMPTY,
    ORIGINAL,
    Data,
    Example,
    ImageRef,
    Json,
    Model,
    ModelSpec,
    NoBox,
    Perturbed,
    Reading,
    Record,
    Reply,
    Request,
    Seen,
    Usage,
)

CHUNK = 256
"""Planned requests handled at once; bounds memory, not results."""


class Watch(Protocol):
    """What a live display hears of a run."""

    def reply(
        self, condition: str, reading: Reading | None, score: float | None, reply: Reply, stored: bool
    ) -> None:
        """One answer; reading and score are None where the model never answered."""

    def warn(self, text: str) -> None:
        """Something that should be known before the run ends."""


@dataclass(frozen=True)
class Job:
    """One model, one data set, one prompt style, any number of operators."""

    data: Data
    spec: ModelSpec
    model: Model
    style: prompts.Style
    texts: Mapping[str, Callable[[], Iterator[Mapping[str, Json]]]]
    """Operator label → its perturbed texts, each draw of each example in the order of the data."""
    draws: Mapping[str, int]
    repeats: frozenset[str] = frozenset()
    """Labels of no-op arms, asked past the store."""
    limit: int | None = None
    retry: bool = False
    """One further turn that asks for the box alone, after an answer without a readable box."""
    durable: bool = True
    """False for models that answer in microseconds: nothing is stored."""
    notice: Mapping[str, Callable[[Request], float | None]] = field(default_factory=dict)
    """Name → a fact of an original request, such as the chance level; averaged where it is known."""
    about: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """Labels kept beside stored answers."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One answer of the plan; without a request where no perturbed text exists."""

    condition: str
    draw: int
    perturbed: Perturbed
    request: Request | None = None
    key: str = ""


def examples(data: Data, limit: int | None) -> Iterator[Example]:
    """The first `limit` examples of the data, or all."""
    for index, example in enumerate(data):
        if limit is not None and index >= limit:
            return
        yield example


def plan(job: Job, keys: Keys) -> Iterator[Planned]:
    """Every answer that is wanted, example by example: the original, then each operator's draws."""
    streams = {label: read() for label, read in job.texts.items()}
    for example in examples(job.data, job.limit):
        yield _planned(job, keys, Perturbed(example, example, "unchanged"), ORIGINAL, 0)
        for label, stream in streams.items():
            for draw in range(job.draws[label]):
                yield _planned(job, keys, _perturbed(stream, label, example), label, draw)


def _perturbed(stream: Iterator[Mapping[str, Json]], label: str, example: Example) -> Perturbed:
    """The next text, for this example; UserError where the texts are of other examples."""
    try:
        line = next(stream, None)
        if line is not None:
            return perturbed_from_json(line, example)
        reason = f"there is none for {example.id!r}"
    except FieldError as error:
        reason = str(error)
    raise UserError(
        f"the texts of {label} were made for other examples than the data has now ({reason}): images or rows "
        "came or went since; give another out=, or delete the file of these texts under out/texts"
    )


def _planned(job: Job, keys: Keys, perturbed: Perturbed, condition: str, draw: int) -> Planned:
    if perturbed.status == "not_perturbable":
        return Planned(condition, draw, perturbed)
    repeat = draw + 1 if condition in job.repeats else 0
    request = prompts.build(job.spec, job.style, perturbed, condition, draw, repeat)
    return Planned(condition, draw, perturbed, request, keys(request))


class Reader:
    """Reads replies in the model's dialect and frame, and watches whether they fit the frame."""

    def __init__(self, job: Job, watch: Watch) -> None:
        self.job, self.watch = job, watch
        self.checks: dict[str, FrameCheck] = {}
        self.noticed: dict[str, list[float]] = {name: [0.0, 0] for name in job.notice}
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
        dialect, frame = prompts.reading(self.job.spec, self.job.style, request)
        found = dialects.read(reply, dialect, frame, self.seen(request, reply))
        if not self.job.durable:
            self._known[id(reply)] = (reply, found)
        return found

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
            frame = prompts.reading(self.job.spec, self.job.style, request)[1]
            check = self.checks[request.condition] = FrameCheck(frame, request.condition)
        check.add(reading, self.seen(request, reply), request.perturbed.example.id)
        if check.boxes == ENOUGH and (found := check.warnings()):
            for text in found:
                self.watch.warn(text)

    def note(self, planned: Planned, record: Record) -> None:
        """Counts what a finished record says beside its score."""
        self.usage[record.condition] = added(self.usage.get(record.condition, Usage()), record.usage)
        if record.outcome in ("missing", "not_perturbable"):
            reasons = self.lost if record.outcome == "missing" else self.refused
            reasons.setdefault(record.condition, f"example {record.example_id}: {record.reason}")
        if planned.condition == ORIGINAL and planned.request is not None:
            for name, fact in self.job.notice.items():
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


class Remembered:
    """A store that lasts as long as the process, for answers that cost nothing."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """What it has of these keys."""
        return {key: self.replies[key] for key in keys if key in self.replies}

    def put_many(self, items: Iterable[tuple[str, Reply]], about: Mapping[str, str]) -> None:
        """Keeps them; `about` is not needed."""
        self.replies.update(items)


def run(job: Job, store: ReplyStore, reader: Reader) -> Iterator[Record]:
    """Asks what the store lacks, then yields every record of the plan in the order of the data."""
    keys = Keys(job.model.identity(), job.durable)
    if job.durable:
        yield from _part(job, keys, lambda: plan(job, keys), store, reader)
        return
    for batch in batched(plan(job, keys), CHUNK):
        reader.forget()
        yield from _part(job, keys, lambda batch=batch: batch, Remembered(), reader)  # type: ignore[misc]


def _part(
    job: Job, keys: Keys, planned: Callable[[], Iterable[Planned]], store: ReplyStore, reader: Reader
) -> Iterator[Record]:
    wanted = ((p.key, p.request) for p in planned() if p.request is not None)
    failures = ask(job.model, wanted, store, job.about, reader.heard)
    if job.retry:
        turns = (item for _, item in _follow_ups(job, keys, planned(), store, reader))
        failures |= ask(job.model, turns, store, job.about, lambda *_: None)
    for batch in batched(planned(), CHUNK):
        asked = [p for p in batch if p.request is not None]
        replies = store.get_many([p.key for p in asked])
        further = _finished(job, keys, batch, store, reader) if job.retry else {}
        for p in batch:
            found = record(p, replies.get(p.key), further.get(p.key), failures, reader)
            reader.note(p, found)
            yield found


def _follow_ups(
    job: Job, keys: Keys, planned: Iterable[Planned], store: ReplyStore, reader: Reader
) -> Iterator[tuple[str, tuple[str, Request]]]:
    """First key → key and request of the further turn, for each answer that needs one."""
    for batch in batched(planned, CHUNK):
        replies = store.get_many([p.key for p in batch if p.request])
        for p in batch:
            reply = replies.get(p.key)
            if p.request is not None and reply is not None and needs_follow_up(reader.read(p.request, reply)):
                request = prompts.follow_up(p.request, reply, job.style)
                yield p.key, (keys(request), request)


@dataclass(frozen=True, slots=True)
class Further:
    """The second turn of an answer that needed one; reply is None where none came."""

    key: str
    request: Request
    reply: Reply | None


def _finished(
    job: Job, keys: Keys, batch: Sequence[Planned], store: ReplyStore, reader: Reader
) -> dict[str, Further]:
    wanted = dict(_follow_ups(job, keys, batch, store, reader))
    replies = store.get_many([key for key, _ in wanted.values()])
    return {first: Further(key, request, replies.get(key)) for first, (key, request) in wanted.items()}


def needs_follow_up(reading: Reading) -> bool:
    """Whether the answer held no box that could be read, for a reason that a further turn may mend."""
    return isinstance(reading.answer, NoBox) and reading.answer.kind in ("empty", "unparsable", "truncated")


def score_of(answer: Box | NoBox, target: Box) -> float:
    """IoU with the referent's box; an answer without a box scores 0."""
    return iou(answer, target) if isinstance(answer, Box) else 0.0


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
    example, request = planned.perturbed.example, planned.request
    blank = Record(
        example_id=example.id,
        image_key=example.image.key,
        condition=planned.condition,
        draw=planned.draw,
        status=planned.perturbed.status,
        expression=example.expression,
        original_expression=planned.perturbed.original.expression,
        target=example.target,
        outcome="not_perturbable",
        reason=planned.perturbed.reason,
        category=example.category,
        distractors=example.distractors,
        negation=example.negation,
        source=example.source,
        split=example.split,
        attributes=example.attributes,
        trace=planned.perturbed.trace,
        image_digest=reader.content(example.image),
    )
    if request is None:
        return blank
    if reply is None or (further is not None and further.reply is None):
        key = further.key if further else planned.key
        reason = failures.get(key, "it was not answered before the run stopped")
        usage = reply.usage if reply else Usage()
        return replace(blank, outcome="missing", reason=reason, size=example.image.size(), usage=usage)
    return _answered(blank, request, reply, further, reader)


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
    answer = reading.answer
    return replace(
        blank,
        outcome="box" if isinstance(answer, Box) else answer.kind,
        predicted=answer if isinstance(answer, Box) else None,
        iou=score_of(answer, blank.target),
        reason="" if isinstance(answer, Box) else answer.reason,
        n_boxes=reading.n_boxes,
        notes=(*reading.notes, *notes),
        size=reader.seen(request, reply).original,
        text=reply.text,
        reasoning=reply.reasoning,
        usage=usage,
        attempts=reply.attempts,
    )


def added(a: Usage, b: Usage) -> Usage:
    """The sum of two."""
    return Usage(a.input_tokens + b.input_tokens, a.output_tokens + b.output_tokens, a.usd + b.usd)
