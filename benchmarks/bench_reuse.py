"""What the store saves: a second operator on the same data and model, and a finished run once more.

The model is a local server with a fixed latency and a fixed number of slots, so that asking costs time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench_harness import make_data, row, timed

N = 4000
SERVER = Path(__file__).parents[1] / "tests" / "models" / "server.py"


@contextmanager
def server(latency: float = 0.2, slots: int = 32) -> Iterator[str]:
    words = [sys.executable, str(SERVER), "--latency", str(latency), "--slots", str(slots)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        data, _ = make_data(folder, N)
        words = ["model=qwen3_vl", "backend=openai", f"backend.base_url={url}", "tracking=none", "gallery=0"]
        words += ["data=jsonl", f"data.path={data}"]
        both, _ = timed([*words, "perturb=bow"], folder)
        second, _ = timed([*words, "perturb=capitals"], folder)
        again, _ = timed([*words, "perturb=bow"], folder)
    requests = 2 * N
    return [
        row(
            "second operator on the same data and model",
            "original and one operator, asked anew",
            f"{second:.1f} s",
            f"{both:.1f} s",
            second / both,
            "≤ 0.55",
            second / both <= 0.55,
            f"{requests} requests",
        ),
        row(
            "rerun of a finished run",
            "first run",
            f"{again:.1f} s",
            f"{both:.1f} s",
            again / both,
            "≤ 0.05",
            again / both <= 0.05,
            f"{requests} requests",
        ),
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
