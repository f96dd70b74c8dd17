"""The understanding profile as tables: a row per operator, and one per sub-condition."""

from __future__ import annotations

from collections.abc import Sequence

from refadv_ablate.report.tables.table import Column, Fact, Line, Number, Table, Value
from refadv_ablate.statistics import profile
from refadv_ablate.statistics.formatting import operator_name, points
from refadv_ablate.types import Comparison

NOTES = (
    "Shares in percent, Youden's J and drops in points; [low, high]: 95% interval clustered by image. Noise "
    "floor: answers that move to another object when the original is asked once more (repeat); where that "
    "was not asked, —.",
    "expects: drop (no right answer is expected), invariant (the same object), directional (another object), "
    "reject (nothing matches and the prompt allows to say so). Definitions: docs/understanding.md.",
)


def profile_table(comparisons: Sequence[Comparison]) -> Table:
    """A line for each operator and expectation; no lines where there is no profile."""
    found = profile.findings(comparisons) if profile.is_profile(comparisons) else []
    columns = (
        Column("score", "Score"),
        Column("value", "Value"),
        Column("floor", "Noise floor"),
        Column("chance", "By chance"),
        Column("n", "n"),
        Column("not_asked", "Not applicable"),
        Column("sentence", "In words"),
    )
    return Table(
        "understanding",
        "What the model uses",
        ("Model", "Operator", "Expects"),
        columns,
        tuple(map(_line, found)),
        notes=NOTES,
    )


def _line(f: profile.Finding) -> Line:
    estimate, chance = f.headline.estimate, f.headline.chance
    values: dict[str, Value] = {
        "score": Fact(profile.NAMES[f.headline.name]),
        "value": Number(estimate, signed=f.headline.name in profile.SIGNED),
        "floor": Fact("—" if f.floor is None else points(f.floor)),
        "chance": Fact("—" if chance is None else points(chance)),
        "n": Fact(f"{estimate.n:,} on {estimate.images:,} images"),
        "not_asked": Fact(f"{f.not_asked:,}"),
        "sentence": Fact(f.sentence),
    }
    c = f.comparison
    section = f"{c.model} · {c.data} · {c.prompt}"
    return Line((c.model, operator_name(c), f.expectation), values, section, ranked=False)


def parts_table(comparisons: Sequence[Comparison]) -> Table:
    """A line for each sub-condition and expectation, with its accuracy, Δ and consistency."""
    columns = (
        Column("hit", "Acc@0.5"),
        Column("delta", "Δ"),
        Column("consistent", "Same object"),
        Column("sticks", "Stays on old"),
    )
    lines = []
    for c in comparisons if profile.is_profile(comparisons) else ():
        groups: dict[tuple[str, str], dict[str, Value]] = {}
        for part, score, estimate in profile.estimates(c):
            number = Number(estimate, signed=score.name in profile.SIGNED)
            groups.setdefault((part, score.expectation), {})[score.name] = number
        section = f"{c.model} · {c.data} · {operator_name(c)}"
        for (part, expectation), values in groups.items():
            lines.append(Line((section, part, expectation), values, section, ranked=False))
    return Table(
        "understanding_parts",
        "Sub-conditions of the operators",
        ("Result", "Part", "Expects"),
        columns,
        tuple(lines),
        notes=(NOTES[0],),
    )
