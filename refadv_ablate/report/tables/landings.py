"""Where answers landed, original against perturbed, as shares of the examples and of the misses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.tables.table import Column, Fact, Line, Number, Table, Value
from refadv_ablate.statistics.formatting import operator_name, points
from refadv_ablate.statistics.landings import Flow, flow
from refadv_ablate.statistics.profile import on_old_place
from refadv_ablate.types import ORIGINAL, Comparison

NOTE = (
    "Shares of the paired examples, [low, high]: 95% interval clustered by image. loosely: IoU 0.1–0.5 with "
    "the referent; same category, another object: IoU ≥ 0.5 with another annotated object; whole image: 95% "
    "of it; elsewhere: none of these (background, or an object that isn't annotated)."
)
CHANCE = (
    "By chance: the part of the misses that pointing at any annotated object would put on one of the "
    "referent's category."
)


def flows(study: Study) -> Iterator[tuple[Comparison, Flow]]:
    """Of each cell whose records say where answers landed, with its referent in the picture."""
    for cell, comparison in study.pairs:
        told = comparison.details.get("keeps_text") or on_old_place(comparison)
        if {ORIGINAL, comparison.operator} <= set(cell.arms) and not told:
            found = flow(cell.arms[ORIGINAL], cell.arms[comparison.operator])
            if found is not None:
                yield comparison, found


def landing_table(found: Sequence[tuple[Comparison, Flow]]) -> Table:
    """A line for each kind of answer in each cell."""
    columns = (
        Column("original", "Original"),
        Column("perturbed", "Perturbed"),
        Column("change", "Δ"),
        Column("of_misses", "of misses", "original / perturbed"),
        Column("chance", "by chance"),
    )
    lines = []
    for comparison, each in found:
        section = f"{comparison.model} · {comparison.data} · {operator_name(comparison)}"
        for share in each.shares:
            values: dict[str, Value] = {
                "original": Number(share.original),
                "perturbed": Number(share.perturbed),
                "change": Number(share.change, signed=True),
            }
            if share.kind != "referent":
                parts = ("n/a" if part is None else points(part) for part in each.of_misses(share.kind))
                values["of_misses"] = Fact(" / ".join(parts))
            chance = comparison.details.get("chance_same_category")
            if share.kind == "same category" and isinstance(chance, int | float):
                values["chance"] = Fact(points(chance))
            lines.append(Line((section, share.kind), values, section, ranked=False))
    return Table(
        "landings", "Where answers land", ("Result", "On"), columns, tuple(lines), notes=(NOTE, CHANCE)
    )
