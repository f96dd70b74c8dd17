"""The cells of a config: what determines the numbers of each, its folder, and how it stands.

A cell is model × data × prompt × operator. Its folder is named by a hash of everything that determines
its numbers, so that a finished cell is never computed again and two processes never write one folder.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from refadv_ablate import __version__
from refadv_ablate.errors import UserError
from refadv_ablate.masking import masked
from refadv_ablate.running.parts import Parts
from refadv_ablate.running.sweep import State, slugify
from refadv_ablate.seeding import digest
from refadv_ablate.statistics.labels import flat
from refadv_ablate.storage.jsonl import read_json, write_json
from refadv_ablate.storage.records import load
from refadv_ablate.types import Json


@dataclass(frozen=True)
class Cell:
    """One cell of this job."""

    label: str
    hash: str
    folder: Path

    def state(self) -> State | None:
        """How it stands, if it was ever begun; None as well where what it left can't be read."""
        path = self.folder / "status.json"
        if not path.exists():
            return None
        try:
            state: State = read_json(path)["state"]
            if state in ("done", "incomplete"):
                load(self.folder / "summary.json")
        except (UserError, KeyError):  # cut short by a full disk, say: made anew from the stored answers
            return None
        return state

    def write_state(self, state: State, reason: str = "", trace: str = "") -> None:
        """Writes how the cell stands into its folder; `trace` is the traceback of a fault of ours."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write_json(
            self.folder / "status.json",
            {
                "state": state,
                "reason": reason,
                "traceback": trace,
                "hash": self.hash,
                "version": __version__,
                "time": now,
            },
        )


def cells_of(parts: Parts) -> list[Cell]:
    """The cells of one job: one for each operator."""
    config, settings = parts.config, parts.settings
    shared: Json = [
        __version__,
        {key: masked(config[key]) for key in ("model", "prompt", "protocol", "data")},
        masked(parts.engine),
        parts.style.fingerprint(parts.spec),
        list(_local_inputs(parts)),
        dict(parts.data.fingerprint()),
        [
            settings.seed,
            settings.limit,
            settings.retry,
            list(settings.slices),
            list(settings.metrics),
            settings.max_missing,
        ],
    ]
    cells = []
    for label, operator in parts.operators.items():
        told: list[Json] = [operator.identity(), operator.draws]
        if getattr(operator, "or_none", False):
            told.append(replace(parts.style, or_none=True).fingerprint(parts.spec))
        if settings.logprobs:
            told.append("logprobs")
        key = digest(shared, label, *told)
        names = (parts.spec.name, parts.data.name, parts.style.name, label)
        folder = settings.out / "cells" / ("--".join(slugify(name)[:40] for name in names) + f"-{key[:8]}")
        cells.append(Cell(label, key, folder))
    return cells


def told_apart_by(parts: Parts, label: str) -> dict[str, Json]:
    """The settings by which tables tell this cell from others of its model, data, prompt and operator."""
    config = parts.config
    shared = {
        key: config.get(key) for key in ("model", "prompt", "data", "protocol", "seed", "limit", "retry")
    }
    operator = (config.get("perturb") or {}).get(label)
    if config.get("images") is not None:
        shared["images"] = config["images"]
    if config.get("logprobs"):
        shared["logprobs"] = True
    tree = {**shared, "backend": parts.engine, "perturb": {label: operator}}
    return {key: value for key, value in flat(masked(tree)).items() if not key.endswith(("path", "url"))}


def _local_inputs(parts: Parts) -> Iterator[str | None]:
    """Digests of the files that answers come from, so that a changed one is not taken for finished."""
    from refadv_ablate.models.checkpoint import fingerprint

    yield fingerprint(parts.spec.checkpoint)
    engine: Any = parts.engine
    while isinstance(engine, Mapping):
        path = engine.get("path")
        if isinstance(path, str) and Path(path).is_file():
            with Path(path).open("rb") as file:
                yield hashlib.file_digest(file, "sha256").hexdigest()
        engine = engine.get("inner_config")
