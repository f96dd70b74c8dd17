"""Predictions of logged runs: their files come back from the log, their numbers from the boxes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError
from refadv_ablate.report.loading.sources import Cell, Names, from_files

PARENT = "tags.`mlflow.parentRunId`"
NEEDED = ("summary.json", "config.yaml")


def from_log(tracker: Any, run_ids: Sequence[str], folder: Path) -> list[Cell]:
    """The cells of these runs (a sweep stands for all of its cells), fetched into `folder`.

    Without ids, the newest sweep of the tracker's experiment. Raises UserError where there is none.
    """
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    client = getattr(tracker, "client", None)
    if client is None:
        raise UserError("tracking=none keeps no runs; leave it out, or use source=files path=results")
    chosen = list(run_ids) or [_newest(client, tracker.experiment)]
    cells = []
    for run_id in dict.fromkeys(cell for one in chosen for cell in _cells(client, one)):
        predictions = list(_fetched(client, run_id, folder / run_id))
        if predictions:
            cells.extend(from_files(predictions, Names()))
    if not cells:
        raise UserError(f"the runs {', '.join(chosen)} have logged no predictions")
    return sorted(cells, key=lambda c: (c.names.model, c.names.data, c.names.prompt, c.operators))


def _newest(client: Any, experiment: str) -> str:
    found = client.get_experiment_by_name(experiment)
    if found is None:
        raise UserError(
            f"there is no experiment {experiment!r} in the log; run something first, or give run=…"
        )
    runs = client.search_runs([found.experiment_id], order_by=["attributes.start_time DESC"], max_results=200)
    sweeps = [run.info.run_id for run in runs if "mlflow.parentRunId" not in run.data.tags]
    if not sweeps:
        raise UserError(f"the experiment {experiment!r} has no runs yet")
    return str(sweeps[0])


def _cells(client: Any, run_id: str) -> list[str]:
    """The children of a sweep's run, or the run itself."""
    try:
        run = client.get_run(run_id)
    except Exception as error:
        raise UserError(f"the log has no run {run_id!r}: {' '.join(str(error).split())[:200]}") from error
    children = client.search_runs([run.info.experiment_id], f"{PARENT} = '{run_id}'", max_results=1000)
    return sorted(child.info.run_id for child in children) or [run_id]


def _fetched(client: Any, run_id: str, folder: Path) -> Iterator[Path]:
    names = {item.path for item in client.list_artifacts(run_id)}
    wanted = [name for name in ("predictions.jsonl", "predictions.jsonl.gz") if name in names]
    if not wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in [*wanted[:1], *(n for n in NEEDED if n in names)]:
        path = Path(client.download_artifacts(run_id, name, str(folder)))
        if name in wanted:
            yield path
