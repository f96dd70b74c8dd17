"""The experiment log: what is written is read back through MLflow's own client."""

from __future__ import annotations

import json
import logging
import math
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.storage import records
from refadv_ablate.storage.jsonl import write_json
from refadv_ablate.tracking import metrics, mlflow, sqlite_file, views
from refadv_ablate.tracking.interface import CellInfo, NoTracker
from refadv_ablate.tracking.log_again import log_folder
from refadv_ablate.tracking.mlflow import LAUNCH, MlflowTracker
from refadv_ablate.tracking.uri import database_file, tracking_uri
from refadv_ablate.types import METRICS, Comparison, Delta, Estimate, Record, Score

ROOT = Path(__file__).resolve().parents[2]


def estimate(value: float | None) -> Estimate:
    if value is None:
        return Estimate(None, None, None, 0, 0, "", "no example")
    return Estimate(value, value - 0.05, value + 0.05, 100, 60, "cluster t")


def comparison(
    model: str = "qwen3vl-8b", operator: str = "bow", drop: float | None = 0.2, **other: Any
) -> Comparison:
    after = None if drop is None else 0.7 - drop
    deltas = {
        name: Delta(
            name,
            estimate(0.7),
            estimate(after),
            estimate(None if drop is None else -drop),
            (-0.3, -0.1),
            0.001,
            0.002,
            None,
            24,
            4,
            0.01,
        )
        for name in METRICS
    }
    counts = {"box": 95, "unparsable": 3, "truncated": 2, "missing": 0, "unchanged": 4, "not_perturbable": 1}
    fields: dict[str, Any] = {
        "model": model,
        "data": "refcoco+_val",
        "prompt": "direct",
        "operator": operator,
        "planned": 101,
        "paired": 100,
        "images": 60,
        "deltas": deltas,
        "parsed_only": {"acc50": deltas["acc50"]},
        "counts": {"original": counts, "perturbed": counts},
        "warnings": ("4 texts are unchanged",),
        "details": {
            "usd": 0.5,
            "seconds": 12.5,
            "output_tokens": 4000,
            "hash": f"{model}-{operator}",
            "seed": 0,
        },
    }
    return Comparison(**{**fields, **other})


def info(c: Comparison, folder: Path = Path("cell")) -> CellInfo:
    return CellInfo(
        c.model,
        c.data,
        c.prompt,
        c.operator,
        0,
        None,
        str(c.details["hash"]),
        folder / "config.yaml",
        {"files": {"a.json": "ab12"}},
    )


