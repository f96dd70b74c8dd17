"""Which cells of a study are set against each other: between models, data sets, prompts, operators, parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from refadv_ablate.errors import UserError, nearest
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.loading.study import Study
from refadv_ablate.statistics import contrasts, slices
from refadv_ablate.statistics.contrasts import QUANTITIES, Contrast, Quantity, Rank, Side
from refadv_ablate.statistics.profile import on_old_place
from refadv_ablate.types import ORIGINAL, Comparison

KINDS = ("model", "data", "prompt", "operator", "variant", "slice")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Contrasts of one kind: they were declared together, so Holm counts them together."""

    kind: str
    contrasts: Sequence[Contrast]
    ranks: Mapping[str, Sequence[Rank]]
    """Of models: by what they share, such as `shapes · direct · bow`."""
    declared: Sequence[str] = ()
    """Names that narrow what Holm counts: contrasts without any of them stand beside it. None: all count."""


def between(
    study: Study,
    kind: str,
    *,
    quantities: Sequence[Quantity] = ("delta",),
    by: str = "distractors",
    metric: str = "acc50",
    declared: Sequence[str] = (),
) -> Family:
    """All pairs of the study that differ in `kind` alone; Holm over those of each quantity.

    `by` names the attribute of kind slice. `declared` narrows what Holm counts to the contrasts that have
    one of these names on a side or in what both share. Raises UserError where the study has no two to set
    against each other, for an unknown kind or a name that no contrast has.
    """
    if kind not in KINDS:
        raise UserError(f"between={kind}: {nearest(kind, KINDS)}")
    sides = _Sides(metric)
    groups = dict(_groups(study, kind, by, sides))
    found: list[Contrast] = []
    ranked: dict[str, Sequence[Rank]] = {}
    for quantity in quantities:
        made: list[Contrast] = []
        for where, members in groups.items():
            pairs = combinations(members, 2)
            paired = kind not in ("data", "slice")
            within = [contrasts.contrast(a, b, quantity, paired=paired, where=where) for a, b in pairs]
            if kind == "model" and quantity == "delta":
                ranked[where] = contrasts.ranks(members, within)
            made += within
        found += _adjusted(made, declared)
    if not found:
        raise UserError(_nothing(study, kind))
    _check_names(found, declared)
    return Family(kind, found, ranked, tuple(declared))


def _adjusted(made: Sequence[Contrast], declared: Sequence[str]) -> Iterator[Contrast]:
    """Holm over those that were declared; the others as they were."""
    counted = [not declared or not names_of(each).isdisjoint(declared) for each in made]
    adjusted = iter(contrasts.holm([each for each, own in zip(made, counted, strict=True) if own]))
    return (next(adjusted) if own else each for each, own in zip(made, counted, strict=True))


def names_of(contrast: Contrast) -> frozenset[str]:
    """Both sides, and each part of what they share: {listener, listener-deaf, shapes, direct, bow}."""
    return frozenset({contrast.a, contrast.b, *contrast.where.split(" · ")})


def _check_names(found: Sequence[Contrast], declared: Sequence[str]) -> None:
    known = frozenset[str]().union(*map(names_of, found))
    for name in declared:
        if name not in known:
            raise UserError(f"family={name}: no contrast has this name; {nearest(name, known)}")


def every(study: Study) -> Iterator[Family]:
    """Δ of each kind that the study has two of, slices apart: those are explored, not declared."""
    for kind in KINDS[:-1]:
        try:
            yield between(study, kind)
        except UserError:
            continue


class _Sides:
    """Each cell's paired values, made once: many contrasts share a side."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self._made: dict[tuple[int, str], Side] = {}

    def of(self, cell: Cell, comparison: Comparison, name: str) -> Side:
        key = (id(cell), comparison.operator)
        if key not in self._made:
            chance = cell.details.get("chance_acc50", comparison.details.get("chance_acc50", 0.0))
            arms = cell.arms[ORIGINAL], cell.arms[comparison.operator]
            self._made[key] = Side.of(name, *arms, self.metric, float(chance or 0.0))
        return replace(self._made[key], name=name)


def _groups(study: Study, kind: str, by: str, sides: _Sides) -> Iterator[tuple[str, list[Side]]]:
    known = [
        (cell, comparison)
        for cell, comparison in study.pairs
        if {ORIGINAL, comparison.operator} <= set(cell.arms)
        and not (comparison.details.get("keeps_text") or on_old_place(comparison))
    ]
    if kind == "slice":
        for cell, comparison in known:
            yield _names(comparison, ""), _parts(cell, comparison, by, sides)
        return
    name: Callable[[Comparison], str] = lambda c: str(getattr(c, kind))  # noqa: E731  # a key function
    groups: dict[str, dict[str, tuple[Cell, Comparison]]] = {}
    for cell, comparison in known:
        members = groups.setdefault(_names(comparison, kind), {})
        members.setdefault(name(comparison), (cell, comparison))
    for where, members in groups.items():
        if len(members) > 1:
            yield where, [sides.of(*member, label) for label, member in members.items()]


def _names(comparison: Comparison, without: str) -> str:
    kinds = [kind for kind in KINDS[:-1] if kind != without]
    return " · ".join(filter(None, (str(getattr(comparison, kind)) for kind in kinds)))


def _parts(cell: Cell, comparison: Comparison, by: str, sides: _Sides) -> list[Side]:
    whole, original = sides.of(cell, comparison, by), cell.arms[ORIGINAL]
    examples = original.columns().example
    return [
        replace(whole.where(np.isin(whole.example, examples[rows])), name=f"{by} {label}")
        for label, rows in slices.parts(original, by)
    ]


def _nothing(study: Study, kind: str) -> str:
    if kind == "slice":
        return "between=slice needs a perturbed condition, and by=… an attribute with two parts"
    names = sorted({str(getattr(comparison, kind)) for comparison in study.comparisons})
    shown = ", ".join(names) or "none"
    return (
        f"between={kind} needs two results that differ in {kind} alone; there are {shown}. Known quantities: "
        f"{', '.join(QUANTITIES)}."
    )
