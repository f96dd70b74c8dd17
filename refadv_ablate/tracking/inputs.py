"""What a run says it rests on: its data and its model, as MLflow's datasets and logged models name them.

Nothing is copied: a dataset is a name, a digest of what determines its examples, and counts; a logged model
is a name and the settings that determine its answers. Both are the same for all runs that share them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from refadv_ablate.seeding import canonical, digest
from refadv_ablate.tracking import metrics as logged
from refadv_ablate.tracking.interface import CellInfo
from refadv_ablate.types import Comparison, Json

CONTEXT = "mlflow.data.context"
MODEL = "refadv.model"
"""The tag of a logged model by which the next run finds it."""
LONGEST_SOURCE = 60_000
"""Characters that MLflow keeps of a dataset's source."""
OF_BOTH = "acc50/original"
"""The metric that says something of a model and data alone: it stands in the list of models."""
OF_MODEL = ("model.", "backend.")
"""Settings that determine what a model answers."""


def dataset(cell: CellInfo, comparison: Comparison) -> dict[str, str]:
    """The fields of a dataset: its fingerprint is the source and gives the digest; the profile has counts.

    The first 60 examples of a set are another set than all of it.
    """
    source = json.dumps({"tags": dict(cell.data_fingerprint)}, default=str, ensure_ascii=False)
    part = [] if cell.limit is None else [cell.limit]
    counts = {"examples": comparison.planned, "paired": comparison.paired, "images": comparison.images}
    return {
        "name": logged.safe(cell.data),
        "digest": digest(json.loads(source), *part)[:8],
        "source_type": "code",
        "source": logged.censored(source) if len(source) < LONGEST_SOURCE else json.dumps({"tags": {}}),
        "profile": canonical(counts),
    }


def model(comparison: Comparison) -> tuple[str, str, dict[str, str]]:
    """Of a logged model: its name, what tells it from others, and the settings that say so."""
    known: Mapping[str, Json] = comparison.details.get("settings") or {}
    found = {
        key: str(value) for key, value in known.items() if key.startswith(OF_MODEL) and value is not None
    }
    found = {"model": comparison.model, "engine": logged.engines(comparison), **found}
    told = {key: logged.censored(value)[: logged.LIMIT_SHOWN] for key, value in found.items() if value}
    return logged.safe(comparison.model).replace(".", "_"), digest(told)[:16], told
