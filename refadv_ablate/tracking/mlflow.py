"""MLflow: a parent run for each sweep, a child run for each cell; the only importer of mlflow.

Every call names its run id, so that threads, processes and earlier failures in this process can't send
anything to another run. What can't be sent is a warning: the result folder holds the same and more, and
`refadv-ablate ui log path=FOLDER` sends it later. A run that an earlier process left is taken up again.
"""

from __future__ import annotations

import getpass
import json
import logging
import os
import random
import shlex
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError
from refadv_ablate.seeding import canonical, digest
from refadv_ablate.storage.jsonl import read_json, write_json
from refadv_ablate.tracking import inputs, sqlite_file, uploads, views
from refadv_ablate.tracking import metrics as logged
from refadv_ablate.tracking.interface import CellInfo, NoTracker, Tracker
from refadv_ablate.tracking.uri import database_file, tracking_uri
from refadv_ablate.types import Comparison

__all__ = ["CellInfo", "MlflowTracker", "NoTracker", "Tracker"]

log = logging.getLogger(__name__)
LAUNCH = "REFADV_LAUNCH_DIR"
"""Tells worker processes, whose working directory may differ, where the command was given."""
RUNS_VIEW = ("mlflow.experimentKind", "custom_model_development")
"""Makes MLflow's pages open an experiment on its runs, not on traces of chats."""
ATTEMPTS = 8


class _Patient:
    """A client whose calls are repeated while another process holds the database."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return method(*args, **kwargs)
                except Exception as error:
                    text = str(error).lower()
                    if attempt == ATTEMPTS or not any(
                        s in text for s in ("locked", "deadlock", "serialize access")
                    ):
                        raise
                    time.sleep(random.uniform(0.05, 0.1) * 2**attempt)
            raise AssertionError("unreachable")

        return call


@contextmanager
def _quiet() -> Iterator[None]:
    """MLflow as it is wanted here: no calls home, no long retries, no log lines and warnings of its own."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on newer SQLAlchemy
        yield


def _make_tables(path: Path) -> None:
    """All of MLflow's tables in a new SQLite file, closed when it returns."""
    import sqlalchemy

    with _quiet():
        from mlflow.store.db.utils import _initialize_tables

        engine = sqlalchemy.create_engine(sqlalchemy.URL.create("sqlite", database=str(path)))
        try:
            _initialize_tables(engine)
        finally:
            engine.dispose()


