"""500 requests to a local server with fixed latency and slots: against the limit, against one at a time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from refadv_ablate.models.openai import OpenAI
from tests.models.asking import Drawn, ask, spec

SERVER = Path(__file__).resolve().parents[1] / "tests" / "models" / "server.py"
LATENCY, SLOTS, MANY, FEW = 0.2, 32, 500, 20


def run() -> list[dict[str, Any]]:
    """The best of three, from the first request to the last answer, images encoded and sent on the way."""
    with server() as url:
        timed(url, 2 * SLOTS)  # warm
        ours = min(timed(url, MANY, concurrency=SLOTS) for _ in range(3))
        one = timed(url, FEW, concurrency=1, max_concurrency=1) / FEW * MANY
    limit = MANY * LATENCY / SLOTS
    what = f"{MANY} requests to a server, {LATENCY * 1000:.0f} ms, {SLOTS} slots"
    rows = [
        (what, "n · latency / slots", ours, limit, ours / limit, "≤ 1.10"),
        (what, "one after the other", ours, one, one / ours, "≥ 25"),
    ]
    return [row(*values) for values in rows]


def row(what: str, against: str, ours: float, theirs: float, ratio: float, goal: str) -> dict[str, Any]:
    """A line of the table; met where the ratio keeps its goal."""
    met = {"≤": lambda wanted: ratio <= wanted, "≥": lambda wanted: ratio >= wanted}
    kept = met[goal[0]](float(goal[2:])) if goal else ""
    return {
        "what": what, "against": against, "ours": f"{ours:.2f} s", "theirs": f"{theirs:.2f} s",
        "ratio": f"{ratio:.2f}", "goal": goal, "met": kept, "n": MANY,
    }  # fmt: skip


def timed(url: str, count: int, **options: Any) -> float:
    """Seconds for `count` requests, four to an image of 640×480."""
    model = OpenAI(spec=spec(), base_url=url, **options)
    start = time.monotonic()
    done = sum(1 for _ in model.answer(ask(n, image=Drawn(f"{n // 4}", (640, 480))) for n in range(count)))
    assert done == count
    return time.monotonic() - start


@contextmanager
def server() -> Iterator[str]:
    """In a process of its own, so that it takes no time from the client's."""
    words = [sys.executable, str(SERVER), "--latency", str(LATENCY), "--slots", str(SLOTS)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
