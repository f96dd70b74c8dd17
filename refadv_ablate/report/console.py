"""What a run or a sweep prints when it ends: one table, its warnings, what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from refadv_ablate.errors import printable
from refadv_ablate.report.tables.contrasts import holm_of, p_of
from refadv_ablate.statistics.contrasts import QUANTITIES, engines_apart
from refadv_ablate.statistics.formatting import (
    UNREAD,
    because,
    interval,
    missing,
    operator_name,
    p_holm,
    points,
    share,
    unchanged,
    unread,
    warnings_of,
    with_interval,
)
from refadv_ablate.statistics.profile import OLD_PLACE, on_old_place
from refadv_ablate.types import Comparison, Delta, Estimate

if TYPE_CHECKING:
    from refadv_ablate.report.loading.contrasting import Family
    from refadv_ablate.report.tables.table import Table as Wide
    from refadv_ablate.report.tables.table import Value

Failure = tuple[str, str]
"""A cell's name and why it failed."""

ASIDES = {
    "truncated": "cut off by the token limit",
    "retried": "asked once more for the box",
    "clipped": "boxes clipped to the image",
    "swapped": "corners put in order",
}
"""Counts that are told where they aren't 0."""

UNNAMED = (
    "no published values of this model, data and prompt; for files that don't name them: "
    "names.model=… names.data=… names.prompt=…"
)

READING = (
    "Δ = {change} in percentage points, on the same examples, answers without a box as misses; "
    "95% interval clustered by image; mid-p from sign flips of whole images{holm}. "
    "Counts x / y: one condition / the other."
)


def console(
    comparisons: Sequence[Comparison],
    failures: Sequence[Failure] = (),
    *,
    change: str = "perturbed − original",
) -> RenderableType:
    """The end of a run: Acc@0.5 of both arms and Δ per cell, counts, warnings and failed cells below."""
    comparisons = [_spelled(c) for c in comparisons]
    parts: list[RenderableType] = []
    for (model, data, prompt), group in groupby(comparisons, key=lambda c: (c.model, c.data, c.prompt)):
        cells = list(group)
        parts.append(Text.assemble((model, "bold"), " on ", (data, "bold"), f", prompt {prompt}"))
        parts.append(_table(cells))
        parts.extend(Text(f"{operator_name(c)}: {_counts(c)}", style="dim") for c in cells)
        parts.append(Text())
    if comparisons:
        parts.append(Text(_reading(comparisons, change), style="dim"))
    parts.extend(_warnings(comparisons))
    parts.extend(_failures(failures, len(comparisons)))
    return Group(*parts)


def _spelled(c: Comparison) -> Comparison:
    """The same, no name or warning of which can command a terminal."""
    return replace(
        c,
        model=printable(c.model),
        data=printable(c.data),
        prompt=printable(c.prompt),
        operator=printable(c.operator),
        variant=printable(c.variant),
        warnings=tuple(map(printable, c.warnings)),
    )


