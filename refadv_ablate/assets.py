"""Finds what ships beside the code, composes it with Hydra, and builds parts from it.

`conf/` and `experiments/` lie inside the package in a wheel and beside it in a checkout. Together with
cli.py this is the only importer of Hydra.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from refadv_ablate.config import hints
from refadv_ablate.config.building import build as build
from refadv_ablate.config.building import locate as locate
from refadv_ablate.config.building import plain as plain
from refadv_ablate.errors import UserError, nearest

PACKAGE = Path(__file__).resolve().parent
GROUPS = ("model", "backend", "perturb", "data", "prompt", "protocol", "rewriter", "tracking")
RECIPES = ("paper", "robustness")


@lru_cache
def asset_dir(name: str) -> Path:
    """The folder `name` (conf, experiments), inside the package or beside it."""
    for folder in (PACKAGE / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise UserError(f"the folder {name}/ is missing from this installation; install refadv-ablate again")


def package_path(relative: str) -> Path:
    """A file or folder shipped inside the package, such as `checkpoints/tiny_internvl3`."""
    return PACKAGE / relative


def group_dir(group: str) -> Path:
    """Where the options of a config group lie."""
    return asset_dir("experiments" if group in RECIPES else "conf") / group


def options(group: str) -> dict[str, str]:
    """Option → its one-line description (the first comment line of its YAML)."""
    folder = group_dir(group)
    return {
        path.relative_to(folder).with_suffix("").as_posix(): first_comment(path)
        for path in sorted(folder.rglob("*.yaml"))
    }


def first_comment(path: Path) -> str:
    """The first comment line of a YAML that is not a Hydra directive."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            text = line.strip()
            if text.startswith("#") and "@package" not in text:
                return text.lstrip("# ").rstrip()
    return ""


def register() -> None:
    """Makes the resolvers of conf/ known to OmegaConf."""
    from omegaconf import OmegaConf

    OmegaConf.register_new_resolver("asset_dir", lambda name: str(asset_dir(name)), replace=True)
    OmegaConf.register_new_resolver("package_path", lambda path: str(package_path(path)), replace=True)
    OmegaConf.register_new_resolver(
        "basename", lambda path: str(path).rstrip("/").split("/")[-1], replace=True
    )


def compose(overrides: Sequence[str], with_hydra: bool = False, folder: str = "conf") -> Any:
    """The composed config (a DictConfig); every mistake in the overrides is one UserError.

    folder: where config.yaml and its groups lie; commands with parts of their own have a folder in conf/.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    register()
    if GlobalHydra.instance().is_initialized():
        GlobalHydra.instance().clear()
    with initialize_config_dir(str(asset_dir(folder)), version_base="1.3", job_name="refadv_ablate"):
        try:
            return hydra_compose("config", overrides=list(overrides), return_hydra_config=with_hydra)
        except Exception as error:
            raise UserError(explain(error, overrides, folder)) from error


def parse(overrides: Sequence[str]) -> list[Any]:
    """Hydra's parsed overrides; a word that is not an override is one UserError."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    parsed = []
    for word in overrides:
        try:
            parsed.append(parser.parse_override(word))
        except HydraException as error:
            hint = " (write texts with commas, quotes or non-Latin letters into a YAML or a prompt file)"
            raise UserError(f"{word!r} is not a key=value that Hydra can read{hint}") from error
    return parsed


def check(
    overrides: Sequence[str], folder: str = "conf", groups: Sequence[str] = (*GROUPS, *RECIPES)
) -> None:
    """Raises UserError for an unknown group option or key, naming the nearest match."""
    parsed = parse(overrides)
    for override in parsed:
        if override.key_or_group in groups:
            _check_single(override)
            for value in values(override):
                _check_option(override.key_or_group, value, folder)
    _check_sizes(parsed)
    chosen = [o for o in parsed if not _is_plain_key(o, groups)]
    words = [o.input_line for o in chosen if not o.is_sweep_override()]
    swept = {o.key_or_group: _each(o) for o in chosen if o.is_sweep_override()}
    named = {o.key_or_group: o.input_line for o in chosen}
    composed: dict[tuple[str, ...], Any] = {}
    for override in parsed:
        if override.is_add() or not _is_plain_key(override, groups):
            continue
        group = override.key_or_group.split(".")[0]
        for value in swept.get(group, [""]):  # a key of a group must be there for each of its options
            job = {**{name: values[0] for name, values in swept.items()}, **({group: value} if value else {})}
            given = (*words, *(f"{name}={one}" for name, one in job.items()))
            if given not in composed:
                composed[given] = compose(given, folder=folder)
            option = f"{group}={value}" if value else group if group in MERGED else named.get(group, group)
            _check_key(composed[given], override.key_or_group, option)


