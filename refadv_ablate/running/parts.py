"""What a composed config stands for: parts, the cells that they make, and the model that answers.

Everything is built and checked here before anything is asked; a mistake is a UserError.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from refadv_ablate import __version__, assets
from refadv_ablate.errors import UserError
from refadv_ablate.parsing import scoring
from refadv_ablate.prompting import prompts, protocol
from refadv_ablate.running.sweep import State, slugify
from refadv_ablate.seeding import digest
from refadv_ablate.storage.jsonl import read_json
from refadv_ablate.types import Data, Json, Model, ModelSpec, Operator

assets.register()


@dataclass(frozen=True, slots=True)
class Settings:
    """The scalar keys of conf/config.yaml."""

    seed: int
    limit: int | None
    out: Path
    store: str
    retry: str
    max_missing: float
    metrics: tuple[str, ...]
    slices: tuple[str, ...]
    pages: bool
    gallery: int
    progress: str
    budget_usd: float | None
    fail_fast: bool
    gpus: tuple[int | str, ...] | None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """Raises UserError for a value of the wrong type or out of range."""
        own = {name: config[name] for name in cls.__slots__}
        settings: Settings = assets.build({"_target_": f"{__name__}.Settings", **own}, "")
        for key, value, choices in (
            ("retry", settings.retry, ("none", "format")),
            ("progress", settings.progress, ("auto", "on", "off")),
        ):
            if value not in choices:
                raise UserError(f"{key}={value!r}: choose from {', '.join(choices)}")
        if "acc50" not in settings.metrics:
            raise UserError(f"metrics={list(settings.metrics)} lacks acc50, which tables and tests are about")
        for name in settings.metrics:
            scoring.metric(name)
        if settings.limit is not None and settings.limit < 1:
            raise UserError(f"limit={settings.limit}: give at least 1, or leave it out for all examples")
        if not 0 <= settings.max_missing <= 1:
            raise UserError(f"max_missing={settings.max_missing}: a share of the answers, from 0 to 1")
        if settings.gallery < 0:
            raise UserError(f"gallery={settings.gallery}: give a number of examples, 0 for no gallery")
        if settings.budget_usd is not None and settings.budget_usd < 0:
            raise UserError(f"budget_usd={settings.budget_usd}: give dollars, or leave it out for no limit")
        return replace(settings, out=settings.out.absolute())


@dataclass(frozen=True)
class Parts:
    """What a composed config stands for, before any weights are loaded."""

    config: Mapping[str, Any]
    settings: Settings
    data: Data
    operators: Mapping[str, Operator]
    spec: ModelSpec
    style: prompts.Style
    engine: Mapping[str, Any]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One cell of this job."""

    label: str
    hash: str
    folder: Path

    def state(self) -> State | None:
        """How it stands, if it was ever begun."""
        path = self.folder / "status.json"
        return read_json(path)["state"] if path.exists() else None


def parts_of(config: Any) -> Parts:
    """Builds everything but the model itself; every mistake is a UserError."""
    whole = assets.plain(config)
    refuse_secrets(whole)
    settings = Settings.of(whole)
    model = dict(whole["model"])
    engine = model.pop("engine", None) or whole["backend"]
    model.pop("size", None)
    spec = assets.build(model, "model")
    style = assets.build(whole["prompt"], "prompt")
    spec, style, notes = protocol.parts(whole["protocol"], spec, style)
    operators = assets.build(whole.get("perturb") or {}, "perturb")
    if not operators:
        raise UserError("no perturbation is chosen: add perturb=bow, or several as 'perturb=[bow,fixed]'")
    return Parts(whole, settings, assets.build(whole["data"], "data"), operators, spec, style, engine, notes)


def refuse_secrets(config: Any, where: str = "") -> None:
    """Raises UserError where a value equals a secret of the environment: keys never enter a config."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            refuse_secrets(value, f"{where}.{key}".strip("."))
    elif isinstance(config, list):
        for value in config:
            refuse_secrets(value, where)
    elif isinstance(config, str) and len(config) >= 8:
        for name, secret in os.environ.items():
            if config == secret and re.search(r"KEY|TOKEN|SECRET|PASSWORD", name):
                raise UserError(
                    f"{where} holds the value of ${name}; leave it out, it is read from the environment"
                )


def masked(config: Any) -> Any:
    """The config with passwords inside URLs replaced by ***."""
    if isinstance(config, Mapping):
        return {key: masked(value) for key, value in config.items()}
    if isinstance(config, list):
        return [masked(value) for value in config]
    return re.sub(r"(://[^:/@\s]+):[^@/\s]+@", r"\1:***@", config) if isinstance(config, str) else config


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
        key = digest(shared, label, operator.identity(), operator.draws)
        names = (parts.spec.name, parts.data.name, parts.style.name, label)
        folder = settings.out / "cells" / ("--".join(slugify(name)[:40] for name in names) + f"-{key[:8]}")
        cells.append(Cell(label, key, folder))
    return cells


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


_loaded: dict[str, Model] = {}
"""The one model that this process holds, so that the cells of one model load it once."""


def model_of(parts: Parts) -> Model:
    """The engine of these parts; another one that is loaded is freed first."""
    key = digest(masked(parts.config["model"]), masked(parts.engine), parts.config["protocol"])
    if key not in _loaded:
        release()
        _loaded[key] = assets.build(parts.engine, "backend", spec=parts.spec)
    return _loaded[key]


def release() -> None:
    """Frees the model that this process holds."""
    while _loaded:
        _loaded.popitem()[1].close()
