"""Two runs or two models on the same examples: paired Δ, flips, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.figures.delta import delta_figure, flip_figure
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.pages import gallery
from refadv_ablate.report.pages.imagery import images_of
from refadv_ablate.report.pages.report_page import Content, Picture, write_pages
from refadv_ablate.report.pages.sweep_page import write_tables
from refadv_ablate.report.tables import results
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics.formatting import warnings_of
from refadv_ablate.types import Comparison, Json, Record

SLICES = ("distractors", "negation", "length", "category")


@dataclass(frozen=True, slots=True)
class Matched:
    """A condition that both sides answered on one data set; B is compared with A."""

    a: Cell
    b: Cell
    condition: str
    comparison: Comparison


def match(first: Sequence[Cell], second: Sequence[Cell], *, seed: int, n_boot: int) -> list[Matched]:
    """Cells of the same data (and prompt, where both sides have several), condition by condition.

    Raises UserError where nothing is common.
    """
    found = []
    done: set[tuple[str, str, str, str, str]] = set()
    for a, b in _couples(first, second):
        for condition in a.arms:
            key = (a.names.model, a.names.prompt, b.names.prompt, a.names.data, condition)
            if condition in b.arms and key not in done:
                done.add(key)
                found.append(Matched(a, b, condition, _compare(a, b, condition, seed, n_boot)))
    answered = [m for m in found if m.comparison.paired]
    if not answered:
        what = " and ".join(f"{', '.join(sorted({c.names.data for c in side}))}" for side in (first, second))
        raise UserError(f"a and b have no example in common ({what}); compare runs on the same data")
    adjusted = stats.holm([m.comparison for m in answered])
    return [replace(m, comparison=c) for m, c in zip(answered, adjusted, strict=True)]


def _couples(first: Sequence[Cell], second: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    for a in first:
        same = [b for b in second if b.names.data == a.names.data]
        prompts = {b.names.prompt for b in same}
        yield from ((a, b) for b in same if len(prompts) < 2 or b.names.prompt == a.names.prompt)


def names(a: Cell, b: Cell) -> tuple[str, str]:
    """What tells the two apart: model, else prompt, else where their files lie."""
    for x, y in (
        (a.names.model, b.names.model),
        (f"{a.names.model} {a.names.prompt}", f"{b.names.model} {b.names.prompt}"),
        (a.path.parent.name, b.path.parent.name),
        (str(a.path), str(b.path)),
    ):
        if x != y:
            return x, y
    return "A", "B"


def _compare(a: Cell, b: Cell, condition: str, seed: int, n_boot: int) -> Comparison:
    left, right = names(a, b)
    arms = a.arms[condition], b.arms[condition]
    slices = [s for s in SLICES if s in arms[0].attributes()]
    found = stats.compare(
        *arms,
        model=f"{left} → {right}",
        data=a.names.data,
        prompt=a.names.prompt,
        operator=condition,
        planned=max(a.planned, b.planned),
        slices=slices,
        seed=seed,
        n_boot=n_boot,
    )
    return replace(found, warnings=(*found.warnings, *_texts_differ(a, b, condition, arms)))


def _texts_differ(a: Cell, b: Cell, condition: str, arms: tuple[Arm, Arm]) -> Iterator[str]:
    """The two must have been asked the same."""
    asked = {(r.example_id, r.draw): r.expression for r in a.records() if r.condition == condition}
    other = [
        r.example_id
        for r in b.records()
        if r.condition == condition and asked.get((r.example_id, r.draw), r.expression) != r.expression
    ]
    if other:
        yield f"{len(other)} examples were asked with other words in b than in a, first {other[0]!r}"
    if len(arms[0]) != len(arms[1]):
        yield f"a has {len(arms[0]):,} answers, b {len(arms[1]):,}: only common examples are compared"


def write(folder: Path, matched: Sequence[Matched], *, most: int, command: str = "") -> list[Path]:
    """report.html and report.md with tables, figures and a gallery of each condition's differences."""
    comparisons = [m.comparison for m in matched]
    arms = names(matched[0].a, matched[0].b)
    tables = [results.results(comparisons, arms), results.metrics(comparisons), results.parts(comparisons)]
    write_tables(folder / "tables", tables, ("markdown", "latex", "csv", "json", "html"))
    figures = folder / "figures"
    galleries = list(_galleries(folder, matched, most)) if most else []
    meta: dict[str, Json] = {"a": str(matched[0].a.path), "b": str(matched[0].b.path), "command": command}
    content = Content(
        title=f"{arms[0]} against {arms[1]}",
        comparisons=comparisons,
        tables=tables,
        pictures=[
            Picture(
                delta_figure(comparisons, figures / "delta", change=f"{arms[1]} − {arms[0]}")[0], "Δ Acc@0.5."
            ),
            Picture(flip_figure(comparisons, figures / "flips")[0], f"From {arms[0]} to {arms[1]}."),
        ],
        warnings=warnings_of(comparisons),
        meta=meta,
        galleries=galleries,
    )
    return write_pages(folder, content)


def _galleries(folder: Path, matched: Sequence[Matched], most: int) -> Iterator[tuple[str, str]]:
    for index, m in enumerate(matched):
        image_of = images_of(m.a) or images_of(m.b) or (lambda _id: None)
        path = folder / ("gallery.html" if index == 0 else f"gallery_{index + 1}.html")
        title = f"{m.comparison.model} · {m.comparison.data} · {m.condition}"
        gallery.write(path, _pairs(m), image_of, title=title, most=most, arms=names(m.a, m.b))
        yield title, path.name


def _pairs(m: Matched) -> list[tuple[Record, Record]]:
    left = {(r.example_id, r.draw): r for r in m.a.records() if r.condition == m.condition}
    right = (r for r in m.b.records() if r.condition == m.condition)
    return [(left[r.example_id, r.draw], r) for r in right if (r.example_id, r.draw) in left]