MERGED = ("perturb",)
"""Groups of which one run takes several options."""


def _check_single(override: Any) -> None:
    """Raises UserError where a list is given for a group of which a run has one option."""
    group = override.key_or_group
    if group in MERGED or override.is_delete() or override.is_sweep_override():
        return
    value = override.value()
    if isinstance(value, list) and len(value) != 1:
        names = ",".join(map(str, value)) or "…"
        raise UserError(f"{group}= takes one option for a run; sweep over several with -m {group}={names}")


def representative(overrides: Sequence[str]) -> list[str]:
    """The overrides with each sweep replaced by its first value: one job that stands for all."""
    words = []
    for override in parse(overrides):
        if override.is_sweep_override():
            first = next(iter(override.sweep_iterator()))
            words.append(f"{override.get_key_element()}={first}")
        else:
            words.append(override.input_line)
    return words


DRAWN, PUBLIC = "shapes", "ref_adv_s"
"""Data of a run that names none: drawn scenes for what ships in the box, else the paper's public set."""


def with_data(overrides: Sequence[str]) -> list[str]:
    """The overrides with the default data of their models, where they name neither data nor a recipe.

    Raises UserError for a sweep over models of both kinds: their numbers would be over different data.
    """
    parsed = parse(overrides)
    if any(override.key_or_group in ("data", *RECIPES) for override in parsed):
        return list(overrides)
    named = [o for o in parsed if o.key_or_group == "model" and not o.is_delete()]
    kinds = {_ships(name) for override in named for name in values(override)}
    if len(kinds) > 1:
        raise UserError(
            f"some of these models ship in the box and are asked about drawn scenes, others about {PUBLIC}: "
            f"say data={DRAWN} or data={PUBLIC}"
        )
    return [*overrides, f"data={PUBLIC}"] if kinds == {False} else list(overrides)


def _ships(model: str) -> bool:
    """Whether a model needs nothing from outside: a control, a listener, a replay, a shipped checkpoint."""
    path = group_dir("model") / f"{model}.yaml"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return "\nengine:" in text or "${package_path:" in text


def sweep_params(overrides: Sequence[str]) -> list[str]:
    """The overrides with the sweep of a recipe (`hydra.sweeper.params`) before those of the command line.

    Keys of a group, such as data.path, are left aside while it is read: which options they belong to is
    what the recipe says.
    """
    from omegaconf import OmegaConf

    parsed = parse(overrides)
    plain_keys = [_in_group(override.key_or_group) for override in parsed]
    given = {override.key_or_group for override in parsed}
    config = compose(
        [word for word, plain in zip(representative(overrides), plain_keys, strict=True) if not plain],
        with_hydra=True,
    )
    params = OmegaConf.to_container(config.hydra.sweeper.get("params") or OmegaConf.create({}), resolve=True)
    assert isinstance(params, dict)
    return [f"{key!s}={value!s}" for key, value in params.items() if str(key) not in given] + list(overrides)


def forced(overrides: Sequence[str], params: Sequence[str]) -> list[str]:
    """The overrides with `++` before each key of a group whose option is swept over.

    Hydra composes once before it knows the options of the jobs, and the option that it composes with may
    lack the key; `check` has seen to it that those of the jobs have it.
    """
    swept = {override.key_or_group for override in parse(params) if override.is_sweep_override()}
    swept |= {override.key_or_group for override in parse(params)} - {
        override.key_or_group for override in parse(overrides)
    }

    def must(override: Any) -> bool:
        group = override.key_or_group.split(".")[0]
        plain_assignment = not (override.is_add() or override.is_delete())
        return _in_group(override.key_or_group) and group in swept and plain_assignment

    return [f"++{o.input_line}" if must(o) else o.input_line for o in parse(overrides)]


def _in_group(key: str) -> bool:
    return "." in key and "/" not in key and key.split(".")[0] in GROUPS


def _is_plain_key(override: Any, groups: Sequence[str]) -> bool:
    key = override.key_or_group
    return key not in groups and not key.startswith(("hydra", "command"))


def _each(override: Any) -> list[str]:
    """The values of a sweep, each as one job has it."""
    return [str(value) for value in override.sweep_string_iterator()] or ["null"]


