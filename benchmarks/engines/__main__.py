"""`make engines`: each engine that can be had answers what transformers answers, dies, resumes, and is freed.

python -m benchmarks.engines [NAME …] [--examples N] [--checkpoints MODEL …] [--operators NAME …]
    [--budget SECONDS] [--no-page]

NAME: vllm, vllm-offline, caches, transformers-serve, sglang, lmdeploy, llama.cpp, openvino; all of them if
none is named. Exit status 1 where an engine ran and an answer, a resumed record or a process was not as it
should be; an engine that can't be had is a line of the table and no error.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.engines import others, page
from benchmarks.engines.caches import Caches, measure
from benchmarks.engines.checks import NAMES, Reference, offline, references, served
from benchmarks.engines.environments import ROOT, VLLM, NotInstalled
from benchmarks.engines.page import Row
from benchmarks.engines.runs import Work, operators
from benchmarks.engines.serving import OPENVINO_SERVER, TRANSFORMERS_SERVER, VLLM_SERVER, NotServed

CHECKPOINTS = ("tiny_qwen2_5_vl", "tiny_internvl3")
CHECKS: dict[str, Callable[[Work, Reference, Path], Row]] = {
    "vllm": partial(served, VLLM_SERVER),
    "vllm-offline": partial(offline, VLLM),
    "transformers-serve": partial(served, TRANSFORMERS_SERVER),
    "openvino": partial(served, OPENVINO_SERVER),
}
SHOWN = {
    "vllm": VLLM_SERVER.name,
    "vllm-offline": "vLLM (offline)",
    "transformers-serve": TRANSFORMERS_SERVER.name,
    "openvino": OPENVINO_SERVER.name,
}
"""Name on the command line → name in the table."""
NEEDS_SECONDS = 600
INSTALL_SECONDS = 400
"""On top where the environment has to be made first: 150 s on a quiet machine, 690 s on a busy one."""
NEEDS_GB = 8.0


def main(argv: Sequence[str]) -> int:
    words = argparse.ArgumentParser(prog="python -m benchmarks.engines")
    words.add_argument("names", nargs="*", metavar="NAME")
    words.add_argument("--examples", type=int, default=40)
    words.add_argument("--checkpoints", nargs="+", default=CHECKPOINTS, metavar="MODEL")
    words.add_argument("--operators", nargs="+", metavar="NAME", help="all of them if none is named")
    words.add_argument("--budget", type=float, help="seconds left to it; says so and does nothing if too few")
    words.add_argument("--no-page", action="store_true", help="leave docs/engines.md as it is")
    told = words.parse_args(argv)
    if unknown := [name for name in told.names if name not in NAMES]:
        words.error(f"there is no engine {unknown[0]!r}; choose from {', '.join(NAMES)}")
    if told.budget is not None and (reason := _unaffordable(told.budget)):
        print(f"engines: not run: {reason}; make engines runs them")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends servers on the way out
    chosen = told.names or list(NAMES)
    works = [Work(model, told.examples, tuple(told.operators or operators())) for model in told.checkpoints]
    with tempfile.TemporaryDirectory(prefix="engines-") as folder:
        rows = []
        for row in _rows([name for name in chosen if name != "caches"], works, Path(folder)):
            rows.append(row)
            if not told.no_page:  # at once: what was measured outlives what comes after it
                page.keep([row], None)
        if "caches" in chosen:
            found = _caches(Path(folder), told.examples)
            if not told.no_page:
                page.keep([], found)
    bad = [row for row in rows if not row.not_run and not _as_it_should(row)]
    for row in bad:
        print(f"NOT AS IT SHOULD BE: {row}")
    return 1 if bad else 0


def _unaffordable(seconds: float) -> str:
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDS_GB:
        return f"they need {NEEDS_GB:g} GB of disk and {free:.1f} GB are free"
    needed = NEEDS_SECONDS + (0 if VLLM.ready() else INSTALL_SECONDS)
    if seconds < needed:
        return f"they need about {needed} s and {max(seconds, 0):.0f} s are left"
    return ""


def _as_it_should(row: Row) -> bool:
    """Engines without a field for the penalty say so in their note and are not judged by it."""
    whole = row.texts == row.n and row.tokens == row.n
    same = all(some == n for some, n in (row.penalty, row.marks))
    return whole and same and row.resumed is not False and row.left == 0


def _rows(wanted: Sequence[str], works: Sequence[Work], folder: Path) -> Iterator[Row]:
    """Checkpoint by checkpoint; engines that are only named come last."""
    for work in works if any(name in CHECKS for name in wanted) else ():
        known = references(work, folder / work.model)
        for name in (name for name in wanted if name in CHECKS):
            at = folder / f"{name}-{work.model}"
            at.mkdir()
            started = time.monotonic()
            try:
                row = CHECKS[name](work, known, at)
            except (NotInstalled, NotServed) as error:
                row = Row(SHOWN[name], work.model, not_run=str(error))
            print(f"{row.name} · {work.model}: {row.not_run or row}", flush=True)
            print(f"  {time.monotonic() - started:.0f} s", flush=True)
            yield row
    for name in (name for name in wanted if name not in CHECKS):
        yield others.not_run(name)


def _caches(folder: Path, n: int) -> Caches:
    at = folder / "caches"
    at.mkdir()
    model = CHECKPOINTS[1]
    VLLM.ensure()
    found = measure(model, ROOT / "refadv_ablate" / "checkpoints" / model, n, at)
    print(f"caches: {found}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
