"""The scalar settings of a run: seed, limit, where results go, how missing answers count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from refadv_ablate import assets
from refadv_ablate.errors import UserError
from refadv_ablate.parsing import scoring
from refadv_ablate.storage.answers import MemoryStore, Store, open_store
from refadv_ablate.storage.with_logprobs import WithLogprobs


@dataclass(frozen=True, slots=True)
class Settings:
    """The scalar keys of conf/config.yaml."""

    seed: int
    limit: int | None
    images: int | None
    out: Path
    store: str
    logprobs: bool
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
        if settings.images is not None and settings.images < 1:
            raise UserError(f"images={settings.images}: give at least 1, or leave it out for all images")
        if not 0 <= settings.max_missing <= 1:
            raise UserError(f"max_missing={settings.max_missing}: a share of the answers, from 0 to 1")
        if settings.gallery < 0:
            raise UserError(f"gallery={settings.gallery}: give a number of examples, 0 for no gallery")
        if settings.budget_usd is not None and settings.budget_usd < 0:
            raise UserError(f"budget_usd={settings.budget_usd}: give dollars, or leave it out for no limit")
        return replace(settings, out=settings.out.absolute())


def store_of(settings: Settings) -> Store | MemoryStore | WithLogprobs:
    """The prediction store, as a run with these settings sees it. Raises UserError."""
    store = open_store(settings.store)
    return WithLogprobs(store) if settings.logprobs else store
