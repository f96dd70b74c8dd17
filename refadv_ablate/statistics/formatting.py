"""Fractions as readers of papers expect them: percentage points, a true minus sign, intervals in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refadv_ablate.types import Comparison, Delta, Estimate

MINUS = "−"
NOT_AVAILABLE = "n/a"
UNREAD = ("empty", "unparsable", "refused", "truncated")
"""Outcomes that are answers without a box; they score IoU 0."""
METRIC_NAMES: Mapping[str, str] = {
    "acc50": "Acc@0.5",
    "acc75": "Acc@0.75",
    "acc90": "Acc@0.9",
    "macc": "mAcc",
    "miou": "mIoU",
    "dig_avg": "DiG average",
}


def metric_name(metric: str) -> str:
    """acc50 → Acc@0.5, acc95 → Acc@0.95; mAcc and the average of the DiG protocol can't be confused."""
    threshold = metric.removeprefix("acc")
    named = f"Acc@{int(threshold) / 100:g}" if threshold.isdigit() and metric != threshold else metric
    return METRIC_NAMES.get(metric, named)


def points(fraction: float, *, signed: bool = False) -> str:
    """0.583 → 58.3; signed, −0.168 → −16.8 and 0.021 → +2.1; what rounds to zero is 0.0, without a sign."""
    text = f"{fraction * 100:.1f}"
    if float(text) == 0:
        return "0.0"
    if text.startswith("-"):
        return MINUS + text[1:]
    return f"+{text}" if signed else text


def interval(estimate: Estimate) -> str:
    """[−21.0, −12.6], or nothing where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"[{points(estimate.low)}, {points(estimate.high)}]"


def with_interval(estimate: Estimate, *, signed: bool = False) -> str:
    """−16.8 [−21.0, −12.6]; what is missing says why: n/a (one image)."""
    if estimate.value is None:
        return because(NOT_AVAILABLE, estimate.note)
    value = points(estimate.value, signed=signed)
    bounds = interval(estimate)
    return f"{value} {bounds}" if bounds else f"{value} {because('[n/a]', estimate.note)}"


def because(text: str, note: str) -> str:
    """The text with its reason in parentheses, if there is one: the note up to its first colon."""
    reason = note.partition(":")[0].partition(";")[0]
    return f"{text} ({reason})" if reason else text


def p_value(p: float | None) -> str:
    """Three decimals; below 0.001 as <0.001, since a permutation p has a floor."""
    if p is None:
        return NOT_AVAILABLE
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def p_holm(delta: Delta) -> str:
    """The adjusted p where a family was declared, otherwise the raw one, marked."""
    if delta.p_holm is None and delta.p is not None:
        return f"{p_value(delta.p)} raw"
    return p_value(delta.p_holm)


def share(part: int, whole: int) -> str:
    """Coverage in percent: 100% only where nothing is missing."""
    if whole <= 0:
        return NOT_AVAILABLE
    text = f"{100 * part / whole:.0f}%"
    return ">99%" if part < whole and text == "100%" else text


def coverage(comparison: Comparison) -> str:
    """Share of the planned examples that are paired, or of the planned answers that came: the smaller one."""
    planned, came = comparison.details.get("answers_planned"), comparison.details.get("answers")
    if planned and came is not None and came * comparison.planned < comparison.paired * planned:
        return share(came, planned)
    return share(comparison.paired, comparison.planned)


def unchanged(comparison: Comparison) -> str:
    """Share of the perturbed texts that are the original ones: Δ can't come from them."""
    counts = comparison.counts.get("perturbed", {})
    same, texts = counts.get("unchanged", 0), counts.get("answers", 0)
    if not texts:
        return NOT_AVAILABLE
    text = f"{100 * same / texts:.0f}%"
    return "<1%" if same and text == "0%" else text


def unread(comparison: Comparison, arm: str) -> int:
    """Answers of an arm without a box."""
    return sum(comparison.counts.get(arm, {}).get(outcome, 0) for outcome in UNREAD)


def missing(comparison: Comparison, arm: str) -> int:
    """Examples of an arm that the model never answered."""
    return comparison.counts.get(arm, {}).get("missing", 0)


def operator_name(comparison: Comparison) -> str:
    """The perturbation, with the settings that tell this cell from others of its name: bow (seed 1)."""
    if not comparison.variant:
        return comparison.operator
    return f"{comparison.operator} ({comparison.variant})"


def cell_name(comparison: Comparison) -> str:
    """model · data · prompt · operator."""
    return " · ".join((comparison.model, comparison.data, comparison.prompt, operator_name(comparison)))


def warnings_of(comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """(cells, sentence), each sentence once; the cells are empty where there is only one."""
    told: dict[str, list[str]] = {}
    for comparison in comparisons:
        for warning in dict.fromkeys(comparison.warnings):
            told.setdefault(warning, []).append(cell_name(comparison))
    return [(_cells(names, len(comparisons)), warning) for warning, names in told.items()]


def _cells(names: Sequence[str], total: int) -> str:
    if total == 1:
        return ""
    if len(names) == total:
        return "both cells" if total == 2 else f"all {total} cells"
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{', '.join(names[:2])}{more}"
