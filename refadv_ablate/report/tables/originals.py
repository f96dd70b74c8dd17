"""Original accuracies against each other as tables: CoT and direct, thinking and instruct, model sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refadv_ablate.report.loading import originals
from refadv_ablate.report.loading.originals import SizeTrend
from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.tables.table import Column, Fact, Line, Number, Table
from refadv_ablate.statistics.contrasts import Contrast, engines_apart
from refadv_ablate.statistics.formatting import p_value

PAIRED = (
    "Acc@0.5 of the original expressions. Difference = second − first in points, paired example by example "
    "on those that both answered; 95% interval from leaving each image out in turn; p of the same t, {holm}."
)
THINKS = (
    "A thinking model reasons before it answers whatever the prompt says; it stands against the instruct "
    "model of its size with each prompt that this one was asked with."
)
SIZES = (
    "Points of Acc@0.5 for each doubling of the parameters: least squares over the base-2 logarithm of the "
    "sizes, on examples that all sizes answered; 95% interval from leaving each image out in turn; {holm}. "
    "Mixtures of experts go by their total and stand apart from dense models. The interval is for these "
    "checkpoints on more images; it says nothing of sizes that weren't asked."
)


def tables_of(study: Study) -> Iterator[Table]:
    """Those that have a line."""
    cot = originals.cot_against_direct(study)
    if cot:
        yield _table("cot_against_direct", "Chain of thought against direct answers", cot, ())
    thinking = originals.thinking_against_instruct(study)
    if thinking:
        yield _table("thinking_against_instruct", "Thinking against instruct models", thinking, (THINKS,))
    trends = originals.size_trends(study)
    if trends:
        yield _sizes(trends)


def _holm(n: int, what: str) -> str:
    return f"Holm-adjusted over these {n} {what}" if n > 1 else "not adjusted: there is one"


def _table(name: str, title: str, found: Sequence[Contrast], more: tuple[str, ...]) -> Table:
    columns = (
        Column("first", "first"),
        Column("second", "second"),
        Column("difference", "difference"),
        Column("p", "p (Holm)"),
        Column("n", "examples"),
        Column("images", "images"),
    )
    lines = tuple(
        Line(
            (each.where, each.a, each.b),
            {
                "first": Number(each.first),
                "second": Number(each.second),
                "difference": Number(each.difference, signed=True),
                "p": Fact(p_value(each.p_holm)),
                "n": Fact(f"{each.first.n:,}"),
                "images": Fact(f"{each.first.images:,}"),
            },
            ranked=False,
        )
        for each in found
    )
    notes = (PAIRED.format(holm=_holm(len(found), "contrasts")), *more, *filter(None, [engines_apart(found)]))
    return Table(name, title, ("Within", "First", "Second"), columns, lines, notes=notes)


def _sizes(found: Sequence[SizeTrend]) -> Table:
    columns = (
        Column("slope", "a doubling"),
        Column("p", "p (Holm)"),
        Column("n", "examples"),
        Column("images", "images"),
    )
    lines = tuple(
        Line(
            (each.where, "experts" if each.sparse else "dense", ", ".join(f"{s:g}B" for s in each.sizes)),
            {
                "slope": Number(each.slope, signed=True),
                "p": Fact(p_value(each.p_holm)),
                "n": Fact(f"{each.slope.n:,}"),
                "images": Fact(f"{each.slope.images:,}"),
            },
            ranked=False,
        )
        for each in found
    )
    notes = (SIZES.format(holm=_holm(len(found), "trends")),)
    return Table(
        "size_trends", "Accuracy by model size", ("Family", "Kind", "Sizes"), columns, lines, notes=notes
    )
