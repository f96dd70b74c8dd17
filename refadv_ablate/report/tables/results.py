"""Comparisons as tables: the result of every cell, its other metrics, its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.tables.cautions import lacking
from refadv_ablate.report.tables.table import EXACT, Column, Fact, Line, Number, Table, Value
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics.formatting import (
    cell_name,
    coverage,
    interval,
    metric_name,
    missing,
    operator_name,
    p_holm,
    p_value,
    points,
    unchanged,
    unread,
    with_interval,
)
from refadv_ablate.statistics.profile import OLD_PLACE, left_out, on_old_place, ordinary
from refadv_ablate.types import Comparison, Delta, Estimate

HEADS = ("Model", "Data", "Prompt", "Perturbation")
ARMS = ("Original", "Perturbed")
NOTE = (
    "Δ = perturbed − original in points, on the same examples; answers without a box count as misses. "
    "[low, high]: 95% interval, clustered by image."
)
DIG = "DiG average: mean of Acc@0.5, 0.75 and 0.95; mAcc is the mean over 0.50:0.05:0.95."


def results(
    comparisons: Sequence[Comparison],
    arms: tuple[str, str] = ARMS,
    pages: Mapping[str, str] = MappingProxyType({}),
) -> Table:
    """Acc@0.5 of both conditions, Δ, tests, flips, what each rests on; `pages`: `cell_name` → examples."""
    before, after = (name.lower() if name in ARMS else name for name in arms)
    columns: tuple[Column, ...] = (
        Column("original", arms[0], "Acc@0.5"),
        Column("perturbed", arms[1], "Acc@0.5"),
        Column("delta", "Δ"),
        Column("p_holm", "p (Holm)"),
        Column("right_to_wrong", "→ wrong", "Flips"),
        Column("wrong_to_right", "→ right", "Flips"),
        Column("pairs", "pairs", "Rests on"),
        Column("images", "images", "Rests on"),
        Column("coverage", "cover", "Rests on"),
        Column("unchanged", "same text", "Rests on"),
        Column("no_box", "no box", f"{before} / {after}"),
        Column("no_answer", "no answer", f"{before} / {after}"),
    )
    if not any(c.counts.get("perturbed", {}).get("unchanged") for c in comparisons):
        columns = tuple(column for column in columns if column.key != "unchanged")
    lines = [
        replace(_line(c, dict(_result(c, c.deltas["acc50"]))), link=pages.get(cell_name(c), ""))
        for c in comparisons
        if "acc50" in c.deltas
    ]
    note = NOTE.replace("perturbed − original", f"{after} − {before}")
    return _table(
        "results",
        "Original against perturbed" if arms == ARMS else f"{arms[0]} against {arms[1]}",
        columns,
        lines,
        note,
        *_tests(comparisons),
        *_exact(comparisons),
        *([OLD_PLACE] if any(map(on_old_place, comparisons)) else []),
        *lacking(comparisons),
    )


def _result(comparison: Comparison, delta: Delta) -> Iterator[tuple[str, Value]]:
    yield "original", Number(delta.original)
    yield "perturbed", Number(delta.perturbed)
    if on_old_place(comparison):
        yield from ((key, Fact("—")) for key in ("delta", "p_holm", "right_to_wrong", "wrong_to_right"))
    else:
        yield "delta", Number(delta.delta, signed=True)
        yield "p_holm", Fact(p_holm(delta))
        yield "right_to_wrong", Fact(_count(delta.right_to_wrong))
        yield "wrong_to_right", Fact(_count(delta.wrong_to_right))
    yield "pairs", Fact(f"{comparison.paired:,}")
    yield "images", Fact(f"{comparison.images:,}")
    yield "coverage", Fact(coverage(comparison))
    yield "unchanged", Fact(unchanged(comparison))
    yield "no_box", Fact(f"{unread(comparison, 'original')} / {unread(comparison, 'perturbed')}")
    yield "no_answer", Fact(f"{missing(comparison, 'original')} / {missing(comparison, 'perturbed')}")


def metrics(comparisons: Sequence[Comparison]) -> Table:
    """Both conditions and Δ at every metric, Δ on answers parsed in both, the checks of the main Δ."""
    names = list(dict.fromkeys(name for c in comparisons for name in c.deltas))
    columns = [
        Column(f"{key}_{name}", title, metric_name(name))
        for name in names
        for key, title in (("original", "Original"), ("perturbed", "Perturbed"), ("delta", "Δ"))
    ]
    columns += [
        Column("parsed_only", "Acc@0.5, parsed in both", "Δ"),
        Column("bootstrap", "cluster bootstrap", "Checks of Δ Acc@0.5"),
        Column("p_sign_flip", "p, sign flip", "Checks of Δ Acc@0.5"),
        Column("p_mcnemar", "p, McNemar (ignores clustering)", "Checks of Δ Acc@0.5"),
        Column("draw_sd", "SD over draws", "Checks of Δ Acc@0.5"),
        Column("same", "same outcome", "Consistency"),
    ]
    lines = []
    for comparison in ordinary(comparisons):
        values: dict[str, Value] = {}
        for name, change in comparison.deltas.items():
            values[f"original_{name}"] = Number(change.original)
            values[f"perturbed_{name}"] = Number(change.perturbed)
            values[f"delta_{name}"] = Number(change.delta, signed=True)
        if "acc50" in comparison.parsed_only:
            values["parsed_only"] = Number(comparison.parsed_only["acc50"].delta, signed=True)
        if "acc50" in comparison.deltas:
            values |= dict(_checks(comparison.deltas["acc50"]))
            values["same"] = Fact(_consistency(comparison.deltas["acc50"]))
        lines.append(_line(comparison, values))
    notes = [NOTE, *filter(None, [left_out(comparisons)])]
    if "dig_avg" in names:
        notes.append(DIG)
    return _table("metrics", "All metrics and checks", columns, lines, *notes)


def _consistency(delta: Delta) -> str:
    """Share of the examples that are hit in both conditions or missed in both."""
    if not delta.delta.n:
        return "n/a"
    return points(1 - (delta.right_to_wrong + delta.wrong_to_right) / delta.delta.n)


def _checks(delta: Delta) -> Iterator[tuple[str, Value]]:
    if delta.bootstrap:
        yield "bootstrap", Fact(interval(Estimate(None, *delta.bootstrap, n=0, images=0)))
    yield "p_sign_flip", Fact(p_value(delta.p))
    yield "p_mcnemar", Fact(p_value(delta.p_mcnemar))
    if delta.draw_sd is not None:
        yield "draw_sd", Fact(f"{100 * delta.draw_sd:.2f}")


def parts(comparisons: Sequence[Comparison]) -> Table:
    """Acc@0.5 and Δ by distractors, negation and whatever else was asked for."""
    columns = (
        Column("original", "Original", "Acc@0.5"),
        Column("perturbed", "Perturbed", "Acc@0.5"),
        Column("delta", "Δ"),
        Column("pairs", "pairs"),
        Column("images", "images"),
    )
    lines = []
    for comparison in ordinary(comparisons):
        for part in comparison.slices:
            delta = part.deltas.get("acc50")
            if delta is None:
                continue
            values: dict[str, Value] = {
                "original": Number(delta.original),
                "perturbed": Number(delta.perturbed),
                "delta": Number(delta.delta, signed=True),
                "pairs": Fact(f"{delta.delta.n:,}"),
                "images": Fact(f"{delta.delta.images:,}"),
            }
            line = _line(comparison, values)
            labels = (*line.labels, f"{part.by} {part.label}")
            lines.append(Line(labels, values, " · ".join(line.labels), ranked=False))
    note = "Parts are explored, not tested: no p. Below 10 images read nothing into them."
    return _table("parts", "By kind of example", columns, lines, NOTE, note, *_trends(ordinary(comparisons)))


def _trends(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Whether Δ goes with the number of distractors, where that was looked at."""
    for comparison in comparisons:
        found = comparison.details.get("trend_distractors")
        if found and found.get("low") is not None:
            bounds = Estimate(found["value"], found["low"], found["high"], 0, 0)
            yield (
                f"{cell_name(comparison)}: Δ changes by {with_interval(bounds, signed=True)} points with "
                f"each distractor more (slope, p {p_value(found['p'])})."
            )


