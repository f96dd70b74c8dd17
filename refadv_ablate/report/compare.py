"""Two runs or two models on the same examples: paired Δ, flips, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from refadv_ablate.data.naming import ends_with
from refadv_ablate.errors import UserError
from refadv_ablate.report.figures.delta import delta_figure, flip_figure
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.pages import gallery
from refadv_ablate.report.pages.imagery import images_of
from refadv_ablate.report.pages.report_page import Content, Picture, write_pages
from refadv_ablate.report.pages.sweep_page import write_tables
from refadv_ablate.report.tables import results
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics.formatting import cell_name, warnings_of
from refadv_ablate.types import Comparison, Json, Record

TARGET_SLACK = 0.05
"""Pixels by which the target may differ: files keep different numbers of decimals."""
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
    _refuse_other_examples(a, b, condition)
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
        perturbs=False,
    )
    if len(arms[0]) == len(arms[1]):
        return found
    fewer = f"a has {len(arms[0]):,} answers, b {len(arms[1]):,}: only common examples are compared"
    return replace(found, warnings=(*found.warnings, fewer))


def _refuse_other_examples(a: Cell, b: Cell, condition: str) -> None:
    """Raises UserError where an id that both sides have stands for different examples."""
    left = {(r.example_id, r.draw): _Case.of(r) for r in a.records() if r.condition == condition}
    common = 0
    differing: list[tuple[str, str]] = []
    for record in b.records():
        case = left.get((record.example_id, record.draw)) if record.condition == condition else None
        if case is not None:
            common += 1
            if what := case.differs(_Case.of(record)):
                differing.append((record.example_id, what))
    if differing:
        first, what = differing[0]
        raise UserError(
            f"a and b are not about the same examples: {len(differing)} of {common} with the same id in "
            f"{a.names.data}, condition {condition}, differ (first {first!r}: another {what}); compare runs "
            "on the same data and the same perturbed texts"
        )


@dataclass(frozen=True, slots=True)
class _Case:
    """What makes an example the same in two runs."""

    target: tuple[float, ...]
    digest: str
    key: str
    size: tuple[int, int]
    texts: tuple[str, str]

    @classmethod
    def of(cls, r: Record) -> _Case:
        # a published row without a file name says nothing of its image
        key = "" if r.image_key == f"row {r.example_id}" else r.image_key
        return cls(
            tuple(r.target.as_list()), r.image_digest, key, r.size, (r.original_expression, r.expression)
        )

    def differs(self, other: _Case) -> str:
        """What is not the same; empty where all is."""
        if self.texts[0] != other.texts[0]:
            return "expression"
        if max(abs(x - y) for x, y in zip(self.target, other.target, strict=True)) > TARGET_SLACK:
            return "target box"
        if not self._same_image(other):
            return "image"
        return "perturbed text" if self.texts[1] != other.texts[1] else ""

    def _same_image(self, other: _Case) -> bool:
        if self.digest and other.digest:
            return self.digest == other.digest
        if all(self.size) and all(other.size) and self.size != other.size:
            return False
        if not self.key or not other.key:
            return True
        return ends_with(self.key, other.key) or ends_with(other.key, self.key)


def write(folder: Path, matched: Sequence[Matched], *, most: int, command: str = "") -> list[Path]:
    """report.html and report.md with tables, figures and a gallery of each condition's differences."""
    comparisons = [m.comparison for m in matched]
    arms = names(matched[0].a, matched[0].b)
    tables = [results.results(comparisons, arms), results.metrics(comparisons), results.parts(comparisons)]
    write_tables(folder / "tables", tables, ("markdown", "latex", "csv", "json", "html"))
    figures = folder / "figures"
    galleries = dict(_galleries(folder, matched, most)) if most else {}
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
        yield cell_name(m.comparison), path.name


def _pairs(m: Matched) -> list[tuple[Record, Record]]:
    left = {(r.example_id, r.draw): r for r in m.a.records() if r.condition == m.condition}
    right = (r for r in m.b.records() if r.condition == m.condition)
    return [(left[r.example_id, r.draw], r) for r in right if (r.example_id, r.draw) in left]
