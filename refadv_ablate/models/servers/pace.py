"""How many calls at once, and whether at all: an adaptive limit and a circuit breaker (one event loop)."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

log = logging.getLogger(__name__)


@dataclass
class Limit:
    """A limit on calls in flight that finds its own height.

    A round is as many answers as the limit is high. Each round the limit grows by an eighth; where
    throughput does not follow (the calls only queue up at the server), it steps back and holds for
    a while. A refusal (429) halves it, once per round.
    """

    start: int
    highest: int
    value: int = field(init=False)
    _before: tuple[int, float] | None = field(default=None, init=False)
    _latencies: list[float] = field(default_factory=list, init=False)
    _hold: int = field(default=0, init=False)
    _patience: int = field(default=4, init=False)
    _refused: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.value = max(1, min(self.start, self.highest))

    def answered(self, seconds: float) -> None:
        """Counts an answer that took so long."""
        self._latencies.append(seconds)
        if len(self._latencies) >= self.value:
            self._end_round()

    def refused(self) -> None:
        """The server wants fewer requests."""
        if not self._refused:
            self._refused = True
            self.value, self._before, self._hold = max(1, self.value // 2), None, 2
            self._latencies.clear()

    def _end_round(self) -> None:
        latency = statistics.median(self._latencies)
        self._latencies.clear()
        self._refused = False
        if self._before is not None and self.value > self._before[0]:
            old, old_latency = self._before
            grown, gained = self.value / old, (self.value / latency) / (old / old_latency)
            if gained < 1 + (grown - 1) / 4:
                self.value, self._before = old, None
                self._hold, self._patience = self._patience, min(64, self._patience * 2)
                return
        if self._hold:
            self._hold -= 1
            return
        self._before = (self.value, latency)
        self.value = min(self.highest, self.value + max(1, self.value // 8))


@dataclass
class Pace:
    """Lets calls through: not more than the limit, none while the server asks for a rest or is gone.

    The breaker opens after twice as many failures in a row as there are requests in the works, then
    lets a single call probe after 1, 2, 4 … 30 s; `patience` seconds without any answer is the end
    (`first_patience` where nothing was ever answered).
    """

    limit: Limit
    patience: float = 300.0
    first_patience: float = 20.0
    clock: Callable[[], float] = time.monotonic
    answers: int = field(default=0, init=False)
    _active: int = field(default=0, init=False)
    _failures: int = field(default=0, init=False)
    _resting_until: float = field(default=0.0, init=False)
    _open_since: float | None = field(default=None, init=False)
    _refused_since: float | None = field(default=None, init=False)
    _pause: float = field(default=1.0, init=False)
    _turn: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)

    @property
    def given_up(self) -> bool:
        """Whether the server has been gone for longer than anyone wants to wait."""
        if self._open_since is None:
            return False
        return self.clock() - self._open_since > (self.patience if self.answers else self.first_patience)

    @property
    def starved(self) -> bool:
        """Whether nothing but refusals came for longer than anyone wants to wait."""
        return self._refused_since is not None and self.clock() - self._refused_since > self.patience

    @property
    def resting(self) -> bool:
        """Whether calls are held back for a while."""
        return self.clock() < self._resting_until

    @property
    def is_open(self) -> bool:
        """Whether the breaker holds calls back because the server seems gone."""
        return self._open_since is not None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A place among the calls in flight."""
        async with self._turn:
            while not self._may_go():
                await self._wait()
            self._active += 1
        try:
            yield
        finally:
            async with self._turn:
                self._active -= 1
                self._turn.notify_all()

    def _may_go(self) -> bool:
        if self.clock() < self._resting_until:
            return False
        return self._active < (1 if self.is_open else self.limit.value)

    async def _wait(self) -> None:
        rest = self._resting_until - self.clock()
        if rest <= 0:
            await self._turn.wait()
            return
        try:
            async with asyncio.timeout(rest):
                await self._turn.wait()
        except TimeoutError:
            return

    def answered(self, seconds: float) -> None:
        """A call came back with anything that only a living server says."""
        self.limit.answered(seconds)
        self.answers += 1
        self.proven()

    def proven(self) -> None:
        """The server lives, whatever it says to the requests that are left."""
        if self.is_open:
            log.warning("the server answers again")
        self._failures, self._open_since, self._refused_since, self._pause = 0, None, None, 1.0

    def refused(self, wait: float | None) -> None:
        """The server lives and wants fewer requests; nobody is let through for `wait` seconds."""
        self.limit.refused()
        self._failures, self._open_since, self._pause = 0, None, 1.0
        self._refused_since = self.clock() if self._refused_since is None else self._refused_since
        if wait:
            if wait > 5 and self._resting_until < self.clock():
                log.warning("the server asks for a rest of %.0f s (rate limit)", wait)
            self._resting_until = max(self._resting_until, self.clock() + wait)

    def failed(self, outstanding: int, reason: str, connected: bool = True) -> None:
        """A call that brought nothing, with so many requests in the works.

        A first call that finds nobody there needs no further ones to say so.
        """
        self._failures += 1
        absent = not connected and not self.answers
        if self.is_open:
            if self.clock() >= self._resting_until:  # the probe, not a call from before the pause
                self._resting_until = self.clock() + self._pause
                self._pause = min(30.0, self._pause * 2)
        elif absent or self._failures >= max(4, 2 * outstanding):
            wait = self.patience if self.answers else self.first_patience
            log.warning("the server doesn't answer (%s): waiting up to %g s for it", reason, wait)
            self._open_since = self.clock()
            self._resting_until = self.clock() + self._pause
            self._pause *= 2
