"""Δ by the kind of descriptor that was taken away, or of word that was displaced, as a table."""

from __future__ import annotations

from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.tables.table import Column, Fact, Line, Number, Table, Value
from refadv_ablate.statistics.formatting import operator_name, p_value
from refadv_ablate.statistics.word_kinds import by_kind
from refadv_ablate.types import ORIGINAL

NOTE = (
    "Δ of Acc@0.5 on the examples that lost a descriptor of this kind, or a word of which stands next to "
    "none of its former neighbours (displaced); 95% interval clustered by image. p: sign flips of whole "
    "images, Holm-adjusted over the kinds of one result. Other examples lost other kinds: a difference "
    "between kinds is also one between examples."
)


def word_kinds(study: Study) -> Table:
    """A line for each kind of each result; no lines where no operator names what it removed or displaced."""
    columns = (
        Column("delta", "Δ"),
        Column("p_holm", "p (Holm)"),
        Column("pairs", "examples"),
        Column("images", "images"),
    )
    lines = []
    for cell, comparison in study.pairs:
        if not {ORIGINAL, comparison.operator} <= set(cell.arms):
            continue
        section = f"{comparison.model} · {comparison.data} · {operator_name(comparison)}"
        for kind in by_kind(cell.arms[ORIGINAL], cell.arms[comparison.operator]):
            values: dict[str, Value] = {
                "delta": Number(kind.delta, signed=True),
                "p_holm": Fact(p_value(kind.p_holm)),
                "pairs": Fact(f"{kind.delta.n:,}"),
                "images": Fact(f"{kind.delta.images:,}"),
            }
            lines.append(Line((section, kind.name), values, section, ranked=False))
    title = "Which words matter: by the kind of descriptor taken away or of word displaced"
    return Table("word_kinds", title, ("Result", "Kind"), columns, tuple(lines), notes=(NOTE,))
