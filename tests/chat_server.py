"""An OpenAI-compatible chat server that answers by a script, good or bad, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Failure:
    """An HTTP error instead of an answer."""

    status: int
    message: str = "scripted failure"
    retry_after: str | None = None


Script = Callable[[dict[str, Any]], "str | Failure"]


@dataclass
class Chat:
    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def chat_server(script: Script) -> Iterator[Chat]:
    """Serves `script(request body)` on a free local port."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                chat.asked.append(body)
            answer = script(body)
            if isinstance(answer, Failure):
                headers = {"Retry-After": answer.retry_after} if answer.retry_after else {}
                self.reply(answer.status, {"error": {"message": answer.message}}, headers)
                return
            choice = {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": answer},
            }
            usage = {"prompt_tokens": 230, "completion_tokens": 12, "total_tokens": 242}
            self.reply(
                200,
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": body["model"],
                    "choices": [choice],
                    "usage": usage,
                },
                {},
            )

        def reply(self, status: int, value: Any, headers: dict[str, str]) -> None:
            raw = json.dumps(value).encode()
            self.send_response(status)
            for name, text in {
                "Content-Type": "application/json",
                "Content-Length": str(len(raw)),
                **headers,
            }.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    chat = Chat(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
