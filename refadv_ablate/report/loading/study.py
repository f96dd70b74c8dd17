"""What a report is about: cells and the comparisons within them, all recomputed from boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.loading.published import dataset_key
from refadv_ablate.report.loading.sources import Cell, Names
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics import labels, trends
from refadv_ablate.statistics.understanding import Answers
from refadv_ablate.types import METRICS, ORIGINAL, Comparison, Json


@dataclass(frozen=True, slots=True)
class Study:
    """`pairs` holds (cell, comparison); one cell may have several operators, or none."""

    cells: Sequence[Cell]
    pairs: Sequence[tuple[Cell, Comparison]] = field(default_factory=tuple)

    @property
    def comparisons(self) -> list[Comparison]:
        """In the order of the cells."""
        return [comparison for _, comparison in self.pairs]

    def originals(self) -> Iterator[tuple[Cell, Arm]]:
        """One original arm per model, data, prompt and setting: the one with the most answers."""
        fullest: dict[tuple[str, ...], tuple[Cell, Arm]] = {}
        for cell in self.cells:
            key, arm = (cell.names.model, cell.names.data, cell.prompt), cell.arms.get(ORIGINAL)
            if arm is not None and (key not in fullest or len(arm) > len(fullest[key][1])):
                fullest[key] = cell, arm
        yield from fullest.values()

    def datasets(self) -> list[str]:
        """Names in the paper's order, others behind in the order in which they came."""
        order = {"refcoco": 0, "refcoco_plus": 1, "refcocog": 2, "ref_adv": 3, "ref_adv_s": 4}
        names = list(dict.fromkeys(cell.names.data for cell in self.cells))
        return sorted(names, key=lambda name: order.get(dataset_key(name), len(order)))

    def operators(self) -> list[str]:
        """Labels of the perturbations."""
        return list(dict.fromkeys(comparison.operator for _, comparison in self.pairs))


def study(
    cells: Sequence[Cell],
    *,
    slices: Sequence[str] = (),
    metrics: Sequence[str] = METRICS,
    seed: int = 0,
    n_boot: int = 10_000,
) -> Study:
    """Compares every perturbed condition with the original one of its cell; Holm over all of them."""
    found = [
        (cell, _compare(cell, label, slices, metrics, seed, n_boot))
        for cell in cells
        for label in cell.operators
    ]
    done = [(cell, comparison) for cell, comparison in found if comparison is not None]
    adjusted = labels.declared([comparison for _, comparison in done])
    for (cell, _), comparison in zip(done, adjusted, strict=True):
        cell.variant = comparison.variant
    return Study(cells, [(cell, comparison) for (cell, _), comparison in zip(done, adjusted, strict=True)])


def within(cells: Sequence[Cell], comparisons: Sequence[Comparison]) -> Study:
    """Comparisons that were made already, with the cells that they belong to where those are there."""
    known = {_key(c.names, label, c.details): c for c in cells for label in c.operators}
    pairs = []
    for comparison in comparisons:
        names = Names(comparison.model, comparison.data, comparison.prompt)
        cell = known.get(_key(names, comparison.operator, comparison.details)) or _bare(comparison)
        cell.variant = comparison.variant
        pairs.append((cell, comparison))
    return Study(cells or [cell for cell, _ in pairs], pairs)


def _key(names: Names, operator: str, details: Mapping[str, Json]) -> tuple[str, ...]:
    return names.model, names.data, names.prompt, operator, str(details.get("hash", ""))


def _bare(comparison: Comparison) -> Cell:
    """A cell known by its names alone."""
    names = Names(comparison.model, comparison.data, comparison.prompt)
    return Cell(names, Path(), lambda: iter(()), planned=comparison.planned)


def _compare(
    cell: Cell, operator: str, slices: Sequence[str], metrics: Sequence[str], seed: int, n_boot: int
) -> Comparison | None:
    original = cell.arms.get(ORIGINAL)
    if original is None:
        cell.warnings.append(f"{cell.path} has {operator} answers but no original ones: no Δ")
        return None
    comparison = stats.compare(
        original,
        cell.arms[operator],
        model=cell.names.model,
        data=cell.names.data,
        prompt=cell.names.prompt,
        operator=operator,
        planned=cell.planned,
        slices=slices,
        metrics=metrics,
        seed=seed,
        n_boot=n_boot,
        details={**cell.details, **trends.noted(original, cell.arms[operator])},
    )
    # what the run itself noticed (frames, unchanged texts) can't be seen in boxes
    heard = [warning for warning in cell.warnings if warning not in comparison.warnings]
    answers, details = cell.answers.get(operator, Answers()), comparison.details
    if refusals := answers.refusals():
        details = {**details, "not_applicable": refusals}
    return replace(
        comparison,
        scores=answers.scores(),
        warnings=(*comparison.warnings, *heard),
        details=details,
    )
