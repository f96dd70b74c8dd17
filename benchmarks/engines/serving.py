"""Servers that are started, waited for, killed and ended with every process that they made."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.engines.environments import OPENVINO, ROOT, VLLM, Environment

QUIET = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # its caches can be emptied between two measurements
}
START_SECONDS = 420


class NotServed(Exception):
    """Why a server didn't come up, in one sentence."""


@dataclass(frozen=True)
class Server:
    """How an engine is served.

    command: of checkpoint (a folder or hub id) and port. named: how it calls the checkpoint. seconds: given
    up after these without an answer.
    """

    name: str
    command: Callable[[Path | str, int], Sequence[str]]
    env: Environment | None = None
    named: Callable[[Path | str], str] = str
    variables: Mapping[str, str] = field(default_factory=dict)
    seconds: float = START_SECONDS


@dataclass
class Running:
    """A server that answers at `url`. seconds: to start. left: processes that did not end when asked to."""

    process: subprocess.Popen[bytes]
    url: str
    seconds: float
    left: int = 0

    def kill(self) -> None:
        """SIGKILL to all of its processes, as a machine that loses power would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)


def members(group: int) -> list[psutil.Process]:
    """The living processes of a process group."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def alone_after(process: subprocess.Popen[bytes], seconds: float) -> int:
    """How many processes of its group are alive once that long has gone by; 0 as soon as none is."""
    until = time.monotonic() + seconds
    while True:
        process.poll()
        found = len(members(process.pid))
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def end_group(process: subprocess.Popen[bytes]) -> int:
    """Ends a process with all of its group: asked first, killed after 20 s. How many had to be killed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    left = alone_after(process, 20)
    if left:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if alone_after(process, 20):
            raise RuntimeError(f"processes of group {process.pid} survive a kill: {members(process.pid)}")
    process.wait(5)
    return left


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    server: Server, checkpoint: Path | str, log: Path, port: int = 0, more: Sequence[str] = ()
) -> Iterator[Running]:
    """The server on this checkpoint, until the block ends. Raises NotServed with the end of its log."""
    port = port or free_port()
    words = [*server.command(checkpoint, port), *more]
    path = f"{Path(words[0]).parent}:{os.environ['PATH']}"
    variables = {**os.environ, **QUIET, **server.variables, "PATH": path}
    variables.pop("PYTHONPATH", None)
    started = time.monotonic()
    with log.open("ab") as file:
        process = subprocess.Popen(
            words, stdout=file, stderr=file, env=variables, cwd=log.parent, start_new_session=True
        )
    running = Running(process, f"http://127.0.0.1:{port}/v1", 0.0)
    try:
        _wait(process, running.url, log, server.seconds)
        running.seconds = time.monotonic() - started
        yield running
    finally:
        running.left = end_group(process)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise NotServed(f"it ended while starting: {_last_error(log)}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/models", timeout=2):
            return
        time.sleep(0.3)
    raise NotServed(f"it did not answer within {seconds:g} s: {_last_error(log)}")


def _last_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line for line in lines if "Error" in line or "error:" in line]
    return " ".join((told or lines or ["it said nothing"])[-1].split())[:300]


VLLM_SERVER = Server(
    "vLLM (server)",
    lambda checkpoint, port: [
        str(VLLM.folder / "bin" / "vllm"), "serve", str(checkpoint), "--dtype", "float32",
        "--max-model-len", "1024", "--enforce-eager", "--max-num-seqs", "8",
        "--host", "127.0.0.1", "--port", str(port),
    ],
    VLLM,
)  # fmt: skip
TRANSFORMERS_SERVER = Server(
    "transformers serve",
    lambda checkpoint, port: [
        str(ROOT / ".venv" / "bin" / "transformers"), "serve", str(checkpoint), "--device", "cpu",
        "--dtype", "float32", "--host", "127.0.0.1", "--port", str(port),
    ],
)  # fmt: skip
OPENVINO_SERVER = Server(
    "OpenVINO 2026.4",
    lambda checkpoint, port: [
        str(OPENVINO.python), str(ROOT / "benchmarks" / "engines" / "openvino_server.py"),
        str(checkpoint), str(port),
    ],
    OPENVINO,
    lambda checkpoint: "openvino",
)  # fmt: skip
