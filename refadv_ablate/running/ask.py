"""Getting answers: what the store has is not asked again, what it lacks is asked once.

The key of an answer is a hash of everything that determines it: the model's identity (checkpoint,
revision, engine), each message byte for byte, the digest of each image as it is sent, the sampling
parameters and the options. Nothing else enters: not the run, the operator's name, the batch or the order.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol, TypeVar

from refadv_ablate.seeding import canonical, digest, encoded
from refadv_ablate.storage.records import unstorable
from refadv_ablate.types import Model, Reply, Request

T = TypeVar("T")
ASKED = "something was answered"
"""Note on an error that came after the first reply: no mistake in the command."""
LOOKUP = 256
"""Requests looked up in the store at once; bounds memory, not results."""


class ReplyStore(Protocol):
    """What asking needs of the prediction store."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies it has of these keys."""

    def put_many(self, items: Iterable[tuple[str, Reply]], about: Mapping[str, str]) -> None:
        """Keeps replies for good, or raises."""


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` items, lazily."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


@dataclass(frozen=True)
class Keys:
    """Makes the store's keys for one model. `durable` false: answers are cheap, keys are request ids."""

    identity: Mapping[str, object]
    durable: bool = True
    _prefix: str = field(default="", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prefix", digest(self.identity))

    def __call__(self, request: Request) -> str:
        """64 hexadecimal digits."""
        if not self.durable:
            return digest(request.id, request.repeat, len(request.messages))
        parts = [
            [
                message.role,
                *(part if isinstance(part, str) else {"image": part.digest()} for part in message.parts),
            ]
            for message in request.messages
        ]
        text = canonical([self._prefix, parts, request.sampling.key(), dict(request.options), request.repeat])
        return hashlib.sha256(encoded(text)).hexdigest()


def ask(
    model: Model,
    requests: Iterable[tuple[str, Request]],
    store: ReplyStore,
    about: Mapping[str, str],
    seen: Callable[[Request, Reply, bool], None],
) -> dict[str, str]:
    """Asks what the store lacks and keeps each answer at once; returns key → error of what has none.

    `seen(request, reply, stored)` is called for each answer, whether it was in the store already or
    is new. Equal keys are asked once.
    """
    failures: dict[str, str] = {}
    pending: dict[str, str] = {}
    asked: set[int] = set()
    """Keys that are on their way, or that failed."""
    kept: deque[int] = deque()
    """Those among them whose answers are in the store by now."""

    def lacking() -> Iterator[Request]:
        for batch in batched(requests, LOOKUP):
            while kept:  # before looking up: from here on the store knows them
                asked.discard(kept.popleft())
            known = store.get_many([key for key, _ in batch])
            by_image: dict[str, list[tuple[str, Request]]] = {}
            for key, request in batch:
                short = int(key[:15], 16)
                if key in known:
                    seen(request, known[key], True)
                elif short not in asked:
                    asked.add(short)
                    by_image.setdefault(request.image.key, []).append((key, request))
            for key, request in chain.from_iterable(by_image.values()):  # image caches hold the last few
                pending[request.id + f"|{len(request.messages)}"] = key
                yield request

    def keep(request: Request, reply: Reply) -> Reply:
        key = pending.pop(request.id + f"|{len(request.messages)}")
        if reply.finish != "error" and (problem := unstorable(reply)):
            reply = Reply("", "error", error=f"the reply can't be kept: {problem}", attempts=reply.attempts)
        if reply.finish == "error":
            failures[key] = reply.error
        else:
            store.put_many([(key, reply)], about)
            kept.append(int(key[:15], 16))
        return reply

    heard = False
    answers = iter(model.answer(lacking()))
    try:
        for request, reply in answers:
            heard = True
            seen(request, keep(request, reply), False)
    except BaseException as error:
        if heard:
            error.add_note(ASKED)
        _rescue(answers, error, keep)
        raise
    return failures


def _rescue(
    answers: Iterator[tuple[Request, Reply]], error: BaseException, keep: Callable[[Request, Reply], object]
) -> None:
    """Keeps what an engine has received already, whatever ends the run; no further call is made.

    The engine hears of the error where it stands: one that has answers waiting hands them over.
    """
    if not isinstance(answers, Generator):
        return
    with suppress(BaseException):  # the first error is the one to tell: the disk may be full
        answer = answers.throw(error)
        while True:
            keep(*answer)
            answer = next(answers)
    answers.close()
