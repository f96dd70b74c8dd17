"""The understanding profile: of each operator the score that says most, its floor, and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refadv_ablate.parsing import scoring as scored
from refadv_ablate.statistics.formatting import operator_name, points
from refadv_ablate.types import Comparison, Estimate, Expectation, Score

HEADLINE: Mapping[Expectation, tuple[str, ...]] = {
    "reject": ("youden",),
    "directional": ("pair", "sticks"),
    "invariant": ("worst", "consistent"),
    "drop": ("necessity", "hit"),
}
"""Of each expectation the score that stands for it: the first that could be measured."""
NAMES: Mapping[str, str] = {
    "youden": "Youden's J",
    "pair": "right in both",
    "sticks": "stays on the old object",
    "worst": "same object in all variants",
    "consistent": "same object",
    "necessity": "drop beyond the placebo's",
    "hit": "still found",
    "delta": "Δ Acc@0.5",
    "excess": "above chance",
    "rejects": "rejected",
    "false_rejects": "rejected wrongly",
    "prior": "on the old place",
    "sufficiency": "gained by it alone",
    "shapley": "mean gain in any order",
}
OLD_PLACE = (
    "On the old place: nothing that is asked for is known to be there, so the perturbed accuracy counts "
    "answers on the original referent. That it is lower is no error; the profile has the scores."
)
"""What tables say of cells whose accuracy counts no success; see `on_old_place`."""
SIGNED = frozenset({"youden", "necessity", "sufficiency", "shapley", "delta", "excess"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the profile: an operator's questions of one expectation."""

    comparison: Comparison
    expectation: Expectation
    headline: Score
    others: Mapping[str, Score]
    floor: float | None
    """Share of answers that move to another object when the same thing is asked again; None: not asked."""
    not_asked: int
    """Questions that the operator couldn't make."""

    @property
    def sentence(self) -> str:
        """What was found, in words and points."""
        does = str(self.comparison.details.get("does") or f"under {self.comparison.operator}")
        return _SENTENCES[self.headline.name](self, does)


def findings(comparisons: Sequence[Comparison]) -> list[Finding]:
    """A row for each operator and expectation that was measured, the noise floor of its model beside it."""
    floors = {_setting(c): floor for c in comparisons if (floor := _floor(c)) is not None}
    return [
        finding
        for comparison in comparisons
        if not comparison.details.get("keeps_text")
        for finding in _of(comparison, floors.get(_setting(comparison)))
    ]


def is_profile(comparisons: Sequence[Comparison]) -> bool:
    """Whether anything but drops was measured: operators on the text alone need no profile."""
    return any(s.expectation != "drop" for c in comparisons for s in c.scores)


def on_old_place(c: Comparison) -> bool:
    """Whether its accuracy counts answers on the old place, so that its Δ is no ordinary fall.

    So it is where nothing matches in any of its questions, and where another object is meant whose box
    nobody knows.
    """
    counts = c.counts.get("perturbed", {})
    if scored.OLD_PLACE in counts:
        return counts[scored.OLD_PLACE] == _answered(counts)
    scores = [s for s in c.scores if not s.part]
    if any(s.expectation not in ("reject", "directional") for s in scores):
        return False
    known = any(s.name == "pair" and s.estimate.n for s in scores)
    return bool(scores) and not known


def partly_on_old_place(c: Comparison) -> str:
    """A sentence where some of its answers, and not all, are scored on the old place; else nothing."""
    counts = c.counts.get("perturbed", {})
    old, answered = counts.get(scored.OLD_PLACE, 0), _answered(counts)
    if not 0 < old < answered:
        return ""
    return (
        f"{old:,} of {answered:,} perturbed answers are to questions about another object, whose box nobody "
        "knows, or about none: they are scored on the old place and Δ holds them too. The profile has the "
        "scores of each expectation."
    )


def _answered(counts: Mapping[str, int]) -> int:
    return counts.get("answers", 0) - sum(counts.get(kind, 0) for kind in scored.NOT_SCORED)


def ordinary(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Those whose Δ is a change of accuracy; see `on_old_place`."""
    return [c for c in comparisons if not on_old_place(c)]


def left_out(comparisons: Sequence[Comparison]) -> str:
    """What a caption or note says of those that aren't `ordinary`; nothing where all are."""
    names = dict.fromkeys(operator_name(c) for c in comparisons if on_old_place(c))
    if not names:
        return ""
    return (
        f"Left out: {', '.join(names)}. Nothing that is asked for is known to be there, so that no accuracy "
        "could fall; their own scores are under What the model uses."
    )


def _setting(c: Comparison) -> tuple[str, str, str]:
    return c.model, c.data, c.prompt


def _floor(c: Comparison) -> float | None:
    if not c.details.get("noise_floor"):
        return None
    same = next((s.estimate.value for s in c.scores if s.name == "consistent" and not s.part), None)
    return None if same is None else 1.0 - same


def _of(comparison: Comparison, floor: float | None) -> Iterator[Finding]:
    for expectation, names in HEADLINE.items():
        own = {s.name: s for s in comparison.scores if s.expectation == expectation and not s.part}
        measured = [own[name] for name in names if name in own and own[name].estimate.n]
        if measured:
            refused = comparison.details.get("not_applicable")
            not_asked = sum(refused.values()) if isinstance(refused, Mapping) else 0
            yield Finding(comparison, expectation, measured[0], own, floor, not_asked)


# ── sentences ───────────────────────────────────────────────────────────────────────────────────


def _value(finding: Finding, name: str) -> float | None:
    score = finding.others.get(name)
    return score.estimate.value if score else None


def _share(value: float | None) -> str:
    return "n/a" if value is None else f"{points(value)}%"


def _youden(f: Finding, does: str) -> str:
    prior = _value(f, "prior")
    return (
        f"It rejects {_share(_value(f, 'rejects'))} of the questions {does}, and "
        f"{_share(_value(f, 'false_rejects'))} of the originals, which have an answer; "
        f"{_share(prior)} of its answers fall on the old place."
    )


def _pair(f: Finding, does: str) -> str:
    return (
        f"It is right in both for {_share(f.headline.estimate.value)} of the pairs; "
        f"{_share(_value(f, 'sticks'))} of its right answers stay on the old object {does}."
    )


def _sticks(f: Finding, does: str) -> str:
    return f"{_share(f.headline.estimate.value)} of its right answers stay on the old object {does}."


def _same(f: Finding, does: str) -> str:
    every = "every time " if f.headline.name == "worst" else ""
    delta = _value(f, "delta")
    change = "" if delta is None else f"; accuracy changes by {points(delta, signed=True)} points"
    of = "examples" if every else "its answers"
    return f"{_share(f.headline.estimate.value)} of {of} stay on the same object {every}{does}{change}."


def _necessity(f: Finding, does: str) -> str:
    lost = f.headline.estimate.value or 0.0
    return f"{does[0].upper()}{does[1:]}, {points(lost)} points more are lost than under the placebo."


def _hit(f: Finding, does: str) -> str:
    chance = f.headline.chance
    blind = "" if chance is None else f"; blind choice among what fits finds {_share(chance)}"
    return f"{_share(f.headline.estimate.value)} are still found {does}{blind}."


_SENTENCES = {
    "youden": _youden,
    "pair": _pair,
    "sticks": _sticks,
    "worst": _same,
    "consistent": _same,
    "necessity": _necessity,
    "hit": _hit,
}


def estimates(comparison: Comparison) -> Iterator[tuple[str, Score, Estimate]]:
    """Every score of every sub-condition, as (part, score, estimate)."""
    for score in comparison.scores:
        if score.part:
            yield score.part, score, score.estimate