@dataclass
class MlflowTracker:
    """Logs to MLflow; the fields are the keys of conf/tracking/mlflow.yaml."""

    uri: str | None = None
    experiment: str = "refadv-ablate"
    artifacts: str | None = None
    gzip_above_mb: float = 5.0
    launch_dir: Path = field(default_factory=Path.cwd)
    _made: set[str] = field(default_factory=set, init=False, repr=False)
    """Runs that this process created."""
    _cells: dict[str, CellInfo] = field(default_factory=dict, init=False, repr=False)
    """What the runs of cells were opened with."""
    _without_models: bool = field(default=False, init=False, repr=False)
    """Whether the server has refused a logged model: those before MLflow 3 know none."""

    @cached_property
    def resolved(self) -> str:
        """The absolute tracking URI."""
        return tracking_uri(self.uri, Path(os.environ.get(LAUNCH) or self.launch_dir))

    @cached_property
    def client(self) -> Any:
        """MLflow's client on the resolved URI, in none of MLflow's global state."""
        with _quiet():
            from mlflow import MlflowClient

            return _Patient(MlflowClient(tracking_uri=self.resolved))

    @cached_property
    def experiment_id(self) -> str:
        """Of the experiment that `prepare` made."""
        found = self.client.get_experiment_by_name(self.experiment)
        if found is None:
            raise UserError(f"the experiment {self.experiment!r} is not in {self._shown()} any more")
        return str(found.experiment_id)

    # ── preparation ─────────────────────────────────────────────────────────────────────────────

    def prepare(self) -> None:
        """See Tracker."""
        os.environ[LAUNCH] = str(Path(self.launch_dir).resolve())
        self.__dict__.pop("resolved", None)
        path = database_file(self.resolved)
        with self._needed(), self._creation(path):
            if path is not None:
                sqlite_file.ensure(path, _make_tables)
            self._make_experiment(path)

    @contextmanager
    def _needed(self) -> Iterator[None]:
        """For what no run can be logged without: a failure is a UserError and ends the command."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"MLflow at {self._shown()} can't be used ({_cause(error)}); "
                "start or mend it, or log nothing with tracking=none"
            ) from error

    @contextmanager
    def _creation(self, path: Path | None) -> Iterator[None]:
        """MLflow's migrations and experiments are not safe to make twice at once."""
        from filelock import FileLock

        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        name = f"refadv-mlflow-{getpass.getuser()}-{digest(self.resolved)[:16]}.lock"
        lock = path.with_name(path.name + ".lock") if path else Path(tempfile.gettempdir()) / name
        with FileLock(lock, timeout=120):
            yield

    def _make_experiment(self, path: Path | None) -> None:
        found = self.client.get_experiment_by_name(self.experiment)
        if found is None:
            try:
                made = self.client.create_experiment(self.experiment, artifact_location=self._root(path))
                self.client.set_experiment_tag(made, *RUNS_VIEW)
            except Exception:
                found = self.client.get_experiment_by_name(self.experiment)  # somebody else was first
                if found is None:
                    raise
        if found is not None and found.lifecycle_stage == "deleted":
            raise UserError(
                f"the MLflow experiment {self.experiment!r} is deleted; restore it with "
                f"`mlflow experiments restore -x {found.experiment_id}` "
                "or choose another name with tracking.experiment=…"
            )

    def _root(self, path: Path | None) -> str | None:
        if self.artifacts:
            here = Path(self.launch_dir).resolve() / self.artifacts
            return self.artifacts if "://" in self.artifacts else here.as_uri()
        return (path.parent / "mlartifacts").as_uri() if path else None

    def _shown(self) -> str:
        return logged.censored(self.resolved)

    # ── runs ────────────────────────────────────────────────────────────────────────────────────

    def open_sweep(self, name: str, tags: Mapping[str, str]) -> str:
        """See Tracker."""
        with self._needed():
            return self._open_sweep(name, tags)

    def _open_sweep(self, name: str, tags: Mapping[str, str]) -> str:
        own = {f"refadv.{key}": logged.censored(str(value))[:5000] for key, value in tags.items()}
        own["refadv.origin"] = f"{getpass.getuser()}:{Path(self.launch_dir).resolve()}"
        if swept := logged.swept(name.split()):
            own["refadv.swept"] = " ".join(swept)
        same = {"refadv.sweep": own.get("refadv.sweep", ""), "refadv.origin": own["refadv.origin"]}
        found = self._find(same) if same["refadv.sweep"] else None
        if found is not None:
            return self._take_up(found, own)
        title = logged.censored(name)[:200]
        made = self._create(title, {"refadv.kind": "sweep", "mlflow.runName": title, **own})
        self._params(made, {"overrides": logged.censored(name)[: logged.LIMIT_SHOWN]})
        return made

    def open_cell(self, parent: str, cell: CellInfo) -> str:
        """See Tracker."""
        run_id = self._guarded("begin the run of a cell", lambda: self._open_cell(parent, cell)) or ""
        self._cells[run_id] = cell
        return str(run_id)

    def _open_cell(self, parent: str, cell: CellInfo) -> str:
        if not parent:
            return ""
        identity = {"mlflow.parentRunId": parent, "refadv.hash": cell.hash}
        found = self._find(identity)
        if found is not None:
            return self._take_up(found, {})
        swept = self.client.get_run(parent).data.tags.get("refadv.swept", "").split()
        taken = [run.info.run_name for run in self._children(parent)]
        title = logged.child_name(cell, swept)
        title = title if title not in taken else f"{title} · {cell.hash[:6]}"
        tags = {"refadv.kind": "cell", "mlflow.runName": title, **identity}
        run_id = self._create(title, tags)
        values = {key: logged.censored(value) for key, value in logged.params(cell).items()}
        from mlflow.entities import Param, RunTag

        self.client.log_batch(
            run_id,
            params=[Param(key, value) for key, value in values.items()],
            tags=[RunTag(key, values[key]) for key in ("model", "data", "prompt", "perturb")],
        )
        return run_id

    def _create(self, title: str, tags: Mapping[str, str]) -> str:
        own = {
            "mlflow.user": getpass.getuser(),
            "mlflow.source.name": "refadv-ablate",
            "mlflow.source.type": "LOCAL",
        }
        made = self.client.create_run(self.experiment_id, tags={**own, **tags}, run_name=title).info.run_id
        self._made.add(str(made))
        return str(made)

    def _take_up(self, run: Any, tags: Mapping[str, str]) -> str:
        run_id = str(run.info.run_id)
        if "refadv.reason" in run.data.tags:
            self.client.delete_tag(run_id, "refadv.reason")
        if run.info.status != "RUNNING":
            self.client.update_run(run_id, status="RUNNING")
        self._tag(run_id, tags)
        return run_id

    def _find(self, tags: Mapping[str, str]) -> Any:
        terms = [f"tags.`{key}` = '{value.replace(chr(39), chr(39) * 2)}'" for key, value in tags.items()]
        runs = self.client.search_runs([self.experiment_id], " AND ".join(terms), max_results=1)
        return runs[0] if runs else None

    def _children(self, parent: str) -> list[Any]:
        runs: list[Any] = []
        token: str | None = None
        while True:
            page = self.client.search_runs(
                [self.experiment_id],
                f"tags.`mlflow.parentRunId` = '{parent}'",
                max_results=1000,
                page_token=token,
            )
            runs += page
            token = page.token
            if not token:
                return runs

    def _inputs(self, run_id: str, cell: CellInfo, comparison: Comparison) -> dict[str, str]:
        """Logs the data and the model of a cell where its run lacks them; gives what metrics name them by."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        tags = [InputTag(inputs.CONTEXT, "evaluation")]
        data = DatasetInput(dataset=Dataset(**inputs.dataset(cell, comparison)), tags=tags)
        model = None if self._without_models else self._guarded_model(comparison)
        self._rest_on(run_id, [data], [model] if model else [])
        names = {"dataset_name": data.dataset.name, "dataset_digest": data.dataset.digest}
        return {"model_id": model.model_id, **names} if model else {}

    def _guarded_model(self, comparison: Comparison) -> Any:
        """The logged model; None, said once, from a server that keeps none."""
        told = "log models, which servers before MLflow 3 don't keep"
        model = self._guarded(told, lambda: self._logged_model(comparison))
        self._without_models = model is None
        return model

    def _rest_on(self, run_id: str, data: Sequence[Any], models: Sequence[Any]) -> None:
        """Logs the inputs that a run lacks, each once."""
        known = self.client.get_run(run_id).inputs
        there = {(each.dataset.name, each.dataset.digest) for each in known.dataset_inputs}
        new = {(each.dataset.name, each.dataset.digest): each for each in data}
        has = {each.model_id for each in known.model_inputs or ()}
        self.client.log_inputs(
            run_id,
            datasets=[each for name, each in new.items() if name not in there],
            models=list({each.model_id: each for each in models if each.model_id not in has}.values()),
        )

    def _logged_model(self, comparison: Comparison) -> Any:
        """The logged model of a comparison as an input: the one that is there, or a new one."""
        from mlflow.entities import LoggedModelInput

        name, mark, told = inputs.model(comparison)
        here, tag = [self.experiment_id], f"tags.`{inputs.MODEL}` = '{mark}'"
        if there := self.client.search_logged_models(here, tag, max_results=1):
            return LoggedModelInput(there[0].model_id)
        kind, tags = "referring expression comprehension", {inputs.MODEL: mark}
        made = self.client.create_logged_model(
            self.experiment_id, name=name, tags=tags, params=told, model_type=kind
        )
        self.client.finalize_logged_model(made.model_id, "READY")
        return LoggedModelInput(made.model_id)

    def finish_cell(self, run_id: str, comparison: Comparison, folder: Path) -> None:
        """See Tracker."""
        if run_id:
            self._guarded("log a cell", lambda: self._finish_cell(run_id, comparison, Path(folder)))

    def _finish_cell(self, run_id: str, comparison: Comparison, folder: Path) -> None:
        status = folder / "status.json"
        state = read_json(status)["state"] if status.exists() else "done"
        about: dict[str, str] = {}
        if run_id in self._cells:
            told = partial(self._inputs, run_id, self._cells[run_id], comparison)
            about = self._guarded("log the data and the model of a cell", told) or {}
        self._metrics(run_id, logged.metrics(comparison), about)
        self._params(run_id, logged.settings(comparison))
        sent = self._send_cell(run_id, folder)
        self._tag(
            run_id,
            {
                "refadv.state": state,
                "refadv.warnings": str(len(comparison.warnings)),
                "refadv.sent": sent,
                "refadv.engine": logged.engines(comparison),
                "mlflow.note.content": _note(comparison),
            },
        )
        self._end(run_id, "FINISHED")

    def _send_cell(self, run_id: str, folder: Path) -> str:
        """Sends a cell's files unless they are there already; gives what names them, "" if any is not."""
        summary = folder / "summary.json"
        mark = digest(canonical(read_json(summary))) if summary.exists() else ""
        if mark and self.client.get_run(run_id).data.tags.get("refadv.sent") == mark:
            return mark
        table = partial(self._prediction_table, run_id, folder / "predictions.jsonl")
        done = [self._upload(run_id, folder), self._guarded("send the table of predictions", table)]
        return mark if all(done) else ""

    def _end(self, run_id: str, status: str) -> None:
        self.client.set_terminated(run_id, status=status)

    def fail_cell(self, run_id: str, reason: str) -> None:
        """See Tracker."""
        if run_id:
            self._guarded("mark a run as failed", lambda: self._stop(run_id, "FAILED", reason))

    def discard(self, run_id: str, reason: str) -> None:
        """See Tracker."""
        if run_id in self._made:
            self._guarded("remove a run", lambda: self._discard(run_id))
        else:
            self.fail_cell(run_id, reason)

    def _discard(self, run_id: str) -> None:
        self._end(run_id, "FAILED")
        self.client.delete_run(run_id)

    def kill(self, run_id: str, reason: str = "stopped by the user") -> None:
        """See Tracker."""
        if run_id:
            self._guarded("mark a run as killed", lambda: self._stop(run_id, "KILLED", reason))

    def _stop(self, run_id: str, status: str, reason: str) -> None:
        self._tag(run_id, {"refadv.reason": reason, "mlflow.note.content": f"**{status}**: {reason}"})
        self._end(run_id, status)
        for child in self._children(run_id):
            if child.info.status == "RUNNING":
                self._stop(child.info.run_id, "KILLED", reason)

    def close_sweep(
        self,
        parent: str,
        comparisons: Sequence[Comparison],
        folder: Path,
        failures: Sequence[tuple[str, str]] = (),
    ) -> None:
        """See Tracker."""
        if parent:
            self._guarded(
                "log the sweep", lambda: self._close_sweep(parent, comparisons, Path(folder), failures)
            )

    def _close_sweep(
        self,
        parent: str,
        comparisons: Sequence[Comparison],
        folder: Path,
        failures: Sequence[tuple[str, str]],
    ) -> None:
        self._metrics(parent, logged.parent_metrics(comparisons, len(failures)) | logged.differences(folder))
        runs = self._children(parent)
        children = {child.data.tags.get("refadv.hash"): child.info for child in runs}
        for comparison in comparisons:  # Holm's p, and what tells the cells apart, are known only now
            child = children.get(str(comparison.details.get("hash")))
            if child is not None:
                self._settle(child.run_id, comparison, comparisons)
        for child in children.values():
            if child.status == "RUNNING":
                self._stop(child.run_id, "KILLED", "its process ended without a word")
        self._guarded("log the data of the sweep", lambda: self._sweep_inputs(parent, runs))
        self._guarded("save the view of the sweep", lambda: self._save_views(parent, runs))
        table = logged.markdown(comparisons, failures)
        with tempfile.TemporaryDirectory() as scratch:
            (Path(scratch) / "summary.md").write_text(logged.censored(table), encoding="utf-8")
            page = logged.html(comparisons, failures, "Δ of every cell")
            (Path(scratch) / "summary.html").write_text(logged.censored(page), encoding="utf-8")
            self._upload(parent, Path(scratch))
        self._upload(parent, folder)
        self._table(parent, "cells_table.json", logged.cells_table(comparisons))
        note = (
            table if len(table) < 7_500 else "The table of this sweep is among the artifacts: summary.html\n"
        )
        self._tag(
            parent, {"mlflow.note.content": note, "refadv.cells": str(len(comparisons) + len(failures))}
        )
        self._end(parent, "FAILED" if failures and not comparisons else "FINISHED")

    def _sweep_inputs(self, parent: str, runs: Sequence[Any]) -> None:
        """The data and models of the cells, at the sweep too."""
        found = [self.client.get_run(run.info.run_id).inputs for run in runs]  # a search leaves models out
        data = [each for one in found for each in one.dataset_inputs]
        self._rest_on(parent, data, [each for one in found for each in one.model_inputs or ()])

    def _save_views(self, parent: str, runs: Sequence[Any]) -> None:
        """Columns and charts that addresses open the run list with: of this sweep, and of all cells."""
        told_apart = logged.differing([run.data.params for run in runs])
        for name, text in (
            (views.of_sweep(parent), views.view(parent, told_apart)),
            (views.ALL, views.view(None, ("model", "data", "prompt", "perturb"))),
        ):
            self.client.set_experiment_tag(self.experiment_id, views.TAG + name, text)

    def _settle(self, run_id: str, comparison: Comparison, comparisons: Sequence[Comparison]) -> None:
        """A cell's name, note and adjusted p, now that all cells of the sweep are known."""
        adjusted = {f"{m}/p_holm": d.p_holm for m, d in comparison.deltas.items() if m == "acc50"}
        self._metrics(run_id, logged.finite(adjusted))
        title = logged.censored(logged.title(comparison, comparisons))[:200]
        self._tag(run_id, {"mlflow.note.content": _note(comparison), "mlflow.runName": title})
        self.client.update_run(run_id, name=title)

    def where(self, parent: str) -> list[str]:
        """See Tracker."""
        if not parent:
            return []
        page = f"#/experiments/{self.experiment_id}/runs/{parent}"
        if self.resolved.startswith("http"):
            return [f"MLflow: {self._shown().rstrip('/')}/{page}"]
        store = shlex.quote(self._shown())
        return [
            f"MLflow: {self._shown()}, experiment {self.experiment!r}, run {parent}",
            f"  see it with: refadv-ablate ui, or: mlflow ui --backend-store-uri {store}",
        ]

    def pages(self, address: str) -> list[tuple[str, str]]:
        """(what it shows, address) of the pages on the newest sweep, for a server at this address."""
        sweep = self._find({"refadv.kind": "sweep"})
        if sweep is None:
            return []
        parent = str(sweep.info.run_id)
        cells = [str(run.info.run_id) for run in self._children(parent)]
        saved = self.client.get_experiment(self.experiment_id).tags
        view = next((n for n in (views.of_sweep(parent), views.ALL) if views.TAG + n in saved), None)
        return logged.addresses(address, self.experiment_id, parent, cells, view)

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    def _guarded(self, what: str, work: Callable[[], Any]) -> Any:
        """Runs it; a failure is a warning, since the result folder has everything."""
        try:
            return work()
        except Exception as error:
            cause = _cause(error)
            log.warning("MLflow: can't %s (%s); results are kept in the result folder", what, cause)
            return None

    def _metrics(
        self, run_id: str, values: Mapping[str, float], about: Mapping[str, str] | None = None
    ) -> None:
        """Sends what changed: a run that is logged again keeps one point a metric.

        about: model and data that the accuracy on original texts is of, which no perturbation enters.
        """
        from mlflow.entities import Metric

        known = self.client.get_run(run_id).data.metrics
        now = int(time.time() * 1000)
        new = [
            Metric(key, value, now, 0, **(about or {} if key == inputs.OF_BOTH else {}))
            for key, value in values.items()
            if known.get(key) != value
        ]
        for start in range(0, len(new), 500):
            self.client.log_batch(run_id, metrics=new[start : start + 500])

    def _params(self, run_id: str, values: Mapping[str, str]) -> None:
        """Those that the run lacks: a parameter can't be changed."""
        from mlflow.entities import Param

        known = self.client.get_run(run_id).data.params
        new = [Param(key, value) for key, value in values.items() if key not in known]
        if new:
            self.client.log_batch(run_id, params=new)

    def _tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        if tags:
            values = {key: logged.censored(value)[:7_900] for key, value in tags.items()}
            self.client.log_batch(run_id, tags=[RunTag(key, value) for key, value in values.items()])

    def _upload(self, run_id: str, folder: Path) -> bool:
        """Whether every file of the folder was sent."""
        sent = [
            self._guarded(f"send {path}", partial(self._send, run_id, path, target))
            for path, target in uploads.files(folder)
        ]
        return all(sent)

    def _send(self, run_id: str, path: Path, target: str | None) -> bool:
        if uploads.holds_secret(path):
            log.warning("MLflow: %s holds the value of a secret and is not sent", path)
            return False
        with uploads.packed(path, self.gzip_above_mb * 1e6) as file:
            self.client.log_artifact(run_id, str(file), target)
        return True

    def _prediction_table(self, run_id: str, path: Path) -> bool:
        """Opens by itself in the UI; MLflow's own log_table would append to an earlier one."""
        if not path.exists():
            return True
        self._table(run_id, "predictions_table.json", uploads.prediction_table(path))
        return True

    def _table(self, run_id: str, name: str, content: Any) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            table = Path(scratch) / name
            write_json(table, json.loads(logged.censored(json.dumps(content))))
            self.client.log_artifact(run_id, str(table))
        self._tag(run_id, {"mlflow.loggedArtifacts": json.dumps([{"path": name, "type": "table"}])})


def _note(comparison: Comparison) -> str:
    return logged.markdown([comparison], []) + "".join(f"\n- {text}" for text in comparison.warnings)


def _cause(error: Exception) -> str:
    """One line without the SQL that a database error carries."""
    text = " ".join(str(error).split()).partition("[SQL")[0].strip()
    return "the disk is full" if "disk is full" in text else logged.censored(text)[:300]
