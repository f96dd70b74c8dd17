"""The model that this process holds, so that the cells of one model load it once."""

from __future__ import annotations

from refadv_ablate import assets
from refadv_ablate.masking import masked
from refadv_ablate.running.parts import Parts
from refadv_ablate.seeding import digest
from refadv_ablate.types import Model

_loaded: dict[str, Model] = {}
"""The one model that this process holds, so that the cells of one model load it once."""


def model_of(parts: Parts) -> Model:
    """The engine of these parts; another one that is loaded is freed first."""
    told = (masked(parts.config["model"]), masked(parts.engine), parts.config["protocol"])
    key = digest(*told, parts.spec.logprobs)
    if key not in _loaded:
        release()
        _loaded[key] = assets.build(parts.engine, "backend", spec=parts.spec)
    return _loaded[key]


def release() -> None:
    """Frees the model that this process holds."""
    while _loaded:
        _loaded.popitem()[1].close()
