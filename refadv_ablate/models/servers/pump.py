"""Runs asynchronous calls in a thread of their own, so that an ordinary generator can use them."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pump(Generic[Item, Result]):
    """A thread with an event loop; leaving the context cancels what is not done and closes the loop.

    A thread and not the caller's loop, because the caller may be a notebook that already runs one,
    and because calls in flight go on while the caller stores a result.
    """

    def __init__(self, close: Callable[[], Awaitable[None]]) -> None:
        self.outstanding = 0
        self._close = close
        self._results: queue.SimpleQueue[tuple[Item, Result | BaseException]] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="requests", daemon=True)

    def __enter__(self) -> Pump[Item, Result]:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(timeout=30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()

    def submit(self, item: Item, work: Callable[[Item], Awaitable[Result]]) -> None:
        """Starts work(item) in the loop."""
        self.outstanding += 1
        self._loop.call_soon_threadsafe(self._start, item, work)

    def result(self) -> tuple[Item, Result]:
        """The next item that is done, with its result; raises what its work raised."""
        item, result = self._results.get()
        self.outstanding -= 1
        if isinstance(result, BaseException):
            raise result
        return item, result

    def ready(self) -> Iterator[tuple[Item, Result]]:
        """What is done already, without waiting and without what failed."""
        while not self._results.empty():
            item, result = self._results.get()
            self.outstanding -= 1
            if not isinstance(result, BaseException):
                yield item, result

    def _start(self, item: Item, work: Callable[[Item], Awaitable[Result]]) -> None:
        task = self._loop.create_task(self._run(item, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, item: Item, work: Callable[[Item], Awaitable[Result]]) -> None:
        try:
            self._results.put((item, await work(item)))
        except Exception as error:  # handed to the thread that drains
            self._results.put((item, error))

    async def _shut(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._close()
        await self._loop.shutdown_default_executor()
