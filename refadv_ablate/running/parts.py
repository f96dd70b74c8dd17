"""From a composed config to the parts that it names: data, operators, model, prompt.

Everything is built and checked here before anything is asked; a mistake is a UserError.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from refadv_ablate import assets
from refadv_ablate.data.sample import sampled
from refadv_ablate.errors import UserError
from refadv_ablate.masking import learn
from refadv_ablate.prompting import prompts, protocol
from refadv_ablate.running.perturbed_texts import with_data
from refadv_ablate.running.settings import Settings
from refadv_ablate.types import Data, ModelSpec, Operator

assets.register()


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


def parts_of(config: Any) -> Parts:
    """Builds everything but the model itself; every mistake is a UserError."""
    whole = assets.plain(config)
    refuse_secrets(whole)
    learn(whole)
    settings = Settings.of(whole)
    model = dict(whole["model"])
    engine = model.pop("engine", None) or whole["backend"]
    model.pop("size", None)
    spec = assets.build(model, "model")
    style = assets.build(whole["prompt"], "prompt")
    spec, style, notes = protocol.parts(whole["protocol"], spec, style)
    spec = replace(spec, logprobs=settings.logprobs)
    operators = assets.build(whole.get("perturb") or {}, "perturb")
    if not operators:
        raise UserError("no perturbation is chosen: add perturb=bow, or several as 'perturb=[bow,fixed]'")
    data = assets.build(whole["data"], "data")
    operators = with_data(operators, data)  # of the whole: a sample's questions are those of all examples
    data = sampled(data, settings.images, settings.seed)
    return Parts(whole, settings, data, operators, spec, style, engine, notes)


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
