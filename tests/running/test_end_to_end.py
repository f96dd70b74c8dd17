"""The command as a user runs it: a server that misbehaves, a kill half-way, parallel jobs."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.models.server import Fail, Say, Server

OPENAI = ["model=qwen3_vl", "data=shapes", "backend=openai", "backend.backoff_base=0.01", "gallery=0"]


def command(words, cwd, **more):
    return subprocess.run(
        [sys.executable, "-m", "refadv_ablate", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=280,
        **more,
    )


def cells(folder: Path, out="results"):
    return {
        path.parent.name: json.loads(path.read_text())
        for path in sorted((folder / out / "cells").glob("*/summary.json"))
    }


def box_of(number, body):
    """A box that depends on the question alone, as a greedy model's would."""
    text = json.dumps(body["messages"])[-200:]
    x = sum(map(ord, text)) % 500
    return Say(f'```json\n[{{"bbox_2d": [{x}, 100, {x + 300}, 600], "label": "it"}}]\n```')


def predictions(folder: Path, out="results"):
    found = {}
    for path in sorted((folder / out / "cells").glob("*/predictions.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            row.pop("attempts")
            found[path.parent.name, row["example_id"], row["condition"], row["draw"]] = row
    return found


def test_a_server_that_stumbles_costs_time_and_not_accuracy(tmp_path):
    def stumbles(number, body):
        if number % 7 == 1:
            return Fail(500)
        if number % 11 == 2:
            return Fail(429, headers={"Retry-After": "0"})
        return box_of(number, body)

    words = [*OPENAI, "limit=20", "tracking=none", "perturb=[bow,fixed]"]
    with Server(box_of) as calm:
        done = command([*words, f"backend.base_url={calm.url}", "out=calm"], tmp_path)
        assert done.returncode == 0, done.stderr
    with Server(stumbles) as rough:
        done = command([*words, f"backend.base_url={rough.url}", "out=rough"], tmp_path)
        assert done.returncode == 0, done.stderr
    strip = lambda found: {(k[0].rsplit("-", 1)[0], *k[1:]): v for k, v in found.items()}  # noqa: E731
    assert strip(predictions(tmp_path, "rough")) == strip(predictions(tmp_path, "calm"))


def test_cut_and_empty_answers_are_counted_apart_from_missing_ones(tmp_path):
    def script(number, body):
        text = json.dumps(body["messages"])
        if "the one" in text:
            return Say("[{'bbox_2d': [12, 4", finish="length")
        return box_of(number, body)

    with Server(script) as server:
        done = command(
            [*OPENAI, f"backend.base_url={server.url}", "limit=12", "tracking=none", "perturb=fixed"],
            tmp_path,
        )
    assert done.returncode == 0, done.stderr
    (found,) = cells(tmp_path).values()
    assert found["counts"]["perturbed"]["truncated"] == 12
    assert found["paired"] == 12, "a cut answer is an answer: a miss"
    assert found["deltas"]["acc50"]["perturbed"]["value"] == 0


def test_a_missing_answer_says_why_and_a_password_in_the_address_is_written_nowhere(tmp_path):
    def script(number, body):
        refused = "the one" not in json.dumps(body["messages"]) and number % 4 == 0
        return Fail(400, "image too large") if refused else box_of(number, body)

    with Server(script) as server:
        url = server.url.replace("://", "://me:hunter2hunter2@")
        done = command(
            [*OPENAI, f"backend.base_url={url}", "backend.concurrency=1", "limit=12", "perturb=fixed"],
            tmp_path,
        )
    assert done.returncode == 1, done.stderr
    assert "HTTP 400: image too large" in " ".join(done.stdout.split())
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [str(p) for p in written if b"hunter2hunter2" in p.read_bytes() or "hunter2" in str(p)] == []


def test_a_dead_server_is_a_sentence_and_no_score(tmp_path):
    with Server(lambda n, body: Fail(500)) as server:
        words = [
            *OPENAI,
            f"backend.base_url={server.url}",
            "backend.first_patience=1",
            "limit=12",
            "tracking=none",
        ]
        done = command(words, tmp_path)
    assert done.returncode == 2
    assert "Acc@0.5" not in done.stdout
    assert done.stderr.strip().splitlines()[-1].startswith("refadv-ablate: the server at"), done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_killed_half_way_and_started_again(tmp_path, sign):
    words = [
        *OPENAI,
        "limit=30",
        "tracking=none",
        "perturb=[bow,fixed]",
        "backend.concurrency=4",
        "backend.max_concurrency=4",
    ]
    with Server(box_of) as server:
        base = f"backend.base_url={server.url}"
        assert command([*words, base, "out=whole"], tmp_path).returncode == 0
        unique = server.calls
    with Server(box_of, latency=0.15) as server:
        base = f"backend.base_url={server.url}"
        running = subprocess.Popen(
            [sys.executable, "-m", "refadv_ablate", *words, base],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 120
        while server.calls < 24 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(running.pid, sign)
        _, err = running.communicate(timeout=60)
        if sign != signal.SIGKILL:
            assert running.returncode == 130, err
            assert "the same command goes on" in err
        asked_before = server.calls
        assert asked_before < unique
        done = command([*words, base], tmp_path)
        assert done.returncode == 0, done.stderr
        assert server.calls <= unique + 4, "only what was in flight is asked again"
    strip = lambda found: {(k[0].rsplit("-", 1)[0], *k[1:]): v for k, v in found.items()}  # noqa: E731
    assert strip(predictions(tmp_path)) == strip(predictions(tmp_path, "whole"))


def test_a_finished_run_is_not_computed_again(tmp_path):
    with Server(box_of) as server:
        words = [*OPENAI, f"backend.base_url={server.url}", "limit=8", "tracking=none", "perturb=bow"]
        first = command(words, tmp_path)
        asked = server.calls
        second = command(words, tmp_path)
        assert server.calls == asked
        assert second.stdout == first.stdout
        third = command([*words[:-1], "perturb=fixed"], tmp_path)
        assert third.returncode == 0
        assert server.calls < 2 * asked, "the original condition is asked once for all operators"


def test_a_failed_cell_leaves_its_reason_and_the_others_go_on(tmp_path):
    words = ["-m", "prompt=direct,som", "model=listener", "limit=6", "tracking=none", "gallery=0"]
    done = command(words, tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "100.0" in done.stdout
    assert "som" in done.stdout
    assert "failed" in done.stdout


def test_every_job_that_fails_is_counted_although_all_say_the_same(tmp_path):
    words = ["-m", "data=jsonl", "data.path=nope.jsonl", "model=listener,listener_unordered", "tracking=none"]
    listed = command([*words, "--dry-run"], tmp_path)
    assert listed.returncode == 1
    assert listed.stdout.count("not ready") == 2 and "nope.jsonl is not there" in listed.stdout
    done = command(words, tmp_path)
    assert done.returncode == 1
    assert "2 of 2 cells failed" in done.stdout
    assert "model=listener_unordered" in done.stdout
    assert "nope.jsonl is not there" in done.stdout


def test_a_sweep_that_ends_early_still_has_a_table(tmp_path):
    words = ["-m", "prompt=direct,som", "model=listener", "limit=6", "tracking=none", "gallery=0"]
    done = command([*words, "fail_fast=true"], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "100.0" in done.stdout
    assert "failed" in done.stdout


def test_a_sweep_says_nothing_of_single_calls(tmp_path):
    with Server(box_of) as server:
        words = [*OPENAI, f"backend.base_url={server.url}", "limit=8", "tracking=none", "perturb=bow,fixed"]
        done = command(["-m", *words], tmp_path)
    assert done.returncode == 0, done.stderr
    assert server.calls >= 16
    assert "HTTP Request" not in done.stdout + done.stderr
    assert not any(b"HTTP Request" in path.read_bytes() for path in tmp_path.rglob("*.log"))


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_jobs_of_a_launcher_that_is_gone_ask_no_more(tmp_path, sign):
    def slow(number, body):
        time.sleep(0.1)
        return box_of(number, body)

    words = ["-m", *OPENAI, "limit=400", "tracking=none", "perturb=bow,fixed", "backend.concurrency=2"]
    words += ["backend.max_concurrency=2", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    with Server(slow) as server:
        words.append(f"backend.base_url={server.url}")
        running = subprocess.Popen(
            [sys.executable, "-m", "refadv_ablate", *words],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while server.calls < 10:
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(sign)
        running.wait(60)
        states = list(tmp_path.glob("results/cells/*/status.json"))
        deadline = time.monotonic() + 60
        while {json.loads(path.read_text())["state"] for path in states} != {"stopped"}:
            assert time.monotonic() < deadline, "the jobs go on without their launcher"
            time.sleep(0.1)
        assert server.calls < 800


def test_what_fails_after_the_answers_leaves_no_cell_running(tmp_path, monkeypatch):
    from refadv_ablate import assets
    from refadv_ablate.running import job
    from refadv_ablate.running.sweep import Sweep

    class Log:
        def open_cell(self, *_):
            return "id"

        def finish_cell(self, *_):
            pass

        def fail_cell(self, *_):
            raise RuntimeError("the log is gone as well")

    def refuse(parts, cell, comparison):
        if cell.label == "bow":
            raise RuntimeError("no font")

    monkeypatch.setattr(job, "draw", refuse)
    config = assets.compose(["limit=3", "perturb=[fixed,bow]", f"out={tmp_path}", "model=listener"])
    sweep = Sweep(tmp_path / "sweep")
    (sweep.folder / "cells").mkdir(parents=True)
    with pytest.raises(RuntimeError, match="no font"):
        job.Job.of(config).execute(sweep, Log(), "parent")
    found = {cell.operator: (cell.state, cell.reason) for cell in sweep.cells()}
    assert found == {"fixed": ("done", ""), "bow": ("failed", "no font")}
    states = {p.parent.name: json.loads(p.read_text())["state"] for p in tmp_path.glob("cells/*/status.json")}
    assert sorted(states.values()) == ["done", "failed"]


@pytest.mark.parametrize("launcher", ["joblib", "submitit_local", "ray"])
def test_parallel_jobs_on_a_fresh_log_and_store(tmp_path, launcher):
    if launcher == "ray":
        pytest.importorskip(
            "hydra_plugins.hydra_ray_launcher", reason="the launcher comes with the ray extra"
        )
    words = ["-m", "perturb=bow,fixed", "limit=8", "gallery=0", f"hydra/launcher={launcher}"]
    done = command(words, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("refadv-ablate").experiment_id])
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert len(runs) == 3
    assert len(children) == 2
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len({run.data.tags["mlflow.parentRunId"] for run in children}) == 1


def test_texts_that_could_not_be_made_or_are_unchanged_are_told(tmp_path):
    from PIL import Image

    Image.new("RGB", (20, 20)).save(tmp_path / "a.png")
    rows = [{"image": "a.png", "expression": e, "box": [1, 1, 9, 9]} for e in ("left", "the dog on the left")]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["data=jsonl", "data.path=own.jsonl", "data.image_root=.", "tracking=none", "gallery=0"]
    done = command(
        [*words, "model=control/center_prior", "perturb=[bow,descriptor_deletion,identity]"], tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "not perturbable, the first of them: example a-" in told and "no noun" in told
    assert "no answer 0 / 0, unchanged texts 1 (50%)" in told
    assert "1 of 2 perturbed texts are the original ones unchanged (50.0%" in told
    assert told.count("the original ones unchanged") == 1, "identity leaves everything so on purpose"
