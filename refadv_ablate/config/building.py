"""From a node of the config with `_target_` to the part that it describes, every value checked."""

from __future__ import annotations

import importlib
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError, nearest


def plain(config: Any) -> Any:
    """A config node as dicts, lists and scalars, all interpolations resolved."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not OmegaConf.is_config(config):
        return config
    try:
        return OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        key = getattr(error, "full_key", None) or "a key"
        text = str(error).splitlines()[0]
        if "Missing mandatory value" in text:
            raise UserError(f"{key} must be given: add {key}=… to the command") from error
        raise UserError(f"{key} can't be resolved: {text}") from error


def build(node: Any, where: str = "config", **extra: Any) -> Any:
    """Builds the part that a node with `_target_` describes, nested parts first.

    Keys are checked against the constructor and scalar values against its annotations, so that a
    misspelt key or a value of the wrong type is one UserError. A key that ends in `_config` is handed
    over as it is, for parts that build their inner part themselves.
    """
    node = plain(node)
    if isinstance(node, Mapping) and "_target_" in node:
        arguments = {key: value for key, value in node.items() if not key.startswith("_")}
        target = locate(str(node["_target_"]), where)
        return _construct(target, arguments, where, extra)
    if isinstance(node, Mapping):
        return {key: build(value, f"{where}.{key}") for key, value in node.items()}
    if isinstance(node, list):
        return [build(value, f"{where}[{index}]") for index, value in enumerate(node)]
    return node


MOVED = {
    "refadv_ablate.candidates": "refadv_ablate.prompting.candidates",
    "refadv_ablate.curate.checks": "refadv_ablate.curate.generation.checks",
    "refadv_ablate.curate.llm": "refadv_ablate.curate.generation.llm",
    "refadv_ablate.data.families": "refadv_ablate.data.forms.families",
    "refadv_ablate.frames": "refadv_ablate.parsing.frames",
    "refadv_ablate.models.listener": "refadv_ablate.models.listeners.listener",
    "refadv_ablate.parsing": "refadv_ablate.parsing.dialects",
    "refadv_ablate.prompts": "refadv_ablate.prompting.prompts",
    "refadv_ablate.protocol": "refadv_ablate.prompting.protocol",
    "refadv_ablate.som": "refadv_ablate.prompting.som",
    "refadv_ablate.tracking": "refadv_ablate.tracking.mlflow",
}
"""Modules that configs of version 0.1.0 name → where they are now, so that old result folders are read."""


def locate(dotted: str, where: str) -> Callable[..., Any]:
    """The class or function of this dotted name, or of the name that version 0.1.0 had for it."""
    module, _, name = dotted.rpartition(".")
    module = MOVED.get(module, module)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"{where}._target_={dotted} can't be imported: {error}") from error
    return typing.cast(Callable[..., Any], found)


def _construct(
    target: Callable[..., Any], arguments: dict[str, Any], where: str, extra: dict[str, Any]
) -> Any:
    parameters = inspect.signature(target).parameters
    hints = _hints(target)
    at = f"{where}." if where else ""
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for key in arguments:
        if key not in parameters and not open_ended:
            raise UserError(f"{where}: {_name(target)} has no option {key!r}; {nearest(key, parameters)}")
    built = {
        key: value if key.endswith("_config") else build(value, f"{at}{key}")
        for key, value in arguments.items()
    }
    checked = {key: _checked(value, hints.get(key, Any), f"{at}{key}") for key, value in built.items()}
    for name, parameter in parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        if needed and parameter.kind is not parameter.VAR_POSITIONAL and name not in checked | extra:
            raise UserError(f"{at}{name} must be given: add {at}{name}=… to the command")
    try:
        return target(**checked, **extra)
    except (ValueError, TypeError) as error:
        raise UserError(f"{where}: {error}") from error


def _name(target: Callable[..., Any]) -> str:
    return getattr(target, "__name__", str(target))


def _hints(target: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(target.__init__ if inspect.isclass(target) else target)
    except (NameError, AttributeError):
        return {}


def _leaves(hint: Any) -> Iterator[Any]:
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal or not arguments:
        yield hint
    for argument in arguments:
        if typing.get_origin(hint) is not typing.Literal:
            yield from _leaves(argument)


CHECKABLE = (int, float, str, bool, type(None), Path, types.NoneType, Ellipsis)


def _checked(value: Any, hint: Any, where: str) -> Any:
    """The value as its annotation wants it, where the annotation is made of plain types."""
    leaves = list(_leaves(hint))
    if any(leaf not in CHECKABLE and typing.get_origin(leaf) is not typing.Literal for leaf in leaves):
        return tuple(value) if isinstance(value, list) else value
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"].replace("a valid tuple", "a list, such as [a,b]")
        raise UserError(f"{where}={value!r}: {problem[0].lower()}{problem[1:]}") from error
