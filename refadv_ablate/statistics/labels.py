"""What tells results of one name apart: the settings in which they differ, found once, used everywhere."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from refadv_ablate.statistics.comparison import holm
from refadv_ablate.types import Comparison, Json

MOST = 3
"""Settings named in a label; more are counted."""
IMPLIED: Mapping[str, str] = {"model.checkpoint": "model.size"}
"""A setting that need not be named where the other one differs too."""
LONGEST = 200
"""Characters of a setting: a longer one, such as a prompt's text, tells nobody anything in a label."""


def flat(tree: Any, prefix: str = "") -> dict[str, Json]:
    """A config's scalars by dotted key: {"data": {"n": 8}} → {"data.n": 8}; `_target_` is left out."""
    if isinstance(tree, Mapping):
        found: dict[str, Json] = {}
        for key, value in tree.items():
            if key != "_target_":
                found |= flat(value, f"{prefix}.{key}" if prefix else str(key))
        return found
    if isinstance(tree, list | tuple):
        tree = ",".join(map(str, tree))
    return {prefix: tree} if len(str(tree)) <= LONGEST else {}


def variants(names: Sequence[Hashable], settings: Sequence[Mapping[str, Json]]) -> list[str]:
    """For each result the settings that others of its name have otherwise, such as `seed 1`; else empty.

    Results that no setting tells apart are numbered.
    """
    groups: dict[Hashable, list[int]] = {}
    for index, name in enumerate(names):
        groups.setdefault(name, []).append(index)
    found = [""] * len(names)
    for members in groups.values():
        if len(members) > 1:
            for index, label in zip(members, _apart([settings[i] for i in members]), strict=True):
                found[index] = label
    return found


def _apart(settings: Sequence[Mapping[str, Json]]) -> list[str]:
    keys = [
        key
        for key in dict.fromkeys(key for each in settings for key in each)
        if len({repr(each.get(key)) for each in settings}) > 1
    ]
    keys = [key for key in keys if IMPLIED.get(key) not in keys]
    labels = [_label(keys, each) for each in settings]
    return [
        f"{label} no. {1 + labels[:index].count(label)}".strip() if labels.count(label) > 1 else label
        for index, label in enumerate(labels)
    ]


def _label(keys: Sequence[str], settings: Mapping[str, Json]) -> str:
    tails = [key.rsplit(".", 1)[-1] for key in keys]
    words = [
        f"{tail if tails.count(tail) == 1 else key} {_shown(settings.get(key))}"
        for key, tail in zip(keys, tails, strict=True)
    ]
    more = [f"{len(words) - MOST} more"] if len(words) > MOST else []
    return ", ".join([*words[:MOST], *more])


def _shown(value: Json) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"…{text[-39:]}"


def labelled(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same, each with `variant`: what tells it from others of its model, data, prompt and operator."""
    names = [(c.model, c.data, c.prompt, c.operator) for c in comparisons]
    found = variants(names, [c.details.get("settings") or {} for c in comparisons])
    return [replace(c, variant=label) for c, label in zip(comparisons, found, strict=True)]


def declared(comparisons: Sequence[Comparison], metric: str = "acc50") -> list[Comparison]:
    """Labelled and Holm-adjusted over the family that was declared.

    A result over fewer of the same examples (another `limit` or `images` and nothing else) repeats the
    fuller one: it is told apart, and counted in no family. Results without a p, such as those of arms that
    change nothing, are in none either.
    """
    marked = labelled(comparisons)
    repeated = _repeated(marked)
    members = iter(holm([c for i, c in enumerate(marked) if i not in repeated], metric))
    return [_aside(c) if i in repeated else next(members) for i, c in enumerate(marked)]


def _repeated(comparisons: Sequence[Comparison]) -> set[int]:
    groups: dict[Hashable, list[int]] = {}
    for index, c in enumerate(comparisons):
        settings = c.details.get("settings")
        if settings and "limit" in settings:
            rest = tuple(
                sorted((key, repr(v)) for key, v in settings.items() if key not in ("limit", "images"))
            )
            groups.setdefault((c.model, c.data, c.prompt, c.operator, rest), []).append(index)
    found = set()
    for members in groups.values():
        fullest = max(members, key=lambda i: comparisons[i].planned)
        found |= {i for i in members if i != fullest}
    return found


def _aside(c: Comparison) -> Comparison:
    said = (
        f"{c.planned:,} of the examples of a fuller result of the same name: not counted among the tests "
        "that Holm corrects for."
    )
    return replace(c, warnings=(*c.warnings, said))
