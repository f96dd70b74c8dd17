"""A store as a run sees it that asks for log-probabilities: answers kept without them count as not there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from refadv_ablate.storage.answers import MemoryStore, Store
from refadv_ablate.types import EMPTY, Reply, TokenLogprobs

NONE_GIVEN = "the engine gives none"


@dataclass(frozen=True)
class WithLogprobs:
    """Asking for log-probabilities changes no text, so they are no part of an answer's key.

    An answer that has them, or that says why it has none, serves every run. One that was stored before
    anybody asked for them stays what it is, for the results that were made from it; the same question is
    then asked once more, and that answer lies under a key of its own.
    """

    store: Store | MemoryStore

    def __enter__(self) -> WithLogprobs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies to these keys that have log-probabilities or say why not."""
        found = self.store.get_many(keys)
        bare = [key for key, reply in found.items() if reply.logprobs is None]
        again = self.store.get_many([asked_again(key) for key in bare]) if bare else {}
        for key in bare:
            del found[key]
            if (reply := again.get(asked_again(key))) is not None:
                found[key] = reply
        return found

    def put_many(self, items: Iterable[tuple[str, Reply]], about: Mapping[str, str] = EMPTY) -> None:
        """Keeps them for good; beside the answer that is there without log-probabilities, where one is."""
        given = [(key, _said(reply)) for key, reply in items]
        self.store.put_many(given, about)
        kept = self.store.get_many([key for key, _ in given])
        late = [
            (asked_again(key), reply) for key, reply in given if key in kept and kept[key].logprobs is None
        ]
        if late:
            self.store.put_many(late, about)

    def close(self) -> None:
        """Closes the store."""
        self.store.close()


def asked_again(key: str) -> str:
    """The key of the answer that was asked for once more, with log-probabilities."""
    return hashlib.sha256(f"{key} logprobs".encode()).hexdigest()


def _said(reply: Reply) -> Reply:
    return reply if reply.logprobs is not None else replace(reply, logprobs=TokenLogprobs(lacks=NONE_GIVEN))
