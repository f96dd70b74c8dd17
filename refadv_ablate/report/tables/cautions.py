"""Notes below tables whose numbers rest on fewer answers than were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.loading.study import Study
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics.formatting import cell_name, points
from refadv_ablate.types import Comparison


def lacking(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The caution that must stand below every table of a run with lacking answers."""
    for comparison in comparisons:
        bounds = comparison.details.get("worst_case")
        if bounds:
            came, planned = comparison.details["answers"], comparison.details["answers_planned"]
            yield (
                f"{cell_name(comparison)}: {came:,} of {planned:,} planned answers came; Δ of all could lie "
                f"from {points(bounds[0], signed=True)} to {points(bounds[1], signed=True)}."
            )


PAPERS_REWRITER = "Qwen2.5-72B"
"""What rewrote the expressions of the paper's Table 4."""


def rewritten(cells: Sequence[Cell]) -> Iterator[str]:
    """Texts that something else than the paper's model rewrote are other texts than those published on."""
    for name in dict.fromkeys(_rewriter(cell) for cell in cells):
        if PAPERS_REWRITER.lower() not in name.lower():
            yield (
                f"Descriptors deleted by {name or 'a rewriter that the run does not name'}, in the paper by "
                f"{PAPERS_REWRITER}: the published values are of other texts."
            )


def _rewriter(cell: Cell) -> str:
    """As a run's configuration names it."""
    rewriter = cell.config.get("rewriter")
    if not isinstance(rewriter, dict):
        return ""
    kind = str(rewriter.get("_target_", "")).rpartition(".")[2]
    return str(
        rewriter.get("model") or {"SpacyRewriter": "dependency parses (rewriter=spacy)"}.get(kind, kind)
    )


def answered(arm: Arm) -> str:
    """1,142, or how many of those that were asked."""
    asked = len(arm)
    lost = arm.counts().get("missing", 0)
    return f"{asked:,}" if not lost else f"{asked - lost:,} of {asked:,}"


def unanswered(study: Study, data: str) -> Iterator[str]:
    """Accuracy of the answers that came is no accuracy of the data: between which values that lies."""
    for cell, arm in study.originals():
        asked, lost = len(arm), arm.counts().get("missing", 0)
        value = stats.accuracy(arm).value
        if cell.names.data == data and lost and value is not None:
            known = value * (asked - lost) / asked
            yield (
                f"{cell.names.model}: {lost:,} of {asked:,} answers never came and are in no number; "
                f"Acc@0.5 of all could lie from {points(known)} to {points(known + lost / asked)}."
            )
