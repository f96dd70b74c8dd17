"""Tasks one after the other: what is done stays done, what fails is written down, the next one goes on."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines.environments import NotInstalled
from benchmarks.engines.runs import Failed, answered
from benchmarks.engines.serving import NotServed
from benchmarks.gpu_day import findings
from benchmarks.gpu_day.families import TRANSFORMERS, Family
from benchmarks.gpu_day.tasks import Day, Task, perform

Step = dict[str, Any]


def tasks(day: Day, chosen: Sequence[Family]) -> list[Task]:
    """Family by family, transformers before the engines that are set against it."""
    return [Task(day, family, engine) for family in chosen for engine in family.engines]


def place(task: Task) -> Path:
    """Where it is written down what came of a task."""
    return task.day.out / "steps" / f"{task.folder.name}.json"


def kept(task: Task) -> Step | None:
    """What came of it, where it was done with these very settings; else None."""
    path = place(task)
    if not path.is_file():
        return None
    try:
        step: Step = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # the machine went down while it was written
        return None
    same = step.get("settings") == json.loads(json.dumps(task.settings()))
    return step if same and step["state"] == "done" else None


def every(
    wanted: Sequence[Task],
    prepare: Callable[[Family], str],
    perform: Callable[[Task], Mapping[str, Any]] = perform,
    after: Callable[[], object] = lambda: None,
) -> Iterator[Step]:
    """Each task's step, as it is done.

    prepare: gets a family's weights, once; a reason where it can't be asked at all. after: called when a
    step was written down.
    """
    ready: dict[Family, str] = {}
    for task in wanted:
        if (step := kept(task)) is None:
            if task.family not in ready:
                ready[task.family] = prepare(task.family)
            step = one(task, ready[task.family], perform)
            after()
        yield step


def one(task: Task, reason: str, perform: Callable[[Task], Mapping[str, Any]]) -> Step:
    """Does a task and writes down what came of it; whatever it raises is written down, too."""
    started = time.monotonic()
    task.folder.mkdir(parents=True, exist_ok=True)
    state, found = ("failed", None) if reason else ("done", None)
    try:
        if not reason:
            found = dict(perform(task))
            state = "failed" if found["problems"] else "done"
            reason = "; ".join(found["problems"])
    except NotInstalled as error:
        state, reason = "not run", str(error)
    except Exception as error:  # one family's failure is its own
        kind = "" if isinstance(error, Failed | NotServed) else f"{type(error).__name__}: "
        state, reason = "failed", kind + " ".join(str(error).split())[:600]
        log = task.folder / "log-task"
        log.mkdir(exist_ok=True)
        (log / "command.log").write_text(traceback.format_exc(), encoding="utf-8")
    if found is not None and task.engine != TRANSFORMERS:
        found["parity"] = parity(task)
    step = {
        "family": task.family.name, "engine": task.engine, "state": state, "reason": reason,
        "seconds": time.monotonic() - started, "settings": task.settings(), "findings": found,
    }  # fmt: skip
    path = place(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".partial")
    half.write_text(json.dumps(step, indent=1, ensure_ascii=False), encoding="utf-8")
    half.replace(path)
    return step


def parity(task: Task) -> dict[str, int] | None:
    """Its answers against those of transformers; None where there are none of these."""
    reference = answered(task.day.folder(task.family, TRANSFORMERS) / "run")
    return findings.between(reference, answered(task.folder / "run")) if reference else None
