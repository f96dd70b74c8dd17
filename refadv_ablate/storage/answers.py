"""The prediction store: what a model answered, kept under a hash of everything that determines it.

One store serves all runs, so that no question is asked twice, and any number of processes may use it at
once. SQLite in WAL mode by default, PostgreSQL where many machines write. SQLite needs a local disk: its
locks are unreliable on network file systems, so on a cluster give each node its own file or use PostgreSQL.

An answer is there completely or not at all; the first one under a key stays. Each row carries a checksum
over its key and content, so that a damaged or misplaced answer is an error and never somebody's score.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from sqlalchemy.engine import make_url

from refadv_ablate.errors import FieldError, UserError
from refadv_ablate.storage.database import Database, Row, damaged, resolve
from refadv_ablate.storage.jsonl import to_line
from refadv_ablate.storage.records import reply_from_json, reply_to_json, unstorable
from refadv_ablate.types import EMPTY, Json, Reply

T = TypeVar("T")


def checksum(table: str, key: str, value: str) -> str:
    """16 hexadecimal digits over place and content."""
    text = f"{table}\n{key}\n{value}"
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class MemoryStore:
    """Replies by key as long as the process lives: `store=none`, and answers that cost nothing."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies that it has of these keys."""
        return {key: self.replies[key] for key in keys if key in self.replies}

    def put_many(self, items: Iterable[tuple[str, Reply]], about: Mapping[str, str] = EMPTY) -> None:
        """Keeps them, errors left out; the first under a key stays. `about` is not needed."""
        for key, reply in items:
            if reply.finish != "error":
                self.replies.setdefault(key, reply)

    def close(self) -> None:
        """Nothing to free."""


class Store:
    """Replies by key (64 hexadecimal digits), in a database.

    `url`: an SQLAlchemy URL of SQLite or PostgreSQL, or the path of an SQLite file; a relative path is
    taken against `base` (the launch directory). Raises UserError for what can't be used.
    """

    def __init__(self, url: str, base: Path | str | None = None) -> None:
        self.url = resolve(url, base).render_as_string(hide_password=False)
        self.database = Database(make_url(self.url))
        """For statistics and housekeeping."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return type(self), (self.url,)  # a worker process opens its own connections

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies that the store has of these keys. Raises UserError for a damaged row."""
        return self._get("replies", keys, reply_from_json)

    def put_many(self, items: Iterable[tuple[str, Reply]], about: Mapping[str, str] = EMPTY) -> None:
        """Keeps all of them for good, in one transaction, or raises; errors (finish "error") are left out.

        `about` may hold the labels "model" and "run", for `stats` and `prune`. Raises UserError, and
        FieldError for a reply of odd types, which no later run could read.
        """
        kept = [(key, reply) for key, reply in items if reply.finish != "error"]
        for key, reply in kept:
            if problem := unstorable(reply):
                raise FieldError(f"the reply under {key[:12]}… can't be kept: {problem}")
        self._put("replies", ((key, reply_to_json(reply)) for key, reply in kept), about)

    def close(self) -> None:
        """Frees connections; may be called twice."""
        self.database.close()

    def _get(self, table: str, keys: Sequence[str], make: Callable[[Json], T]) -> dict[str, T]:
        found: dict[str, T] = {}
        for key, value, mark in self.database.get(table, keys):
            try:
                if mark != checksum(table, key, value):
                    raise FieldError("its checksum is wrong")
                found[key] = make(json.loads(value))
            except (ValueError, RecursionError) as error:
                raise UserError(
                    damaged(make_url(self.url), f"row {key[:12]}… of {table}: {error}")
                ) from error
        return found

    def _put(self, table: str, items: Iterable[tuple[str, Json]], about: Mapping[str, str]) -> None:
        now, model, run = time.time(), str(about.get("model", "")), str(about.get("run", ""))
        rows = []
        for key, item in items:
            value = to_line(item)
            rows.append(Row(key, value, checksum(table, key, value), now, model, run))
        if rows:
            # One order in every process: two that write the same keys wait for each other, not crosswise.
            self.database.put(table, sorted(rows, key=lambda row: row.key))


def open_store(url: str, base: Path | str | None = None) -> Store | MemoryStore:
    """The store that is meant: "none" keeps answers in memory only, for anything else see Store."""
    return MemoryStore() if url == "none" else Store(url, base)
