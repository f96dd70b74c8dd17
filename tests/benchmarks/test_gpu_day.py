"""`make gpu`: its plan, what it keeps when a family fails, and what is in the file that is sent back."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.engines.environments import NotInstalled
from benchmarks.gpu_day import archive, findings, machine, page, steps
from benchmarks.gpu_day import families as table
from benchmarks.gpu_day.__main__ import main
from benchmarks.gpu_day.families import FAMILIES, LEFT_OUT, OFFLINE, OWN, SERVER, TRANSFORMERS, Family
from benchmarks.gpu_day.tasks import Day, Task, spec_of
from refadv_ablate import assets

SIDE = {"value": 0.5, "low": 0.2, "high": 0.8, "n": 4}
ABOUT = {
    "day": "2026-12-03", "rehearsal": True, "rows": 4, "data": "shapes", "gpu": "none", "cuda": "torch 2",
    "commit": "abc", "changed_files": 0,
}  # fmt: skip

MODELS = assets.asset_dir("conf") / "model"


def written(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path / "day", 100, False, ("data=shapes",), 10, {}, machine.VLLM)


def done(task: Task) -> Mapping[str, Any]:
    operator = {
        "original": SIDE, "perturbed": {**SIDE, "low": None}, "planned": 5, "warnings": [],
        "counts": {"original": {"answers": 4, "box": 3, "missing": 1}, "perturbed": {"answers": 4, "box": 4}},
    }  # fmt: skip
    run = {"operators": {"repeat": operator}, "engines": ["vllm 1"], "noise": {"n": 4, "texts": 3}}
    pace = {
        "n": 8,
        "seconds": 2.0,
        "failed": 0,
        "output_tokens": 80,
        "loop": {"n": 4, "seconds": 4.0, "same": 4},
    }
    if task.engine != TRANSFORMERS:
        del pace["loop"]
    return {"doctor": [], "run": run, "pace": pace, "problems": []}


# ── the plan ────────────────────────────────────────────────────────────────────────────────────


def test_every_model_with_weights_is_asked_or_left_out_with_a_reason() -> None:
    asked = {family.model for family in FAMILIES} | set(LEFT_OUT)
    found = {path.stem for path in MODELS.glob("*.yaml") if "/" in written(path).get("checkpoint", "")}
    assert found - asked == {"tiny_internvl3", "tiny_qwen2_5_vl"}
    assert asked <= found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model)
def test_the_words_of_a_family_compose_to_one_checkpoint_of_the_hub(family: Family, day: Day) -> None:
    spec = spec_of(Task(day, family, family.engines[0]))
    assert spec.checkpoint.count("/") == 1
    assert spec.trust_remote_code is family.remote_code
    assert family.gb > 0
    assert (family.engines == (OWN,)) is ("engine" in written(MODELS / f"{family.model}.yaml"))


def test_transformers_goes_before_the_engines_that_are_set_against_it(day: Day) -> None:
    found = [(task.family.name, task.engine) for task in steps.tasks(day, FAMILIES)]
    assert found[:3] == [("internvl3", e) for e in (TRANSFORMERS, SERVER, OFFLINE)]
    assert len(set(found)) == len(found)


def test_a_family_that_thinks_is_asked_fewer_rows(day: Day) -> None:
    thinking = next(family for family in FAMILIES if family.share < 1)
    assert "limit=20" in Task(day, thinking, TRANSFORMERS).words()


def test_a_rehearsal_asks_trained_random_and_missing_checkpoints(tmp_path: Path) -> None:
    found = {family.name: family for family in table.rehearsed(tmp_path, [])}
    assert {"tiny_qwen2_5_vl", "tiny_internvl3", table.CONTROL} < set(found)
    assert set(found["tiny_internvl3"].engines) == {TRANSFORMERS, SERVER, OFFLINE}
    assert f"model.checkpoint={tmp_path / 'owlv2'}" in found["owlv2"].words
    assert not any("hub" in word or word.count("/") == 1 for f in found.values() for word in f.words)
    assert [f.name for f in table.rehearsed(tmp_path, ["owlv2"])] == ["owlv2"]


# ── one after the other ─────────────────────────────────────────────────────────────────────────


def test_one_failure_stops_nothing_and_is_written_down(day: Day) -> None:
    def perform(task: Task) -> Mapping[str, Any]:
        if task.engine == SERVER:
            raise RuntimeError("out of\n memory")
        if task.engine == OFFLINE:
            raise NotInstalled("needs 16 GB")
        return done(task)

    wanted = steps.tasks(day, FAMILIES[:2])
    found = list(steps.every(wanted, lambda family: "", perform))
    assert [step["state"] for step in found] == ["done", "failed", "not run"] * 2
    assert found[1]["reason"] == "RuntimeError: out of memory"
    assert "RuntimeError" in (wanted[1].folder / "log-task" / "command.log").read_text(encoding="utf-8")
    assert json.loads(steps.place(wanted[2]).read_text(encoding="utf-8"))["reason"] == "needs 16 GB"


def test_what_is_done_is_not_done_again_and_what_failed_is(day: Day) -> None:
    asked: list[str] = []

    def perform(task: Task) -> Mapping[str, Any]:
        asked.append(task.engine)
        problems = ["the run is incomplete"] if task.engine == SERVER else []
        return {**done(task), "problems": problems}

    wanted = steps.tasks(day, FAMILIES[:1])
    for _ in range(2):
        found = list(steps.every(wanted, lambda family: "", perform))
    assert asked == [TRANSFORMERS, SERVER, OFFLINE, SERVER]
    assert [step["state"] for step in found] == ["done", "failed", "done"]
    steps.place(wanted[0]).write_text('{"state": "do', encoding="utf-8")  # the machine went down
    other = [Task(replace(day, rows=50), task.family, task.engine) for task in wanted]
    assert steps.kept(wanted[0]) is None
    assert steps.kept(wanted[2]) is not None
    assert steps.kept(other[2]) is None


def test_weights_are_asked_for_once_a_family_and_their_lack_is_each_tasks_reason(day: Day) -> None:
    asked: list[str] = []

    def prepare(family: Family) -> str:
        asked.append(family.name)
        return "it is gated"

    found = list(steps.every(steps.tasks(day, FAMILIES[:2]), prepare, done))
    assert asked == ["internvl3", "internvl3_5"]
    assert {(step["state"], step["reason"]) for step in found} == {("failed", "it is gated")}


# ── the numbers ─────────────────────────────────────────────────────────────────────────────────


def record(text: str, box: list[float] | None, overlap: float | None, outcome: str = "box") -> dict[str, Any]:
    return {"text": text, "predicted": box, "iou": overlap, "outcome": outcome}


def test_engines_are_compared_on_what_both_answered() -> None:
    keys = [(str(n), "bow", 0) for n in range(4)]
    whole, unread = [0.0, 0.0, 10.0, 10.0], record("c", None, None, "unparsable")
    missing = record("", None, None, "missing")
    first = [record("a", whole, 0.9), record("b", whole, 0.7), unread, missing]
    second = [record("a", whole, 0.9), record("B", [0, 0, 10, 5], 0.4), unread, record("d", whole, 0.9)]
    one, two = (dict(zip(keys, side, strict=True)) for side in (first, second))
    assert findings.between(one, two) == {
        "n": 3, "n_one": 3, "n_two": 4, "texts": 2, "boxes": 2, "first_alone": 1, "second_alone": 0,
    }  # fmt: skip
    assert findings.share(0, 0) == "none"
    assert findings.share(40, 40) == "40 of 40 [91.2%, 100.0%]"


def test_the_report_has_every_state_with_its_counts(day: Day) -> None:
    def perform(task: Task) -> Mapping[str, Any]:
        if task.engine == OFFLINE:
            raise RuntimeError("no memory")
        return done(task)

    found = list(steps.every(steps.tasks(day, FAMILIES[:1]), lambda family: "", perform))
    found[1]["findings"]["parity"] = {"n": 4, "texts": 4, "boxes": 4, "first_alone": 0, "second_alone": 1}
    text = "\n".join(page.lines(found, ABOUT, {"cogvlm": "too old"}))
    assert "3 tasks: 2 done, 1 failed, 0 not run." in text
    assert (
        "| 50.0% [20.0%, 80.0%] | 50.0% [no interval] | 4 | 1 / 0 | 1 / 0 | 3 of 4 [30.1%, 95.4%] |" in text
    )
    assert "| internvl3 · transformers | 4.00 | 8 (0) | 40 | 1.00 (4) | 4.0 | 4 of 4 |" in text
    assert "| internvl3 · vLLM server | 4.00 | 8 (0) | 40 | 1.00 (4) | 4.0 |  |" in text
    assert "- internvl3 · vLLM offline: failed: RuntimeError: no memory" in text
    assert "- cogvlm: not run: too old" in text


# ── the file that is sent back ──────────────────────────────────────────────────────────────────


def unpacked(path: Path) -> dict[str, str]:
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read().decode() for m in tar}  # type: ignore[union-attr]


def test_the_file_holds_texts_alone_and_no_secret(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_thisisasecret")
    monkeypatch.setattr(machine.platform, "node", lambda: "gpubox7")
    out = day.out
    log = out / "tasks" / "a-b" / "log-run" / "command.log"
    for path, text in {
        log: f"token hf_thisisasecret at {Path.home()}/x in {out} on gpubox7\nhttps://me:pass12345@host/x",
        out / "report.md": "# report",
        out / "tasks" / "a-b" / "run" / "cells" / "c" / "predictions.jsonl": '{"text": "[1]"}\n',
        out / "tasks" / "a-b" / "run" / "store.db": "binary",
        out / "tasks" / "a-b" / "doctor" / "00_x.png": "a picture",
        out / "data" / "images" / "x.jpg": "a picture",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (out / "steps").mkdir()
    (out / "steps" / "x.json").symlink_to(log)
    found = unpacked(archive.pack(out))
    assert set(found) == {
        "day/report.md",
        "day/tasks/a-b/log-run/command.log",
        "day/tasks/a-b/run/cells/c/predictions.jsonl",
    }
    assert found["day/tasks/a-b/log-run/command.log"].splitlines()[0] == "token *** at ~/x in OUT on ***"
    assert "pass12345" not in str(found)


def test_a_log_without_end_is_shortened_in_the_middle(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LONGEST", 100)
    day.out.mkdir()
    (day.out / "report.md").write_text("a" * 500 + "b", encoding="utf-8")
    (text,) = unpacked(archive.pack(day.out)).values()
    assert len(text) < 150
    assert text.endswith("b")


# ── the machine ─────────────────────────────────────────────────────────────────────────────────


def test_without_gpu_and_hub_one_sentence_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "_no_gpu", lambda: "a GPU")
    monkeypatch.setattr(machine, "_no_hub", lambda: "a way to the hub")
    assert main(["--out", str(tmp_path / "day")]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("gpu: not run: this machine lacks a GPU and a way to the hub; make gpu REHEARSE=1")
    assert not (tmp_path / "day").exists()


def test_a_disk_that_is_too_small_is_said_before_anything_is_downloaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "lacking", list)
    monkeypatch.setattr(machine, "download_gb", lambda checkpoint, declared, kind="model": 1e6)
    assert main(["--out", str(tmp_path / "day"), "--families", "internvl3", "owlv2"]) == 2
    announced, refused = capsys.readouterr().out.splitlines()
    assert announced.startswith(
        "2 families, 4 tasks, 100 rows. Disk: 2000000.0 GB of weights, 1000000.0 GB of"
    )
    assert "gpu: not run: it needs 30000" in refused
    assert not (tmp_path / "day").exists()


def test_disks_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = type("Usage", (), {"free": 10e9})
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage)
    where = {"weights": tmp_path / "w" / "x", "the rest": tmp_path}
    assert machine.too_full({"weights": 6, "the rest": 3}, where) == ""
    told = machine.too_full({"weights": 6, "the rest": 5}, where)
    assert told == "it needs 11.0 GB of disk and 10.0 GB are free"


def test_a_hub_that_does_not_tell_sizes_leaves_the_declared_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise OSError("gated")

    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", refuse)
    assert machine.download_gb("some/model", 7.5) == 7.5
    assert machine.download_gb(str(tmp_path), 7.5) == 0
