"""Logs the folder of a sweep later, for machines that could not reach the log while they ran."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from refadv_ablate.errors import UserError
from refadv_ablate.seeding import digest
from refadv_ablate.statistics.labels import labelled
from refadv_ablate.storage.jsonl import read_json
from refadv_ablate.storage.records import load
from refadv_ablate.tracking.interface import CellInfo, Tracker
from refadv_ablate.types import Comparison, Json


def log_folder(tracker: Tracker, folder: Path) -> str:
    """Logs a sweep's folder as if the log had been there; gives the run id. Safe to repeat.

    Raises UserError for a folder that is no sweep.
    """
    folder = Path(folder)
    if not (folder / "sweep.json").is_file():
        raise UserError(f"{folder} is no folder of a sweep (it has no sweep.json); give one of …/sweeps/*")
    facts = read_json(folder / "sweep.json")
    words = [str(word) for word in facts.get("overrides", [])]
    tags = {key: value for key, value in facts.items() if isinstance(value, str) and key != "parent"}
    tracker.prepare()
    parent = tracker.open_sweep(" ".join(words) or "default", {"sweep": folder.name, **tags})
    comparisons, failures = [], []
    for path in sorted((folder / "cells").glob("*.json")):
        cell = read_json(path)
        home = Path(cell["folder"])
        if cell["state"] in ("done", "incomplete"):
            comparison = load(home / "summary.json")
            run_id = tracker.open_cell(parent, _info(comparison, home))
            tracker.finish_cell(run_id, comparison, home)
            comparisons.append(comparison)
        else:
            name = " · ".join(filter(None, (cell["model"], cell["data"], cell["prompt"], cell["operator"])))
            failures.append((name, f"{cell['state']}: {cell['reason']}"))
    tracker.close_sweep(parent, labelled(comparisons), folder, failures)
    return parent


def _info(comparison: Comparison, folder: Path) -> CellInfo:
    """What open_cell needs, read back from a cell's folder."""
    from omegaconf import OmegaConf

    path = folder / "config.yaml"
    config = OmegaConf.to_container(OmegaConf.load(path)) if path.exists() else {}
    known = config if isinstance(config, dict) else {}
    details: Mapping[str, Json] = comparison.details
    return CellInfo(
        model=comparison.model,
        data=comparison.data,
        prompt=comparison.prompt,
        operator=comparison.operator,
        seed=int(details.get("seed", 0)),
        limit=known.get("limit"),
        hash=str(details.get("hash") or digest(str(folder))),
        config_path=path,
        data_fingerprint={"config": known.get("data", comparison.data)},
    )