def _table(comparisons: Sequence[Comparison]) -> Table:
    """Narrow enough for 80 characters."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("operator", overflow="fold", min_width=19)
    table.add_column("Acc@0.5", justify="right", no_wrap=True, min_width=11)
    table.add_column("Δ [95% interval]", justify="right", min_width=20)
    table.add_column("p", justify="right", no_wrap=True, min_width=6)
    table.add_column("pairs", justify="right", no_wrap=True, min_width=5)
    for comparison in comparisons:
        table.add_row(*_row(comparison))
    return table


def _row(comparison: Comparison) -> Iterator[str | Text]:
    delta = comparison.deltas.get("acc50")
    yield Text(operator_name(comparison))
    yield f"{_value(delta.original)} → {_value(delta.perturbed)}" if delta else "n/a"
    yield Text("on the old place") if on_old_place(comparison) else _delta_text(delta)
    yield "—" if on_old_place(comparison) else p_holm(delta) if delta else "n/a"
    yield f"{comparison.paired:,}"


def _counts(comparison: Comparison) -> str:
    """What every number here rests on: coverage, images, flips, answers without a box, no answers."""
    delta = comparison.deltas.get("acc50")
    spread = f"; SD of Δ over draws {points(delta.draw_sd)}" if delta and delta.draw_sd is not None else ""
    flips = ""
    if delta and not on_old_place(comparison):
        flips = f"right→wrong {delta.right_to_wrong:.4g}, wrong→right {delta.wrong_to_right:.4g}; "
    perturbed = comparison.counts.get("perturbed", {})
    same = perturbed.get("unchanged", 0)
    left_out = perturbed.get("not_perturbable", 0)
    return (
        f"{comparison.paired:,} of {comparison.planned:,} examples paired "
        f"({share(comparison.paired, comparison.planned)}) on {comparison.images:,} images; {flips}"
        f"no box {unread(comparison, 'original')} / {unread(comparison, 'perturbed')}, "
        f"no answer {missing(comparison, 'original')} / {missing(comparison, 'perturbed')}"
        + (f", not perturbable {left_out}" if left_out else "")
        + (f", unchanged texts {same} ({unchanged(comparison)})" if same else "")
        + _answers(comparison)
        + spread
        + "".join(_aside(comparison))
    )


def _answers(comparison: Comparison) -> str:
    """Of operators with several draws: examples hide answers that are lacking."""
    planned, came = comparison.details.get("answers_planned"), comparison.details.get("answers")
    lacking = planned is not None and came is not None and came < planned
    return f", {came:,} of {planned:,} planned answers" if lacking else ""


def _aside(comparison: Comparison) -> Iterator[str]:
    """What bounds or explains the accuracies: cut answers, further turns, chance, candidate recall, cost."""
    details = comparison.details
    for kind, words in ASIDES.items():
        before, after = (comparison.counts.get(arm, {}).get(kind, 0) for arm in ("original", "perturbed"))
        if before or after:
            yield f"; {words} {before} / {after}"
    if (chance := details.get("chance_acc50")) is not None:
        yield f"; chance {points(chance)} (n {details['chance_acc50_n']:,})"
    if (recall := details.get("candidate_recall")) is not None:
        yield f"; candidate recall {points(recall)} (n {details['candidate_recall_n']:,})"
    sides = details.get("engines", {}).values()
    if engines := sorted({engine for side in sides for engine in side}):
        yield f"; answered by {', '.join(engines)}"
    if details.get("input_tokens") or details.get("output_tokens"):
        cost = f", ${details['usd']:,.2f}" if details.get("usd") else ""
        yield f"; {details['input_tokens']:,} tokens in, {details['output_tokens']:,} out{cost}"


def _value(estimate: Estimate) -> str:
    return "n/a" if estimate.value is None else points(estimate.value)


def _delta_text(delta: Delta | None) -> Text:
    """Bold where the interval leaves zero out."""
    if delta is None or delta.delta.value is None:
        return Text(because("n/a", delta.delta.note if delta else "not computed"))
    low, high = delta.delta.low, delta.delta.high
    clear = low is not None and high is not None and (low > 0 or high < 0)
    bounds = interval(delta.delta) or because("[n/a]", delta.delta.note)
    return Text.assemble((points(delta.delta.value, signed=True), "bold" if clear else ""), f" {bounds}")


def _reading(comparisons: Sequence[Comparison], change: str) -> str:
    family = sum("acc50" in c.deltas and c.deltas["acc50"].p_holm is not None for c in comparisons)
    holm = f", Holm-adjusted over {family} cells" if family > 1 else ""
    old = f" {OLD_PLACE}" if any(map(on_old_place, comparisons)) else ""
    return READING.format(holm=holm, change=change) + old


def accuracies(source: Wide) -> RenderableType:
    """A `Table` of the paper on the screen: our value, below it the published one, ✓ within our interval.

    Narrow enough for ten numbers a line; `basis` says what they rest on.
    """
    table = Table(title=source.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in source.label_titles:
        table.add_column(title, no_wrap=True)
    for column in source.columns:
        head = f"{column.group.partition(' ')[0]}\n{column.title}" if column.group else column.title
        table.add_column(head, justify="right", no_wrap=True)
    for line in source.lines:
        values = [line.values.get(column.key) for column in source.columns]
        table.add_row(*map(Text, map(printable, line.labels)), *map(_beside, values))
    if any(line.has_published for line in source.lines):
        return Group(table, Text("below: published, ✓ within our 95% interval, ✗ outside it", style="dim"))
    return Group(table, Text(UNNAMED, style="dim"))


def contrast_lines(family: Family) -> RenderableType:
    """Differences between results, one a line under what both sides share."""
    parts: list[RenderableType] = []
    for (where, quantity), group in groupby(family.contrasts, key=lambda c: (c.where, c.quantity)):
        table = Table(title=f"{where}: {QUANTITIES[quantity]}", title_justify="left", box=box.SIMPLE_HEAD)
        for head in ("second − first", "first", "second", "difference [95% interval]", "p", "examples"):
            table.add_column(head, justify="left" if head == "second − first" else "right")
        for c in group:
            sides = (_value(c.first), _value(c.second), with_interval(c.difference, signed=True))
            n = f"{c.first.n:,}" if c.paired else f"{c.first.n:,} / {c.second.n:,}"
            table.add_row(Text(printable(f"{c.b} − {c.a}")), *sides, p_of(c), n)
        parts.append(table)
    how = "paired by example" if family.contrasts[0].paired else "on other examples, so not paired"
    note = f"In points; {how}; clustered by image; p: {holm_of(family)}."
    parts.append(Text(note, style="dim"))
    if apart := engines_apart(family.contrasts):
        parts.append(Text.assemble(("warning ", "bold yellow"), printable(apart)))
    return Group(*parts)


def basis(names: str, counts: Mapping[str, int], images: int) -> Text:
    """What the accuracies of one arm rest on; `counts` as `Arm.counts` gives them."""
    unread = sum(counts.get(outcome, 0) for outcome in UNREAD)
    asked, lost = counts.get("answers", 0), counts.get("missing", 0)
    return Text(
        f"{names}: {asked:,} examples on {images:,} images, no box {unread}, no answer {lost}; "
        "intervals are in the files",
        style="dim",
    )


def _beside(value: Value | None) -> Text:
    if value is None:
        return Text("–")
    text = Text(value.shown())
    if published := value.published_text():
        text.append(f"\n{published}", style="dim")
    return text


def _warnings(comparisons: Sequence[Comparison]) -> Iterator[RenderableType]:
    for cells, warning in warnings_of(comparisons):
        yield Text.assemble(("warning ", "bold yellow"), f"{cells}: " if cells else "", warning)


def _failures(failures: Sequence[Failure], done: int) -> Iterator[RenderableType]:
    if not failures:
        return
    yield Text()
    yield Text(f"{len(failures)} of {len(failures) + done} cells failed:", style="bold red")
    told: dict[str, list[str]] = {}
    for cell, reason in failures:
        told.setdefault(reason, []).append(cell)
    for reason, cells in told.items():
        yield Padding(Text("\n".join(cells)), (0, 0, 0, 2))
        yield Padding(Text(reason, style="dim", overflow="fold"), (0, 0, 0, 4))
