"""Saved views of MLflow's run list: which cells, columns and charts an address opens with.

MLflow's pages keep columns and charts in the browser, and open a view that is saved in a tag of the
experiment where the address names it (mlflow/server/js, useSharedExperimentViewState).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import urlencode

from refadv_ablate.types import METRICS, Json

TAG = "mlflow.sharedViewState."
"""Before the name of a view, in the key of the experiment's tag that keeps it."""
ALL = "refadv-cells"
"""The view of every cell of the experiment."""
MOST_AXES, LONGEST = 8, 80
"""Parameters that are columns, and the characters of their names: MLflow keeps 5,000 of such a tag."""
COLUMNS = (
    "acc50/delta",
    "acc50/delta_ci_low",
    "acc50/delta_ci_high",
    "n/paired",
    "n/images",
    "acc50/original",
    "acc50/perturbed",
    "acc50/p_holm",
)
"""Metrics that are columns: Δ with its interval first, and what it rests on."""
WIDTH = 130
"""Pixels of a column: its name is read whole."""
FOLDED = (*METRICS, "understanding", "n", "cost")
"""Sections of charts that MLflow makes by itself, one bar each: closed until somebody opens them."""


def of_sweep(parent: str) -> str:
    """The name of a sweep's view."""
    return f"refadv-{parent[:12]}"


def view(parent: str | None, params: Sequence[str], metrics: Sequence[str] = COLUMNS) -> str:
    """The tag's value: cells of one sweep or of all, the largest loss first, with columns and charts.

    params: what the cells are told apart by, such as model and perturb; they are columns and axes.
    """
    of = f"tags.`mlflow.parentRunId` = '{parent}'" if parent else "tags.`refadv.kind` = 'cell'"
    axes = [name for name in params if len(name) <= LONGEST][:MOST_AXES]
    columns = [*(f"params.`{name}`" for name in axes), *(f"metrics.`{name}`" for name in metrics)]
    state: Json = {
        "searchFilter": of,
        "orderByKey": "metrics.`acc50/delta`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": [*columns, "attributes.`Dataset`"],
        "columnOrder": columns,
        "columnWidths": dict.fromkeys(columns, WIDTH),
        "isAccordionReordered": True,
        "runsHiddenMode": "SHOW_ALL",
        "compareRunSections": [
            _section("refadv", "Original against perturbed", shown=True),
            *(_section(f"refadv-{name}", name, shown=False) for name in FOLDED),
        ],
        "compareRunCharts": list(_charts(axes)),
    }
    return json.dumps(state, separators=(",", ":"))


def address(server: str, experiment: str, name: str, mode: str = "") -> str:
    """Where a view opens: as the list of cells, or with mode CHART as charts, with ARTIFACT as tables."""
    words = {"viewStateShareKey": name} | ({"compareRunsMode": mode} if mode else {})
    return f"{server}/#/experiments/{experiment}/runs?{urlencode(words)}"


def _section(uuid: str, name: str, shown: bool) -> Json:
    return {
        "uuid": uuid,
        "name": name,
        "display": shown,
        "isReordered": False,
        "deleted": False,
        "isGenerated": False,
    }


def _charts(axes: Sequence[str]) -> list[Json]:
    """Models and perturbations to Δ; each cell's Δ; original against perturbed accuracy."""
    shared = {"metricSectionId": "refadv", "deleted": False, "isGenerated": False}
    parallel = {
        "uuid": "refadv-parallel",
        "type": "PARALLEL",
        "displayName": "What Δ depends on",
        "runsCountToCompare": 100,
        "selectedParams": list(axes),
        "selectedMetrics": ["acc50/delta"],
        "showAllRuns": True,
    }
    bars = {
        "uuid": "refadv-bars",
        "type": "BAR",
        "displayName": "Δ Acc@0.5 of each cell",
        "runsCountToCompare": 100,
        "metricKey": "acc50/delta",
    }
    scatter = {
        "uuid": "refadv-scatter",
        "type": "SCATTER",
        "displayName": "Acc@0.5, original (x) and perturbed (y)",
        "runsCountToCompare": 100,
        "xaxis": {"key": "acc50/original", "type": "METRIC"},
        "yaxis": {"key": "acc50/perturbed", "type": "METRIC"},
    }
    return [{**chart, **shared} for chart in (parallel, bars, scatter)]
