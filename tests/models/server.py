"""A local OpenAI-compatible server that answers, dawdles, fails and dies as a test tells it to.

Run as a program it serves until it is ended: python tests/models/server.py --latency 0.2 --slots 32
prints its address on the first line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

BOX = '```json\n[{"bbox_2d": [10, 20, 110, 220], "label": "it"}]\n```'


@dataclass(frozen=True)
class Say:
    text: str | None = BOX
    finish: str = "stop"
    reasoning: str | None = None
    input_tokens: int = 100
    output_tokens: int = 20
    latency: float | None = None
    reasoning_field: str = "reasoning_content"


@dataclass(frozen=True)
class Fail:
    status: int
    message: str = "it failed"
    headers: dict[str, str] = field(default_factory=dict)
    code: str | None = None


@dataclass(frozen=True)
class Drop:
    """The connection ends without an answer."""


@dataclass(frozen=True)
class Garbage:
    """200, and then no JSON."""


@dataclass(frozen=True)
class Raw:
    """200 with this JSON, which need not be a chat completion."""

    body: Any
    content_type: str = "application/json"


Action = Say | Fail | Drop | Garbage | Raw


@dataclass
class Server:
    """Use as a context manager; `script` gets the number of the call (from 0) and its body."""

    script: Callable[[int, dict[str, Any]], Action] = lambda n, body: Say()
    latency: float = 0.0
    slots: int = 10_000
    keep: bool = True
    owner: str = ""
    """How it signs its list of models, as vLLM signs "vllm"; "" has no such list."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    calls: int = 0
    busy: int = 0
    busiest: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)

    def stop(self) -> None:
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _open(self) -> None:
        self._gate = asyncio.Semaphore(self.slots)
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/v1/chat/completions", self._chat)
        if self.owner:
            app.router.add_get("/v1/models", self._models)
            app.router.add_get("/version", self._version)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        self._listening = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        await web.SockSite(self._runner, self._listening, backlog=1024).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        """Stop accepting before closing.

        Else asyncio leaves a connection unclosed that it accepted a moment before, and the warning fails
        whichever test runs when it is collected.
        """
        self._loop.remove_reader(self._listening.fileno())
        await asyncio.sleep(0)  # what is accepted already becomes a connection, which the clean-up closes
        await self._runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "some/model", "owned_by": self.owner}]})

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.32.0"})

    async def _chat(self, call: web.Request) -> web.StreamResponse:
        body = await call.json()
        number, self.calls = self.calls, self.calls + 1
        if self.keep:
            self.bodies.append(body)
            self.headers.append(dict(call.headers))
        action = self.script(number, body)
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            async with self._gate:
                wait = getattr(action, "latency", None)
                await asyncio.sleep(self.latency if wait is None else wait)
        finally:
            self.busy -= 1
        return self._respond(call, body, action)

    def _respond(self, call: web.Request, body: dict[str, Any], action: Action) -> web.StreamResponse:
        if isinstance(action, Fail):
            error = {"message": action.message, "type": "error", "code": action.code}
            return web.json_response({"error": error}, status=action.status, headers=action.headers)
        if isinstance(action, Drop):
            assert call.transport is not None
            call.transport.close()
            return web.Response()
        if isinstance(action, Garbage):
            return web.Response(text="<html>busy</html>", content_type="application/json")
        if isinstance(action, Raw):
            return web.Response(text=json.dumps(action.body), content_type=action.content_type)
        message: dict[str, Any] = {"role": "assistant", "content": action.text}
        if action.reasoning is not None:
            message[action.reasoning_field] = action.reasoning
        used = {
            "prompt_tokens": action.input_tokens,
            "completion_tokens": action.output_tokens,
            "total_tokens": action.input_tokens + action.output_tokens,
        }
        choice = {"index": 0, "message": message, "finish_reason": action.finish, "logprobs": None}
        return web.json_response(
            {
                "id": "chat-1",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [choice],
                "usage": used,
            }
        )


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--latency", type=float, default=0.2)
    words.add_argument("--slots", type=int, default=32)
    told = words.parse_args()
    with Server(latency=told.latency, slots=told.slots, keep=False) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
