"""What is done with a family on an engine: doctor, a run of 100 rows, pace. Each is a command of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.checks import OFFLINE as ON_A_CPU
from benchmarks.engines.environments import Environment
from benchmarks.engines.runs import Failed, Ran, answered, command
from benchmarks.engines.serving import VLLM_SERVER, Server, free_port, serving
from benchmarks.gpu_day import families, findings
from benchmarks.gpu_day.families import Family

OPERATORS = ("bow", "repeat")
LOGS = ("doctor", "run", "pace")


@dataclass(frozen=True)
class Day:
    """Where, how many rows, with which words for the data, how long a command may take, and with what
    environment variables. env: vLLM's environment. timed, looped: requests on which engine and loop are
    timed."""

    out: Path
    rows: int
    rehearsal: bool
    data: tuple[str, ...]
    seconds: float
    variables: Mapping[str, str]
    env: Environment
    timed: int = 48
    looped: int = 48

    def folder(self, family: Family, engine: str) -> Path:
        """Of one task."""
        return self.out / "tasks" / f"{family.name} {engine}".replace(" ", "-")

    def asked(self, family: Family) -> int:
        """Rows of this family."""
        return max(1, round(self.rows * family.share))


@dataclass(frozen=True)
class Task:
    """A family on an engine, in its folder."""

    day: Day
    family: Family
    engine: str

    @property
    def folder(self) -> Path:
        """Where its logs and results lie."""
        return self.day.folder(self.family, self.engine)

    def words(self, more: Sequence[str] = ()) -> list[str]:
        """Of any command about it."""
        family, day = self.family, self.day
        trust = ("++model.trust_remote_code=true",) if family.remote_code else ()
        return [
            f"model={family.model}",
            *family.words,
            *trust,
            *day.data,
            f"limit={day.asked(family)}",
            *more,
        ]

    def settings(self) -> dict[str, Any]:
        """What has to be the same for a finished task to count as finished."""
        return {"words": self.words(), "operators": list(OPERATORS), "rehearsal": self.day.rehearsal}


def perform(task: Task) -> dict[str, Any]:
    """Findings of each part, and `problems`: one sentence for each part that went wrong.

    Raises NotInstalled, NotServed, and Failed where not even answers came of it.
    """
    return {
        families.TRANSFORMERS: _local,
        families.OWN: _local,
        families.SERVER: _server,
        families.OFFLINE: _offline,
    }[task.engine](task)


def _local(task: Task) -> dict[str, Any]:
    loops = task.engine == families.TRANSFORMERS
    backend = ["backend=transformers"] if loops else []
    return _parts(task, backend, loops=loops)


def _server(task: Task) -> dict[str, Any]:
    task.day.env.ensure()
    served, checkpoint = server(task), spec_of(task).checkpoint
    port = free_port()
    with serving(served, checkpoint, task.folder / "server.log", port) as running:
        told = [f"backend.base_url={running.url}", f"backend.served_name={served.named(checkpoint)}"]
        found = _parts(task, ["backend=openai", *told])
    return {**found, "start_seconds": running.seconds, "left": running.left}


def _offline(task: Task) -> dict[str, Any]:
    task.day.env.ensure()
    limit = f"backend.max_model_len={task.family.context}"
    words = ON_A_CPU if task.day.rehearsal else ("backend=vllm", limit)
    return _parts(task, words, python=task.day.env.python, doctor=False)


def server(task: Task) -> Server:
    """vLLM's server for this family: the flags of `make engines` in a rehearsal, a GPU's on the day."""
    if task.day.rehearsal:
        return VLLM_SERVER
    binary = str(task.day.env.folder / "bin" / "vllm")
    flags = ["--max-model-len", str(task.family.context), "--limit-mm-per-prompt", '{"image": 1}']
    trust = ["--trust-remote-code"] if task.family.remote_code else []

    def words(checkpoint: Path | str, port: int) -> list[str]:
        place = ["--host", "127.0.0.1", "--port", str(port)]
        return [binary, "serve", str(checkpoint), *flags, *trust, *place]

    return Server("vLLM (server)", words, task.day.env, variables=task.day.variables, seconds=1800)


def spec_of(task: Task) -> Any:
    """The model's spec, without anything loaded."""
    from refadv_ablate.assets import compose
    from refadv_ablate.running.parts import parts_of

    return parts_of(compose(task.words())).spec


def _parts(
    task: Task, backend: Sequence[str], loops: bool = False, python: Path | None = None, doctor: bool = True
) -> dict[str, Any]:
    """Doctor, run and pace on one engine; what fails in one of them keeps none of the others."""
    day, folder, problems = task.day, task.folder, list[str]()
    more: dict[str, Any] = {"seconds": day.seconds, "variables": day.variables}
    if python is not None:
        more["python"] = python
    words, found = task.words(backend), dict[str, Any]()
    if doctor:
        look = ["doctor", *words, f"folder={folder / 'doctor'}", "n=8"]
        seen = command(look, folder / "log-doctor", **more)
        found["doctor"] = _seen(seen, problems)
    out = folder / "run"
    quiet = ["tracking=none", "pages=false", "gallery=0", "progress=off"]
    perturb = f"perturb=[{','.join(OPERATORS)}]"
    ran = command([perturb, *words, f"out={out}", *quiet], folder / "log-run", **more)
    if not answered(out):
        raise Failed(_why("the run left no answer", ran))
    found["run"] = {**findings.of_run(out), "seconds": ran.seconds}
    if ran.code:
        problems.append(_why("the run is incomplete", ran))
    paced = folder / "pace.json"
    count = max(4, round(day.timed * task.family.share))
    loop = max(4, round(day.looped * task.family.share)) if loops else 0
    asked = [perturb, *words, f"out={folder / 'pace'}", "tracking=none"]
    told = [str(paced), str(count), str(min(loop, count)), *asked]
    went = command(told, folder / "log-pace", module="benchmarks.gpu_day.pace", **more)
    found["pace"] = _read(paced) if went.code == 0 else None
    if went.code:
        problems.append(_why("the pace could not be measured", went))
    return {**found, "problems": problems}


def _seen(ran: Ran, problems: list[str]) -> list[str] | None:
    """What the doctor finds wrong, or None where it could not look."""
    if ran.code not in (0, 1) or "looks wrong" not in ran.told:
        problems.append(_why("the doctor could not look", ran))
        return None
    lines = ran.told.split("what looks wrong:")
    return [line[4:] for line in lines[1].splitlines() if line.startswith("  - ")] if lines[1:] else []


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _why(what: str, ran: Ran) -> str:
    lines = [line for line in ran.told.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or line.startswith("refadv-ablate:")]
    last = " ".join((errors or lines or ["it said nothing"])[-1].split())[:400]
    return f"{what}: exit status {ran.code} after {ran.seconds:.0f} s: {last}"
