"""Differences between results as tables: each with its interval, test, and what both sides rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refadv_ablate.report.loading.contrasting import Family, names_of
from refadv_ablate.report.tables.table import Column, Fact, Line, Number, Table, Value
from refadv_ablate.statistics.contrasts import QUANTITIES, Contrast, engines_apart
from refadv_ablate.statistics.formatting import p_value
from refadv_ablate.types import Json

PAIRED = "paired example by example on their common examples"
APART = "not paired: other examples; an image that both hold counts once"
NOTE = (
    "Difference = second − first in points, 95% interval from leaving each image out in turn; p of the same "
    "t, {holm}; the two sides are {how}."
)


def contrast_table(family: Family) -> Table:
    """One line a contrast: both sides, their difference, p, examples and images of each side."""
    columns = (
        Column("first", "first"),
        Column("second", "second"),
        Column("difference", "difference"),
        Column("p_holm", "p (Holm)"),
        Column("n", "examples", "first / second"),
        Column("images", "images", "first / second"),
    )
    lines = [
        Line((each.a, each.b, each.where, QUANTITIES[each.quantity]), dict(_values(each)), ranked=False)
        for each in family.contrasts
    ]
    quantities = {each.quantity for each in family.contrasts}
    paired = family.contrasts[0].paired if family.contrasts else True
    heads: tuple[str, ...] = ("First", "Second", "Within", "Of")
    note = NOTE.format(holm=holm_of(family), how=PAIRED if paired else APART)
    ratios = quantities & {"relative", "above_chance"}
    more = ("Ratios of one side: Fieller's interval.",) if ratios else ()
    if quantities == {"delta"}:
        lines = [Line(line.labels[:3], line.values, line.section, line.ranked) for line in lines]
        heads, more = heads[:3], (*more, "Both sides and the difference are Δ of Acc@0.5.")
    return Table(
        f"contrasts_{family.kind}",
        f"Differences between {PLURAL[family.kind]}",
        heads,
        columns,
        tuple(lines),
        notes=(note, *more, *filter(None, [engines_apart(family.contrasts)])),
    )


def holm_of(family: Family) -> str:
    """A clause on what the p are adjusted over."""
    quantities = max(1, len({each.quantity for each in family.contrasts}))
    own = set(family.declared)
    size = sum(not own or not own.isdisjoint(names_of(each)) for each in family.contrasts) // quantities
    each = " of each quantity" if quantities > 1 else ""
    if not own:
        return f"Holm-adjusted over these {size} contrasts{each}" if size > 1 else "one contrast"
    named = ", ".join(family.declared)
    return f"Holm-adjusted over the {size} contrasts{each} that were declared ({named}), the others raw"


def p_of(contrast: Contrast) -> str:
    """The adjusted p; the raw one, marked, of a contrast that no family counts."""
    if contrast.p_holm is None and contrast.p is not None:
        return f"{p_value(contrast.p)} raw"
    return p_value(contrast.p_holm)


PLURAL = {
    "model": "models",
    "data": "data sets",
    "prompt": "prompts",
    "operator": "perturbations",
    "variant": "settings",
    "slice": "kinds of example",
}


def warnings_between(families: Sequence[Family]) -> list[tuple[str, str]]:
    """(which differences, what to mind of them): two sides that different engines answered."""
    told = ((f"differences between {PLURAL[f.kind]}", engines_apart(f.contrasts)) for f in families)
    return [(what, warning) for what, warning in told if warning]


def _values(each: Contrast) -> Iterator[tuple[str, Value]]:
    yield "first", Number(each.first, signed=True)
    yield "second", Number(each.second, signed=True)
    yield "difference", Number(each.difference, signed=True)
    yield "p_holm", Fact(p_of(each))
    yield "n", Fact(f"{each.first.n:,} / {each.second.n:,}")
    yield "images", Fact(f"{each.first.images:,} / {each.second.images:,}")


def rank_table(family: Family) -> Table:
    """Models by Δ, the most robust first, with the places that can't be ruled out."""
    columns = (
        Column("delta", "Δ Acc@0.5"),
        Column("place", "place"),
        Column("places", "95% places"),
    )
    lines = [
        Line(
            (where, rank.name),
            {
                "delta": Number(rank.estimate, signed=True),
                "place": Fact(str(rank.place)),
                "places": Fact(f"{rank.low}–{rank.high}" if rank.low != rank.high else str(rank.low)),
            },
            where,
            ranked=False,
        )
        for where, ranks in family.ranks.items()
        for rank in ranks
    ]
    note = (
        "Place 1 has the highest Δ: it loses least. 95% places: at best behind all models that are surely "
        "higher, at worst before all surely lower, by the contrasts of all pairs, Holm-adjusted."
    )
    return Table("ranks", "Ranks of models", ("Within", "Model"), columns, tuple(lines), notes=(note,))


def rows_of(families: Sequence[Family]) -> Iterator[dict[str, Json]]:
    """The same as JSON, for logs and scripts: fractions, not points."""
    for family in families:
        for each in family.contrasts:
            change = each.difference
            yield {
                "kind": family.kind,
                "first": each.a,
                "second": each.b,
                "where": each.where,
                "quantity": each.quantity,
                "paired": each.paired,
                "difference": change.value,
                "low": change.low,
                "high": change.high,
                "p": each.p,
                "p_holm": each.p_holm,
                "n": [each.first.n, each.second.n],
                "images": [each.first.images, each.second.images],
            }


def tables_of(families: Sequence[Family]) -> Iterator[Table]:
    """The contrasts of each family, and ranks where three models or more are there."""
    for family in families:
        yield contrast_table(family)
        if any(len(ranks) > 2 for ranks in family.ranks.values()):
            yield rank_table(family)