def cell_folder(parent: Path, c: Comparison, n: int = 20) -> Path:
    """What a finished cell leaves."""
    folder = parent / f"{c.model}--{c.operator}"
    (folder / "figures").mkdir(parents=True)
    (folder / "config.yaml").write_text("model: {name: x}\nseed: 0\n")
    (folder / ".lock").touch()
    write_json(folder / "status.json", {"state": "done", "traceback": ""})
    records.write_jsonl(
        folder / "texts.jsonl", ({"id": str(i), "expression": "ball a red"} for i in range(n))
    )
    rng = random.Random(0)
    records.write_records(
        folder / "predictions.jsonl",
        (
            Record(
                f"ex{i // 2}",
                f"img{i // 4}",
                ("original", c.operator)[i % 2],
                0,
                "changed",
                "ball <b>red</b> a",
                "a red ball",
                Box(1, 2, 30, 40),
                "box",
                Box(1, 2, 33, 40),
                rng.random(),
                text='{"bbox_2d": [1, 2, 33, 40]}',
            )
            for i in range(n)
        ),
    )
    records.dump(c, folder / "summary.json")
    (folder / "figures" / "delta.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    return folder


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database without runs: its migrations take seconds, copying it takes none."""
    folder = tmp_path_factory.mktemp("mlflow")
    MlflowTracker(uri=f"sqlite:///{folder}/mlflow.db").client.search_experiments()
    return folder / "mlflow.db"


@pytest.fixture
def here(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A launch directory with a database."""
    shutil.copyfile(template, tmp_path / "mlflow.db")
    monkeypatch.setenv(LAUNCH, str(tmp_path))
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def tracker(here: Path) -> MlflowTracker:
    made = MlflowTracker(launch_dir=here)
    made.prepare()
    return made


def artifacts(tracker: MlflowTracker, run_id: str) -> list[str]:
    def walk(path: str | None) -> Iterator[str]:
        for item in tracker.client.list_artifacts(run_id, path):
            yield from walk(item.path) if item.is_dir else [item.path]

    return sorted(walk(None))


# ── a whole sweep ───────────────────────────────────────────────────────────────────────────────


def test_a_nested_sweep_reads_back(
    tracker: MlflowTracker, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_RUN_ID", "0" * 32)  # what other tools export must not matter
    cells = [comparison(m, o) for m in ("qwen3vl-8b", "internvl3") for o in ("bow", "fixed")]
    parent = tracker.open_sweep(
        "model=qwen3vl-8b,internvl3 perturb=bow,fixed", {"command": "python -m …", "sweep": "s1"}
    )
    runs = [tracker.open_cell(parent, info(c)) for c in cells]
    for run_id, c in zip(runs, cells, strict=True):
        tracker.finish_cell(run_id, c, cell_folder(here, c))
    holm = [replace(c, deltas={**c.deltas, "acc50": replace(c.deltas["acc50"], p_holm=0.004)}) for c in cells]
    sweep = here / "sweep"
    (sweep / "cells").mkdir(parents=True)
    (sweep / "sweep.json").write_text("{}")
    (sweep / "report.html").write_text("<html></html>")
    tracker.close_sweep(parent, holm, sweep, [("m · d · cot · bow", "failed: no <memory> | left")])

    client = tracker.client
    top = client.get_run(parent)
    assert top.info.status == "FINISHED"
    assert "refadv.swept" not in top.data.tags
    assert top.data.metrics == {"n/cells": 4, "n/failed": 1}
    assert top.data.params == {"overrides": "model=qwen3vl-8b,internvl3 perturb=bow,fixed"}
    assert json.loads(top.data.tags["mlflow.loggedArtifacts"]) == [
        {"path": "cells_table.json", "type": "table"}
    ]
    assert {"summary.md", "summary.html", "sweep.json", "report.html"} <= set(artifacts(tracker, parent))
    assert "no &lt;memory&gt; \\| left" in top.data.tags["mlflow.note.content"]
    children = client.search_runs([tracker.experiment_id], f"tags.`mlflow.parentRunId` = '{parent}'")
    assert {run.info.run_name for run in children} == {f"{c.operator} · {c.model}" for c in cells}
    assert {run.info.run_id for run in children} == set(runs)

    run = client.get_run(runs[0])
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        "model": "qwen3vl-8b",
        "data": "refcoco+_val",
        "prompt": "direct",
        "perturb": "bow",
        "seed": "0",
        "limit": "all",
    }
    assert run.data.tags["refadv.state"] == "done"
    assert "| 0.004 |" in run.data.tags["mlflow.note.content"], "Holm's p is known when the sweep ends"
    found = run.data.metrics
    assert found == {**metrics.metrics(cells[0]), "acc50/p_holm": 0.004}
    assert found["acc50/original"] == 0.7
    assert found["acc50/delta"] == -0.2
    assert found["acc50/delta_ci_low"] == -0.25
    assert found["acc50/delta_ci_high"] == pytest.approx(-0.15)
    assert (found["n/paired"], found["n/missing_original"]) == (100, 0)
    assert found["n/unparsed_perturbed"] == 5
    assert artifacts(tracker, runs[0]) == [
        "config.yaml",
        "figures/delta.svg",
        "predictions.jsonl",
        "predictions_table.json",
        "summary.json",
        "texts.jsonl",
    ]
    (data,) = run.inputs.dataset_inputs
    assert data.dataset.name == "refcoco_plus_val"
    assert json.loads(data.dataset.profile) == {"examples": 101, "images": 60, "paired": 100}
    assert [each.dataset.digest for each in top.inputs.dataset_inputs] == [data.dataset.digest]
    models = {each.model_id for each in top.inputs.model_inputs}
    assert len(models) == 2, "one for each model, however many cells it has"
    assert {each.model_id for each in run.inputs.model_inputs} < models
    model = client.get_logged_model(run.inputs.model_inputs[0].model_id)
    assert (model.name, model.params["model"], str(model.status)) == ("qwen3vl-8b", "qwen3vl-8b", "READY")
    assert json.loads(data.dataset.source) == {"tags": {"files": {"a.json": "ab12"}}}
    assert [(tag.key, tag.value) for tag in data.tags] == [("mlflow.data.context", "evaluation")]
    assert "run " + parent in " ".join(tracker.where(parent))


def test_an_interrupted_sweep_is_taken_up_and_not_doubled(tracker: MlflowTracker, here: Path) -> None:
    c, other = comparison(), comparison(operator="fixed")
    tags = {"sweep": "s2", "command": "x"}
    parent = tracker.open_sweep("perturb=bow,fixed", tags)
    stale = tracker.open_cell(parent, info(c))  # the process dies here
    again = MlflowTracker(launch_dir=here)
    assert again.open_sweep("perturb=bow,fixed", tags) == parent
    assert again.open_cell(parent, info(c)) == stale
    again.fail_cell(stale, "out of memory")
    assert again.client.get_run(stale).info.status == "FAILED"
    assert again.client.get_run(stale).data.tags["refadv.reason"] == "out of memory"
    assert again.open_cell(parent, info(c)) == stale
    assert again.client.get_run(stale).info.status == "RUNNING"
    folder = cell_folder(here, c)
    for _ in range(2):
        again.finish_cell(stale, c, folder)
    forgotten = again.open_cell(parent, info(other))
    again.close_sweep(parent, [c], here / "none")
    run = again.client.get_run(stale)
    assert run.info.status == "FINISHED"
    assert "refadv.reason" not in run.data.tags
    assert len(again.client.get_metric_history(stale, "acc50/delta")) == 1
    gone = again.client.get_run(forgotten)
    assert (gone.info.status, gone.data.tags["refadv.reason"]) == (
        "KILLED",
        "its process ended without a word",
    )
    assert len(again.client.search_runs([again.experiment_id])) == 3
    assert again.open_sweep("perturb=bow,fixed", {**tags, "sweep": "s3"}) != parent


def test_stopping_marks_the_sweep_and_what_runs_in_it_as_killed(tracker: MlflowTracker, here: Path) -> None:
    done, running = comparison(), comparison(operator="fixed")
    parent = tracker.open_sweep("x", {"sweep": "s"})
    runs = [tracker.open_cell(parent, info(c)) for c in (done, running)]
    tracker.finish_cell(runs[0], done, cell_folder(here, done))
    tracker.kill(parent, "stopped by the user")
    states = [tracker.client.get_run(run_id).info.status for run_id in (*runs, parent)]
    assert states == ["FINISHED", "KILLED", "KILLED"]


def test_a_mistake_before_anything_was_asked_leaves_no_run(tracker: MlflowTracker, here: Path) -> None:
    parent = tracker.open_sweep("a=1", {"sweep": "s"})
    cell = tracker.open_cell(parent, info(comparison()))
    for run_id in (cell, parent):
        tracker.discard(run_id, "the key is missing")
    assert list(tracker.client.search_runs([tracker.experiment_id])) == []
    again = tracker.open_sweep("a=1", {"sweep": "s"})
    assert again != parent
    other = MlflowTracker(launch_dir=here)
    other.discard(again, "the key is missing")  # one that another process began stays, and has failed
    (kept,) = tracker.client.search_runs([tracker.experiment_id])
    assert (kept.info.run_id, kept.info.status) == (again, "FAILED")


def test_a_sweep_in_which_everything_failed_has_failed(tracker: MlflowTracker, here: Path) -> None:
    parent = tracker.open_sweep("x", {"sweep": "s"})
    tracker.close_sweep(parent, [], here / "none", [("a", "b")])
    assert tracker.client.get_run(parent).info.status == "FAILED"


def test_cells_that_differ_in_nothing_swept_by_name_have_names_of_their_own(tracker: MlflowTracker) -> None:
    parent = tracker.open_sweep("-m data=a,b model.dtype=x,y", {"sweep": "s"})
    one, two = comparison(), comparison(details={"hash": "ffffff77", "seed": 0})
    names = [tracker.client.get_run(tracker.open_cell(parent, info(c))).info.run_name for c in (one, two)]
    assert names == ["bow · qwen3vl-8b · refcoco+_val", "bow · qwen3vl-8b · refcoco+_val · ffffff"]


def test_large_tables_are_compressed(here: Path) -> None:
    tracker = MlflowTracker(launch_dir=here, gzip_above_mb=0.001)
    tracker.prepare()
    c = comparison()
    run_id = tracker.open_cell(tracker.open_sweep("x", {}), info(c))
    folder = cell_folder(here, c, n=200)
    tracker.finish_cell(run_id, c, folder)
    assert {"predictions.jsonl.gz", "texts.jsonl.gz", "summary.json"} <= set(artifacts(tracker, run_id))
    copy = Path(tracker.client.download_artifacts(run_id, "predictions.jsonl.gz", str(here)))
    assert list(records.read_records(copy)) == list(records.read_records(folder / "predictions.jsonl"))
    shown = json.loads(
        Path(tracker.client.download_artifacts(run_id, "predictions_table.json", str(here))).read_text()
    )
    assert len(shown["data"]) == 100, "a row for each perturbed answer, the original one beside it"
    rows = [dict(zip(shown["columns"], row, strict=True)) for row in shown["data"]]
    assert shown["columns"][:2] == ["example_id", "answer"]
    first, second = list(records.read_records(copy))[:2]
    assert (rows[0]["iou_original"], rows[0]["iou_perturbed"]) == (first.iou, second.iou)
    was, now = ("right" if each.iou >= 0.5 else "wrong" for each in (first, second))
    assert rows[0]["answer"] == f"{was} → {now} (IoU {first.iou:.2f} → {second.iou:.2f}): {second.expression}"


def test_a_sweep_is_logged_later_from_its_folder(here: Path) -> None:
    c, failed = comparison(), comparison(operator="fixed")
    sweep = here / "sweeps" / "late-1234"
    home = cell_folder(here / "cells", c)
    write_json(
        sweep / "sweep.json",
        {"command": "python -m …", "overrides": ["perturb=bow,fixed"], "multirun": True, "parent": ""},
    )
    for cell, state, reason in ((c, "done", ""), (failed, "failed", "no weights")):
        state_of = {"hash": cell.details["hash"], "folder": str(home), "model": cell.model, "data": cell.data}
        more = {"prompt": "direct", "operator": cell.operator, "state": state, "reason": reason}
        write_json(sweep / "cells" / f"{cell.operator}.json", state_of | more)
    tracker = MlflowTracker(launch_dir=here)
    parent = log_folder(tracker, sweep)
    assert log_folder(MlflowTracker(launch_dir=here), sweep) == parent
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["bow · qwen3vl-8b", "perturb=bow,fixed"]
    assert "failed: no weights" in tracker.client.get_run(parent).data.tags["mlflow.note.content"]
    with pytest.raises(UserError, match=r"no folder of a sweep"):
        log_folder(tracker, home)


# ── what goes wrong ─────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_sent_is_a_warning(
    tracker: MlflowTracker, here: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = comparison()
    parent = tracker.open_sweep("x", {"sweep": "s"})
    run_id = tracker.open_cell(parent, info(c))
    (here / "mlartifacts").mkdir(exist_ok=True)
    shutil.rmtree(here / "mlartifacts")
    (here / "mlartifacts").write_text("a file where the folder was")
    folder = cell_folder(here, c)
    tracker.finish_cell(run_id, c, folder)
    assert "can't send" in caplog.text
    assert "predictions.jsonl" in caplog.text
    assert (folder / "predictions.jsonl").exists()
    run = tracker.client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.metrics == metrics.metrics(c)
    (here / "mlartifacts").unlink()
    tracker.finish_cell(run_id, c, folder)  # what was missing is sent when the cell is logged again
    assert "predictions.jsonl" in artifacts(tracker, run_id)
    caplog.clear()
    monkeypatch.setattr(tracker.client._client, "get_run", lambda *_: 1 / 0)
    tracker.finish_cell(run_id, c, folder)
    tracker.close_sweep(parent, [c], folder)
    assert "results are kept in the result folder" in caplog.text


def test_a_server_that_keeps_no_models_still_gets_the_data_and_says_so_once(
    tracker: MlflowTracker, here: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def absent(*_: Any, **__: Any) -> None:
        raise RuntimeError("API request to endpoint /api/2.0/mlflow/logged-models/search failed: 404")

    monkeypatch.setattr(tracker.client._client, "search_logged_models", absent)
    parent = tracker.open_sweep("x", {})
    cells = [comparison(model, "bow") for model in ("a", "b")]
    for c in cells:
        tracker.finish_cell(tracker.open_cell(parent, info(c)), c, here / "none")
    tracker.close_sweep(parent, cells, here / "none")
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert len(runs) == 3
    for run in runs:
        (data,) = tracker.client.get_run(run.info.run_id).inputs.dataset_inputs
        assert data.dataset.name == "refcoco_plus_val"
    assert caplog.text.count("servers before MLflow 3") == 1
    assert runs[0].info.status == "FINISHED" and runs[1].data.metrics


def test_a_full_disk_is_one_sentence_without_sql(
    tracker: MlflowTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise RuntimeError("(sqlite3.OperationalError) database or disk is full\n[SQL: INSERT INTO runs (x)]")

    monkeypatch.setattr(tracker.client._client, "create_run", full)
    with pytest.raises(UserError, match=r"MLflow at .* can't be used \(the disk is full\).*tracking=none$"):
        tracker.open_sweep("x", {})


def test_a_locked_database_is_waited_for(tracker: MlflowTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = tracker.client._client.create_run, []

    def busy(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("(sqlite3.OperationalError) database is locked")
        return real(*args, **kwargs)

    monkeypatch.setattr(tracker.client._client, "create_run", busy)
    assert tracker.open_sweep("x", {})
    assert len(calls) == 3


def test_a_deleted_experiment_is_one_sentence(here: Path) -> None:
    tracker = MlflowTracker(launch_dir=here)
    tracker.prepare()
    tracker.client.delete_experiment(tracker.experiment_id)
    with pytest.raises(
        UserError, match=r"'refadv-ablate' is deleted; restore it with .* or choose another name"
    ):
        MlflowTracker(launch_dir=here).prepare()


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv(LAUNCH, "")
    with pytest.raises(UserError, match=r"http://u:\*\*\*@127.0.0.1:9 can't be used .*tracking=none"):
        MlflowTracker(uri="http://u:hidden@127.0.0.1:9", launch_dir=tmp_path).prepare()


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("file:./mlruns", "file store"),
        ("file:///tmp/mlruns", "file store"),
        ("./mlruns", "no tracking URI"),
        ("sqlite:///:memory:", "lost with the process"),
        ("sqlite://", "lost with the process"),
    ],
)
def test_what_cannot_be_a_log_is_one_sentence(uri: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=says):
        tracking_uri(uri, tmp_path)


def test_addresses_are_taken_from_the_launch_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking_uri(None, tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    assert tracking_uri("sqlite:///a/b c.db", tmp_path) == f"sqlite:///{tmp_path}/a/b c.db"
    odd = tmp_path / "päth with 50% spaces"
    assert tracking_uri(None, odd) == f"sqlite:///{tmp_path}/päth with 50%25 spaces/mlflow.db"
    assert database_file(tracking_uri(None, odd)) == odd / "mlflow.db"
    assert tracking_uri("sqlite:////x/y.db", tmp_path) == "sqlite:////x/y.db"
    assert tracking_uri("http://host:5000", tmp_path) == "http://host:5000"
    assert database_file(f"sqlite:///{tmp_path}/mlflow.db") == tmp_path / "mlflow.db"
    assert database_file("http://host") is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///env.db")
    assert tracking_uri(None, tmp_path) == f"sqlite:///{tmp_path}/env.db"


def test_artifacts_lie_beside_the_database_absolutely(tracker: MlflowTracker, here: Path) -> None:
    experiment = tracker.client.get_experiment(tracker.experiment_id)
    assert experiment.artifact_location == (here / "mlartifacts").as_uri()


def test_secrets_never_enter_the_log(
    tracker: MlflowTracker, here: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret-value")
    c = comparison(warnings=("asked with sk-very-secret-value",))
    parent = tracker.open_sweep(
        "model.key=sk-very-secret-value", {"command": "x sk-very-secret-value", "sweep": "s"}
    )
    run_id = tracker.open_cell(parent, info(c))
    folder = cell_folder(here, c)
    (folder / "config.yaml").write_text("key: sk-very-secret-value\n" + "#" * (1 << 20))
    tracker.finish_cell(run_id, c, folder)
    tracker.close_sweep(parent, [c], here / "none", [("cell", "refused sk-very-secret-value")])
    assert "config.yaml holds the value of a secret" in caplog.text
    assert "config.yaml" not in artifacts(tracker, run_id)
    for path in [here / "mlflow.db", *(here / "mlartifacts").rglob("*")]:
        assert path.is_dir() or b"sk-very-secret-value" not in path.read_bytes()


RACER = """
import sys
from pathlib import Path
from tests.tracking.test_tracking import comparison, info
from refadv_ablate.tracking.mlflow import MlflowTracker
print("ready", flush=True); sys.stdin.readline()
tracker = MlflowTracker(launch_dir=Path(sys.argv[1]))
tracker.prepare()
parent = tracker.open_sweep("x", {"sweep": sys.argv[2]})
for operator in "abc":
    c = comparison(operator=operator)
    run_id = tracker.open_cell(parent, info(c))
    tracker.finish_cell(run_id, c, Path("absent"))
tracker.close_sweep(parent, [c], Path("absent"))
"""


@pytest.mark.slow
def test_processes_that_start_together_on_a_fresh_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv(LAUNCH, raising=False)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, tmp_path, f"s{i}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        for i in range(2)
    ]
    for process in running:
        assert process.stdout
        process.stdout.readline()
    ended = [process.communicate("go\n", timeout=200) for process in running]
    assert [process.returncode for process in running] == [0, 0], ended
    tracker = MlflowTracker(launch_dir=tmp_path)
    runs = tracker.client.search_runs([tracker.experiment_id])
    assert len(runs) == 2 * 4
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len(tracker.client.search_experiments()) == 2  # MLflow's own Default, and ours


def test_no_tracker_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    c = comparison()
    tracker = NoTracker(launch_dir=tmp_path)
    tracker.prepare()
    parent = tracker.open_sweep("x", {})
    tracker.finish_cell(tracker.open_cell(parent, info(c)), c, tmp_path)
    tracker.fail_cell("", "x")
    tracker.kill("", "x")
    tracker.close_sweep(parent, [c], tmp_path)
    assert tracker.where(parent) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mlflow", "none"])
def test_each_yaml_builds(name: str, tmp_path: Path) -> None:
    from refadv_ablate import assets

    path = ROOT / "conf" / "tracking" / f"{name}.yaml"
    tracker = assets.build(yaml.safe_load(path.read_text()), "tracking", launch_dir=tmp_path)
    assert tracker.where("") == []
    assert assets.first_comment(path)


# ── names and numbers ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("refcoco+", "refcoco_plus"),
        ("Acc@0.5", "Acc_at_0.5"),
        ("../../etc/passwd", "etc_passwd"),
        ("中文", "u4e2du6587"),
        ("a//b: c,d", "a_b_c_d"),
        ("100%", "100_percent"),
        ("🦓", "x"),
        ("", "x"),
        ("Qwen/Qwen3-VL-8B-Instruct", "Qwen_Qwen3-VL-8B-Instruct"),
        ("x" * 500, "x" * 100),
    ],
)
def test_names_become_safe(name: str, key: str) -> None:
    assert metrics.safe(name) == key


@given(st.text())
def test_every_name_becomes_one_that_mlflow_takes(name: str) -> None:
    from mlflow.utils.validation import _validate_metric_name

    key = metrics.metric("delta_acc50", name)
    assert re.fullmatch(r"[A-Za-z0-9_./-]{1,250}", key)
    assert key.count("/") == 1
    _validate_metric_name(key)


def test_metrics_are_few_finite_and_none_is_the_folder_of_another() -> None:
    holm = comparison()
    full = replace(holm, deltas={**holm.deltas, "acc50": replace(holm.deltas["acc50"], p_holm=0.5)})
    nothing = comparison(drop=None, details={"usd": math.nan, "seconds": "x", "output_tokens": True})
    for c in (full, nothing, comparison(deltas={}, parsed_only={}, counts={})):
        found = metrics.metrics(c)
        assert 2 <= len(found) <= 30
        assert all(math.isfinite(value) for value in found.values())
        folders = {name.rsplit("/", 1)[0] for name in found}
        assert not folders & set(found)
    assert metrics.finite({"a": 0.7 - 0.5, "n": 1_234_567, "b": math.inf}) == {"a": 0.2, "n": 1_234_567}
    assert "acc50/delta" not in metrics.metrics(nothing)
    assert metrics.metrics(nothing)["acc50/original"] == 0.7


def test_labels_name_the_operator_first_and_only_what_differs() -> None:
    cells = [comparison("a+", "bow"), comparison("a_plus", "bow"), comparison("b", "bow", drop=None)]
    assert metrics.labels(cells) == ["bow--a_plus", "bow--a_plus-2", "bow--b"]
    assert metrics.parent_metrics(cells, 1) == {"n/cells": 3, "n/failed": 1}
    several = [comparison(data=d) for d in ("x", "y")]
    assert metrics.labels(several) == ["bow--qwen3vl-8b--x", "bow--qwen3vl-8b--y"]
    assert metrics.title(several[0], several) == "bow · qwen3vl-8b · x"
    rows = metrics.cells_table(cells)
    assert rows["columns"][5] == "acc50/delta" and rows["data"][0][5] == -0.2 and rows["data"][2][5] is None


def test_settings_explain_a_difference_and_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-value")
    told = {"model.size": "7B", "perturb.bow.n_shuffles": 2, "limit": None, "x": "sk-very-secret-value"}
    c = comparison(details={"settings": told, "engines": {"original": {"vllm 0.32.0": 9}}})
    found = metrics.settings(c)
    assert found["size"] == "7B"
    assert found["settings.engine"] == "vllm 0.32.0"
    assert found["settings.perturb.bow.n_shuffles"] == "2"
    assert "sk-very-secret-value" not in str(found)
    assert sorted(["perturb", "model", *found])[:2] == ["model", "perturb"], "the pages draw these"


def test_a_run_that_is_logged_again_keeps_its_settings(tracker: MlflowTracker, here: Path) -> None:
    parent = tracker.open_sweep("x", {"sweep": "s"})
    first = comparison(details={"settings": {"a": 1}, "hash": "h", "seed": 0})
    run_id = tracker.open_cell(parent, info(first))
    folder = cell_folder(here, first)
    tracker.finish_cell(run_id, first, folder)
    tracker.finish_cell(
        run_id, replace(first, details={**first.details, "settings": {"a": 2, "b": 3}}), folder
    )
    known = tracker.client.get_run(run_id).data.params
    assert (known["settings.a"], known["settings.b"]) == ("1", "3")


def test_the_pages_worth_opening_are_those_of_the_newest_sweep(tracker: MlflowTracker, here: Path) -> None:
    assert tracker.pages("http://h:1") == []
    parent = tracker.open_sweep("x", {"sweep": "s"})
    runs = [tracker.open_cell(parent, info(comparison(operator=o))) for o in ("bow", "fixed")]
    found = dict(tracker.pages("http://h:1"))
    assert all(run_id in found["its cells side by side"] for run_id in runs)
    assert found["the newest sweep"] == f"http://h:1/#/experiments/{tracker.experiment_id}/runs/{parent}"
    assert "orderByKey=metrics.%60acc50%2Fdelta%60" in found["all cells, the largest loss first"]


def test_tables_escape_what_they_are_given() -> None:
    odd = comparison("<script>alert(1)</script>|x", "a*b_c")
    text = metrics.markdown([odd], [("x|y", "<img src=q>")])
    assert "<script>" not in text
    assert "\\|x" in text
    page = metrics.html([odd], [("x", "<img src=q>")], "a & b")
    assert "<script>" not in page
    assert "<img" not in page
    assert "−20.0" in page


def test_only_one_module_imports_mlflow() -> None:
    importers = {
        path.name
        for path in (ROOT / "refadv_ablate").rglob("*.py")
        if re.search(r"^\s*(import|from) mlflow", path.read_text(encoding="utf-8"), re.M)
    }
    assert importers == {"mlflow.py"}


def test_importing_the_tracker_imports_no_mlflow() -> None:
    code = (
        "import sys, refadv_ablate.tracking.mlflow, refadv_ablate.commands.ui; print('mlflow' in sys.modules)"
    )
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout == "False\n", done.stderr


def test_the_log_of_migrations_is_quiet(tracker: MlflowTracker) -> None:
    assert logging.getLogger("alembic").level == logging.WARNING


# ── a log that was never finished ───────────────────────────────────────────────────────────────


def tables(path: Path, keep: int) -> None:
    """Leaves the first tables of a whole database, as a kill among MLflow's migrations does."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        connection.execute("DELETE FROM experiments")
        connection.execute("DELETE FROM alembic_version")
        for name in names[keep:]:
            connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        connection.commit()


@pytest.mark.parametrize("keep", [0, 1, 5, 1000])
def test_a_half_made_database_without_experiments_is_replaced(
    here: Path, template: Path, keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow, "_make_tables", lambda path: shutil.copyfile(template, path))
    tables(here / "mlflow.db", keep)
    (here / ".mlflow.db.part").write_bytes(b"left by a process that was killed")
    (here / "mlflow.db-journal").write_bytes(b"")
    tracker = MlflowTracker(launch_dir=here)
    tracker.prepare()
    assert tracker.open_sweep("a sweep", {"sweep": "s"})
    assert {p.name for p in here.iterdir()} == {"mlflow.db", "mlflow.db.lock"}


def test_a_database_with_experiments_is_never_replaced(here: Path) -> None:
    with closing(sqlite3.connect(here / "mlflow.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'an-older-one'")
        connection.commit()
    before = (here / "mlflow.db").read_bytes()
    with pytest.raises(UserError, match="can't be used"):
        MlflowTracker(launch_dir=here).prepare()
    assert (here / "mlflow.db").read_bytes() == before


def test_a_database_of_another_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv(LAUNCH, str(tmp_path))
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()
    with pytest.raises(UserError, match="database of another program"):
        MlflowTracker(launch_dir=tmp_path).prepare()


def test_a_build_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    def build(path: Path) -> None:
        path.write_bytes(b"half of it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sqlite_file.ensure(tmp_path / "mlflow.db", build)
    assert list(tmp_path.iterdir()) == []


# ── views ───────────────────────────────────────────────────────────────────────────────────────


def test_a_sweep_leaves_a_view_of_its_cells_that_addresses_open(tracker: MlflowTracker, here: Path) -> None:
    cells = [comparison(m, "bow") for m in ("a", "b")]
    parent = tracker.open_sweep("-m model=a,b", {"sweep": "s"})
    before = dict(tracker.pages("http://h"))
    assert "searchFilter=" in before["all cells, the largest loss first"], "no view is saved yet"
    for c in cells:
        tracker.finish_cell(tracker.open_cell(parent, info(c)), c, here / "none")
    tracker.close_sweep(parent, cells, here / "none")
    tags = tracker.client.get_experiment(tracker.experiment_id).tags
    state = json.loads(tags[f"{views.TAG}{views.of_sweep(parent)}"])
    assert state["searchFilter"] == f"tags.`mlflow.parentRunId` = '{parent}'"
    found = tracker.client.search_runs([tracker.experiment_id], state["searchFilter"])
    assert {run.data.params["model"] for run in found} == {"a", "b"}
    for column in state["selectedColumns"]:
        kind, _, name = column.partition(".")
        known = {"params": found[0].data.params, "metrics": {**found[0].data.metrics, "acc50/p_holm": 0}}
        assert name.strip("`") in known.get(kind, {"Dataset": 0})
    pages = dict(tracker.pages("http://h"))
    page = pages["its cells with Δ, interval and n"]
    assert (
        page == f"http://h/#/experiments/{tracker.experiment_id}/runs?viewStateShareKey=refadv-{parent[:12]}"
    )
    assert pages["their charts"].endswith("&compareRunsMode=CHART")


def test_a_view_has_what_tells_its_cells_apart_and_fits_a_tag() -> None:
    runs = [{"model": m, "perturb": "bow", "data": "x", "settings.model.id": m, "seed": "0"} for m in "ab"]
    assert metrics.differing(runs) == ["model", "perturb"]
    draws = [{**runs[0], "settings.perturb.bow.n_shuffles": n} for n in "12"]
    assert metrics.differing([*draws, {**runs[1], "data": "y"}]) == [
        "model",
        "perturb",
        "data",
        "settings.perturb.bow.n_shuffles",
    ]
    text = views.view("f" * 32, [f"settings.{'x' * 70}.{i}" for i in range(30)])
    assert len(text) < 5000
    assert len(views.view(None, ["model", "perturb"])) < 5000


def test_scores_of_the_profile_are_metrics_with_their_interval() -> None:
    scores = (Score("youden", "reject", Estimate(0.4, 0.3, 0.5, 60, 30, "")),)
    found = metrics.metrics(comparison(scores=scores))
    assert found["understanding/youden"] == 0.4
    assert (found["understanding/youden_ci_low"], found["understanding/youden_ci_high"]) == (0.3, 0.5)
    assert not any(name.startswith("understanding") for name in metrics.metrics(comparison()))
