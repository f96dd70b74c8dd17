"""`make gpu`: each family's smallest checkpoint on every engine, and one file to send back.

python -m benchmarks.gpu_day [--rehearse] [--families NAME …] [--rows N] [--out FOLDER] [--remote-code]
    [--seconds N] [--no-vllm]

Exit status 2 where the machine lacks a GPU, a hub or disk, 1 where a task failed (the file is written all
the same), else 0. The same command again goes on where it was; tasks that failed are tried again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.engines.environments import ROOT
from benchmarks.engines.serving import QUIET
from benchmarks.gpu_day import archive, families, machine, page, steps
from benchmarks.gpu_day.families import CONTROL, FAMILIES, LEFT_OUT, SERVED, Family
from benchmarks.gpu_day.tasks import Day, Task, spec_of

TINY = "tiny"


def main(argv: Sequence[str]) -> int:
    told = _words(argv)
    day = _day(told)
    chosen, left_out = _chosen(told, day)
    if not told.rehearse and (reasons := machine.lacking()):
        return _not_run(
            f"this machine lacks {' and '.join(reasons)}; make gpu REHEARSE=1 rehearses on tiny checkpoints"
        )
    if full := _announced(day, chosen):
        return _not_run(f'{full}; make gpu FAMILIES="internvl3 qwen2_5_vl" asks fewer')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends servers on the way out
    day.out.mkdir(parents=True, exist_ok=True)
    if not told.rehearse and (failed := _downloaded(day, machine.DATA, "dataset", day.out / "data")):
        return _not_run(f"the data can't be had: {failed}")
    wanted, found = steps.tasks(day, chosen), []

    def written() -> None:
        _written(day, wanted, left_out)

    try:
        for number, step in enumerate(steps.every(wanted, lambda f: _prepared(day, f), after=written), 1):
            found.append(step)
            told_of = f"{page.name(step)}: {step['state']} {step['reason']}".rstrip()
            print(f"[{number}/{len(wanted)}] {told_of}", flush=True)
    finally:
        print(f"\n{day.out / 'report.md'}\nto send back: {_written(day, wanted, left_out)}")
    return _judged(found, told.rehearse)


def _not_run(reason: str) -> int:
    print(f"gpu: not run: {reason}")
    return 2


def _words(argv: Sequence[str]) -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.gpu_day")
    words.add_argument("--rehearse", action="store_true", help="the same steps on tiny checkpoints")
    words.add_argument("--families", nargs="+", default=[], metavar="NAME", help="of conf/model; else all")
    words.add_argument("--rows", type=int, help="of Ref-Adv-s: 100; in a rehearsal drawn scenes: 12")
    words.add_argument("--out", type=Path, help="results/gpu-day; in a rehearsal results/gpu-rehearsal")
    words.add_argument("--remote-code", action="store_true", help="allow families that run code from the hub")
    words.add_argument("--seconds", type=float, default=7200.0, help="most for one command")
    words.add_argument("--no-vllm", action="store_true", help="the other engines alone")
    return words.parse_args(argv)


def _day(told: argparse.Namespace) -> Day:
    rows = told.rows or (12 if told.rehearse else 100)
    out = (told.out or ROOT / "results" / ("gpu-rehearsal" if told.rehearse else "gpu-day")).resolve()
    env = machine.vllm(told.rehearse)
    if told.rehearse:
        return Day(out, rows, True, ("data=shapes", f"data.n={rows}"), told.seconds, QUIET, env, 8, 8)
    variables = {
        "OMP_NUM_THREADS": str(min(8, os.cpu_count() or 1)), "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    return Day(
        out, rows, False, ("data=ref_adv_s", f"data.path={out / 'data'}"), told.seconds, variables, env
    )


def _chosen(told: argparse.Namespace, day: Day) -> tuple[list[Family], dict[str, str]]:
    """Families to ask, and those that are left out with the reason."""
    known = {family.model: family for family in FAMILIES}
    left_out = dict(LEFT_OUT)
    if told.rehearse:
        chosen = list(families.rehearsed(day.out / TINY, told.families))
        if not told.families:
            left_out |= {
                f.model: "no tiny checkpoint of its architecture to rehearse with"
                for f in FAMILIES if not f.tiny
            }  # fmt: skip
    else:
        if unknown := [name for name in told.families if name not in known]:
            raise SystemExit(f"gpu: there is no family {unknown[0]!r}; choose from {', '.join(known)}")
        chosen = [known[name] for name in told.families] or list(FAMILIES)
        remote = [family for family in chosen if family.remote_code and not told.remote_code]
        chosen = [family for family in chosen if family not in remote]
        left_out |= {f.model: "it runs code from the hub; REMOTE_CODE=1 allows that" for f in remote}
    if told.no_vllm:
        kept = [replace(f, engines=tuple(e for e in f.engines if e not in SERVED)) for f in chosen]
        chosen = [family for family in kept if family.engines]
    if not chosen:
        raise SystemExit("gpu: no family is left to ask")
    return chosen, left_out


def _announced(day: Day, chosen: Sequence[Family]) -> str:
    """Says what disk is needed; the sentence where it isn't there."""
    weights = 0.0
    for family in chosen if not day.rehearsal else ():
        weights += machine.download_gb(spec_of(Task(day, family, family.engines[0])).checkpoint, family.gb)
    data = 0.0 if day.rehearsal else machine.download_gb(machine.DATA, machine.DATA_GB, "dataset")
    asked = any(engine in SERVED for family in chosen for engine in family.engines)
    environment = day.env.free_gb if asked and not day.env.ready() else 0.0
    results = 0.2 if day.rehearsal else machine.RESULTS_GB
    print(
        f"{len(chosen)} families, {len(steps.tasks(day, chosen))} tasks, {day.rows} rows. Disk: "
        f"{weights:.1f} GB of weights, {data:.1f} GB of data, {environment:.1f} GB for vLLM, "
        f"{results:.1f} GB of results.",
        flush=True,
    )
    rest = data + environment + results
    return machine.too_full({"weights": weights, "the rest": rest}, machine.places(day.out))