def parts_alone(
    originals: Iterable[tuple[Cell, Arm]], by: Sequence[str], metrics: Sequence[str] = ("acc50", "acc75")
) -> Table:
    """Accuracies where nothing was perturbed: of all examples and by kind of example."""
    columns = [Column(name, metric_name(name)) for name in metrics]
    columns += [Column("examples", "examples"), Column("images", "images")]
    lines = []
    for cell, arm in originals:
        names = (cell.names.model, cell.names.data, cell.prompt)
        rows = [("all", {name: stats.accuracy(arm, name) for name in metrics})]
        for attribute in by:
            found = {name: dict(stats.accuracy_by(arm, attribute, name)) for name in metrics}
            rows += [
                (f"{attribute} {part}", {name: found[name][part] for name in metrics})
                for part in found[metrics[0]]
            ]
        for part, estimates in rows:
            values: dict[str, Value] = {name: Number(estimate) for name, estimate in estimates.items()}
            basis = estimates[metrics[0]]
            values |= {"examples": Fact(f"{basis.n:,}"), "images": Fact(f"{basis.images:,}")}
            lines.append(Line((*names, part), values, " · ".join(filter(None, names)), ranked=False))
    note = "Answers without a box count as misses. [low, high]: 95% interval, clustered by image."
    notes = (note, DIG) if "dig_avg" in metrics else (note,)
    heads = ("Model", "Data", "Prompt", "Examples")
    return Table("parts", "All metrics, by kind of example", heads, tuple(columns), tuple(lines), notes=notes)


