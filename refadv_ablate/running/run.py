"""The main job on one screen: plan, ask, read.

Answers go to the store the moment they arrive; records are made afterwards, in the order of the data,
from what the store holds. So a run that was interrupted and started again ends with the numbers of one
that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from refadv_ablate.prompting import prompts
from refadv_ablate.running.ask import Keys, ReplyStore, ask, batched
from refadv_ablate.running.plan import Plan, Planned, planned
from refadv_ablate.running.reading import Reader, needs_follow_up
from refadv_ablate.running.record import Further, record
from refadv_ablate.storage.answers import MemoryStore
from refadv_ablate.types import Record, Request

CHUNK = 256
"""Planned requests handled at once; bounds memory, not results."""


def run(plan: Plan, store: ReplyStore, reader: Reader) -> Iterator[Record]:
    """Asks what the store lacks, then yields every record of the plan in the order of the data."""
    keys = Keys(plan.model.identity(), plan.durable)
    if plan.durable:
        yield from _part(plan, keys, lambda: planned(plan, keys), store, reader)
        return
    for batch in batched(planned(plan, keys), CHUNK):
        reader.forget()
        yield from _part(plan, keys, lambda batch=batch: batch, MemoryStore(), reader)  # type: ignore[misc]


def _part(
    plan: Plan, keys: Keys, wanted: Callable[[], Iterable[Planned]], store: ReplyStore, reader: Reader
) -> Iterator[Record]:
    questions = ((p.key, p.request) for p in wanted() if p.request is not None)
    failures = ask(plan.model, questions, store, plan.about, reader.heard)
    if plan.retry:
        turns = (item for _, item in _follow_ups(plan, keys, wanted(), store, reader))
        failures |= ask(plan.model, turns, store, plan.about, lambda *_: None)
    for batch in batched(wanted(), CHUNK):
        asked = [p for p in batch if p.request is not None]
        replies = store.get_many([p.key for p in asked])
        further = _finished(plan, keys, batch, store, reader) if plan.retry else {}
        for p in batch:
            found = record(p, replies.get(p.key), further.get(p.key), failures, reader)
            reader.note(p, found)
            yield found


def _follow_ups(
    plan: Plan, keys: Keys, planned: Iterable[Planned], store: ReplyStore, reader: Reader
) -> Iterator[tuple[str, tuple[str, Request]]]:
    """First key → key and request of the further turn, for each answer that needs one."""
    for batch in batched(planned, CHUNK):
        replies = store.get_many([p.key for p in batch if p.request])
        for p in batch:
            reply = replies.get(p.key)
            if p.request is not None and reply is not None and needs_follow_up(reader.read(p.request, reply)):
                request = prompts.follow_up(p.request, reply, plan.style)
                yield p.key, (keys(request), request)


def _finished(
    plan: Plan, keys: Keys, batch: Sequence[Planned], store: ReplyStore, reader: Reader
) -> dict[str, Further]:
    wanted = dict(_follow_ups(plan, keys, batch, store, reader))
    replies = store.get_many([key for key, _ in wanted.values()])
    return {first: Further(key, request, replies.get(key)) for first, (key, request) in wanted.items()}