def values(override: Any) -> list[str]:
    """Every option that an override of a group names: one, a list of several, or a sweep of either."""
    if override.is_delete():
        return []
    raw = list(override.sweep_iterator()) if override.is_sweep_override() else [override.value()]
    flat: list[str] = []
    for value in raw:
        if isinstance(value, str) and value.startswith("["):
            flat += [word.strip() for word in value.strip("[]").split(",")]
        elif isinstance(value, list):
            flat += [str(item) for item in value]
        elif value is not None:
            flat.append(str(value))
    return flat


def variants(group: str) -> dict[str, str]:
    """Further options of a group that the recipes bring: a family in one size, a set in one split."""
    folder = asset_dir("experiments") / group
    return {path.stem: first_comment(path) for path in sorted(folder.glob("*.yaml"))}


def _check_option(group: str, value: str, folder: str = "conf") -> None:
    known = options(_group_in(group, folder)) | (variants(group) if folder == "conf" else {})
    if value not in known and value != "null":
        places = (asset_dir(folder) / group, asset_dir("experiments") / group)
        texts = dict.fromkeys(known, "")
        for name, place in itertools.product(known, places):
            if (place / f"{name}.yaml").is_file():
                texts[name] = (place / f"{name}.yaml").read_text(encoding="utf-8")
        raise UserError(f"there is no {group}={value}; {hints.option(group, value, texts)}")


def _check_sizes(parsed: Sequence[Any]) -> None:
    """Raises UserError for a size that a model family has not, before anything is asked of a hub."""
    asked = [str(o.value()) for o in parsed if o.key_or_group == "model.size" and not o.is_sweep_override()]
    named = {name for o in parsed if o.key_or_group == "model" for name in values(o)}
    if len(asked) != 1 or any(o.key_or_group == "model.checkpoint" for o in parsed):
        return
    for name in named:
        path = group_dir("model") / f"{name}.yaml"
        known = hints.sizes(path.read_text(encoding="utf-8")) if path.is_file() else []
        if known and asked[0] not in known:
            raise UserError(
                f"model={name} has no size {asked[0]}; sizes: {', '.join(known)}; "
                "for another checkpoint give model.checkpoint=…"
            )


def _check_key(config: Any, dotted: str, option: str) -> None:
    """Raises UserError where the config has no such key; `option` is the group's, as in data=shapes."""
    from omegaconf import DictConfig

    node, walked = config, ""
    for part in dotted.split("."):
        if isinstance(node, DictConfig):
            names = {str(key) for key in node}
            if part not in names:
                where = option if walked and walked == option.split("=")[0] else walked
                if not where and (recipes := hints.recipes_with(part, _recipes())):
                    raise UserError(f"{dotted}= is a key of some recipes alone: {', '.join(recipes)}")
                where = where or "the configuration"
                raise UserError(f"{dotted}: {where} has no key {part!r}; {nearest(part, names)}")
            node = node._get_node(part)
            walked = f"{walked}.{part}".strip(".")


def _recipes() -> dict[str, str]:
    """The YAML of each recipe, by the word that chooses it."""
    return {
        f"{group}={name}": (group_dir(group) / f"{name}.yaml").read_text(encoding="utf-8")
        for group in RECIPES
        for name in options(group)
    }


def _group_in(group: str, folder: str) -> str:
    """The group as `options` knows it: below conf/."""
    return f"{folder.removeprefix('conf/')}/{group}" if folder != "conf" else group


def explain(error: Exception, overrides: Sequence[str], folder: str = "conf") -> str:
    """One sentence for an exception of Hydra or OmegaConf."""
    text = re.sub(r"\s+", " ", str(error)).strip()
    missing = re.search(r"Could not find '([^']+)/([^'/]+)'", text)
    if missing and missing[1].startswith("hydra/"):
        extra = "ray" if missing[2] == "ray" else "cluster"
        return (
            f"there is no {missing[1]}={missing[2]} installed; "
            f"launchers for joblib, submitit and Ray come with pip install 'refadv-ablate[{extra}]'"
        )
    if missing:
        group = missing[1].split("/")[0]
        with suppress(UserError):
            known = options(_group_in(group, folder)) | (variants(group) if folder == "conf" else {})
            return f"there is no {group}={missing[2]}; {nearest(missing[2], known)}"
    return f"the configuration can't be composed from {' '.join(overrides) or 'no overrides'}: {text}"