def _prepared(day: Day, family: Family) -> str:
    """Gets the weights of a family; the reason where they can't be had."""
    if day.rehearsal:
        families.made(family, day.out / TINY)
        return ""
    return _downloaded(day, spec_of(Task(day, family, family.engines[0])).checkpoint, "model")


def _downloaded(day: Day, repository: str, kind: str, into: Path | None = None) -> str:
    """Through the hub's own command line, which goes on where it was; its last line where that failed."""
    words = [machine.hub_tool(), "download", repository, "--repo-type", kind]
    words += ["--local-dir", str(into)] if into else [w for p in machine.UNUSED for w in ("--exclude", p)]
    folder = day.out / f"download-{repository.replace('/', '--')}"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "command.log"
    with log.open("wb") as file:
        done = subprocess.run(words, stdout=file, stderr=file)
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return "" if done.returncode == 0 else f"{repository}: {(lines or ['no reason given'])[-1][:400]}"


def _written(day: Day, wanted: Sequence[Task], left_out: dict[str, str]) -> Path:
    """Report, machine and archive of what is done so far."""
    about: dict[str, Any] = {
        "day": time.strftime("%Y-%m-%d"), "rehearsal": day.rehearsal, "rows": day.rows,
        "data": day.data[0].removeprefix("data="), **_machine(day),
    }  # fmt: skip
    (day.out / "machine.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    found = [json.loads(p.read_text(encoding="utf-8")) for t in wanted if (p := steps.place(t)).is_file()]
    text = "\n".join(page.lines(found, about, left_out)) + "\n"
    (day.out / "report.md").write_text(text, encoding="utf-8")
    return archive.pack(day.out)


_known: dict[bool, dict[str, Any]] = {}


def _machine(day: Day) -> dict[str, Any]:
    """Looked up once, and again when vLLM's environment has come."""
    ready = day.env.ready()
    if ready not in _known:
        _known[ready] = machine.described(day.env)
    return _known[ready]


def _judged(found: Sequence[dict[str, Any]], rehearsal: bool) -> int:
    """A rehearsal is right where the family that can't work failed, and nothing else."""
    failed = {step["family"] for step in found if step["state"] == "failed"}
    expected = {step["family"] for step in found if step["family"] == CONTROL} if rehearsal else set()
    if failed != expected:
        print(f"FAILED: {', '.join(sorted(failed - expected)) or 'the family that had to fail did not'}")
    return 0 if failed == expected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