def _table(name: str, title: str, columns: Sequence[Column], lines: Sequence[Line], *notes: str) -> Table:
    """A prompt that all lines share goes from the columns to the notes."""
    heads: tuple[str, ...] = HEADS if name != "parts" else (*HEADS, "Examples with")
    prompts = {line.labels[2] for line in lines}
    if len(prompts) == 1:
        heads = heads[:2] + heads[3:]
        lines = [replace(line, labels=line.labels[:2] + line.labels[3:]) for line in lines]
        notes = (*notes, f"Prompt: {prompts.pop()}.")
    return Table(name, title, heads, tuple(columns), tuple(lines), notes=notes)


def _line(comparison: Comparison, values: dict[str, Value]) -> Line:
    old = " (on the old place)" if on_old_place(comparison) else ""
    labels = (comparison.model, comparison.data, comparison.prompt, operator_name(comparison) + old)
    return Line(labels, values, " · ".join(labels[:3]), ranked=False)


def _count(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _tests(comparisons: Sequence[Comparison]) -> Iterator[str]:
    family = sum("acc50" in c.deltas and c.deltas["acc50"].p_holm is not None for c in comparisons)
    if family > 1:
        yield f"p: mid-p of sign flips of whole images, Holm-adjusted over {family} cells."
    elif comparisons:
        yield "p: mid-p of sign flips of whole images."


def _exact(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What Δ without one discordant pair rests on, each reason once."""
    deltas = (c.deltas["acc50"].delta for c in comparisons if "acc50" in c.deltas)
    told = list(dict.fromkeys(delta.note for delta in deltas if Number(delta).exact))
    if told:
        yield f"{EXACT.removeprefix('exact ')} exact: {'; '.join(told)}."
