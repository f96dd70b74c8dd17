"""What each engine has to pass: the texts of transformers, records that survive its death."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.engines.environments import ROOT, Environment
from benchmarks.engines.page import Row
from benchmarks.engines.runs import (
    Failed,
    Ran,
    Rows,
    Work,
    agreement,
    answered,
    command,
    same_records,
    stored,
    summaries,
)
from benchmarks.engines.serving import Running, Server, free_port, serving

NAMES = (
    "vllm",
    "vllm-offline",
    "caches",
    "transformers-serve",
    "sglang",
    "lmdeploy",
    "llama.cpp",
    "openvino",
)
PENALTY = ("model.sampling.repetition_penalty=1.3",)
MARKS = ("prompt=som", "+model.prompts.som=shared/som.txt")
"""Texts are compared: the embedded checkpoints were not trained to answer with a mark's number."""
OFFLINE = (
    "backend=vllm", "backend.dtype=float32", "backend.max_model_len=1024",
    "+backend.engine.enforce_eager=true", "+backend.engine.max_num_seqs=8",
)  # fmt: skip


@dataclass(frozen=True)
class Reference:
    """What the transformers engine answers: as declared, with a penalty, with Set-of-Marks."""

    rows: Rows
    penalised: Rows
    marked: Rows


def penalised(work: Work) -> Work:
    """A part of the work under another decoding."""
    return replace(work, operators=("bow",), extra=PENALTY)


def marked(work: Work) -> Work:
    """A part of the work with numbered marks drawn on the images."""
    return replace(work, operators=("bow", "mirror"), extra=MARKS)


def references(work: Work, folder: Path) -> Reference:
    """Asked in this environment."""
    _whole(command(work.words(folder / "out"), folder))
    _whole(command(penalised(work).words(folder / "penalty"), folder))
    _whole(command(marked(work).words(folder / "marks"), folder))
    return Reference(*(answered(folder / name) for name in ("out", "penalty", "marks")))


def _whole(ran: Ran) -> Ran:
    if ran.code != 0:
        raise Failed(f"the command ended with {ran.code} after {ran.seconds:.0f} s:\n{ran.told[-1500:]}")
    return ran


def _checkpoint(work: Work) -> Path:
    return ROOT / "refadv_ablate" / "checkpoints" / work.model


def _engines(out: Path) -> str:
    found = {
        name
        for summary in summaries(out)
        for side in summary["details"].get("engines", {}).values()
        for name in side
    }
    return ", ".join(sorted(found)) or "not told"


def _row(name: str, work: Work, known: Reference, folder: Path) -> Row:
    """What the engine left in folder, against the reference."""
    found = agreement(known.rows, answered(folder / "out"))
    if not found.asked_alike:
        raise Failed(f"{name} was asked other expressions than transformers on {work.model}")
    note = f"first difference: {found.first[:200]}" if found.first else ""
    engine = _engines(folder / "out")
    made = Row(name, work.model, engine, found.n, found.texts, found.tokens, note=note)
    penalty = agreement(known.penalised, answered(folder / "penalty"))
    marks = agreement(known.marked, answered(folder / "marks"))
    return replace(
        made,
        operators=work.operators,
        penalty=(penalty.texts, penalty.n),
        marks=(marks.texts, marks.n),
    )


# ── a server ────────────────────────────────────────────────────────────────────────────────────


def served(server: Server, work: Work, known: Reference, folder: Path) -> Row:
    """A server asked through backend=openai; then one that dies in the middle and comes back.

    Raises NotInstalled, NotServed, Failed.
    """
    if server.env is not None:
        server.env.ensure()
    checkpoint, port, log = _checkpoint(work), free_port(), folder / "server.log"

    def words(work: Work, name: str) -> list[str]:
        told = [
            f"backend.base_url=http://127.0.0.1:{port}/v1",
            f"backend.served_name={server.named(checkpoint)}",
        ]
        return work.words(folder / name, ["backend=openai", *told, "backend.patience=3"])

    with serving(server, checkpoint, log, port) as running:
        ran = _whole(command(words(work, "out"), folder))
        _whole(command(words(penalised(work), "penalty"), folder))
        _whole(command(words(marked(work), "marks"), folder))
        row = _row(server.name, work, known, folder)
        killed = command(
            words(work, "killed"), folder, meanwhile=_kills(running, folder / "killed", known.rows)
        )
        held = stored(folder / "killed")
    if killed.code == 0 or not 0 < held < len(known.rows):
        raise Failed(f"{server.name} was killed, and the run ended with {killed.code} and {held} answers")
    with serving(server, checkpoint, log, port) as again:
        _whole(command(words(work, "killed"), folder))
    return replace(
        row,
        resumed=same_records(answered(folder / "out"), answered(folder / "killed")),
        killed_at=held,
        left=again.left,
        start_seconds=running.seconds,
        run_seconds=ran.seconds,
    )


def _kills(running: Running, out: Path, rows: Rows) -> Callable[[subprocess.Popen[bytes]], None]:
    """Kills the server once a quarter of the answers are stored."""

    def meanwhile(process: subprocess.Popen[bytes]) -> None:
        _wait_for(out, len(rows) // 4, process)
        running.kill()

    return meanwhile


def _wait_for(out: Path, answers: int, process: subprocess.Popen[bytes], seconds: float = 900) -> None:
    until = time.monotonic() + seconds
    while stored(out) < answers and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)


# ── an engine within the command ────────────────────────────────────────────────────────────────


def offline(env: Environment, work: Work, known: Reference, folder: Path) -> Row:
    """vLLM's offline engine in its own environment; then a command that is killed and given again.

    Raises NotInstalled, Failed.
    """
    env.ensure()

    def run(work: Work, name: str, **more: object) -> Ran:
        return command(work.words(folder / name, OFFLINE), folder, env.python, **more)  # type: ignore[arg-type]

    ran = _whole(run(work, "out"))
    _whole(run(penalised(work), "penalty"))
    _whole(run(marked(work), "marks"))
    row = _row("vLLM (offline)", work, known, folder)

    def meanwhile(process: subprocess.Popen[bytes]) -> None:
        _wait_for(folder / "killed", len(known.rows) // 4, process)
        process.kill()

    killed = run(work, "killed", meanwhile=meanwhile)
    held = stored(folder / "killed")
    if killed.code == 0 or not 0 < held < len(known.rows):
        raise Failed(
            f"the offline engine was killed, and the run ended with {killed.code} and {held} answers"
        )
    again = _whole(run(work, "killed"))
    return replace(
        row,
        resumed=same_records(answered(folder / "out"), answered(folder / "killed")),
        killed_at=held,
        left=ran.left + again.left,
        orphans=killed.left,
        run_seconds=ran.seconds,
    )
