"""Table 1 of any data sets with intervals and the published values, and the differences between sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refadv_ablate.report.loading import published
from refadv_ablate.report.tables.table import Column, Fact, Line, Table
from refadv_ablate.statistics.data_sets import MEASURES, SetStats, compared, estimated
from refadv_ablate.statistics.formatting import because, p_value
from refadv_ablate.types import Estimate

COLUMNS = (
    ("images", "images"),
    ("expressions", "expressions"),
    ("instances", "instances"),
    *((measure, title) for measure, (title, _) in MEASURES.items()),
    ("sizes", "instance size (px)"),
    ("vocabulary", "vocabulary"),
)
MEANS = "Means over expressions with a 95% interval that leaves each image out in turn; shares in percent."
COUNTED = (
    "Words: what white space separates and holds a letter or digit. Instance size: square root of the box's "
    "area, smallest–largest. Vocabulary: spaCy's tokens with a letter or digit, lower case; it grows with "
    "the number of expressions, as instances do, so it tells sets of different size apart by that alone."
)
APART = (
    "Difference = second − first, with a 95% interval from leaving each image out in turn; an image that "
    "both sets hold counts once; p of the same t, Holm-adjusted over these {n} lines; shares in points. "
    "The interval is for more images of the same kind: it says nothing where a set is all there is."
)


def shown(estimate: Estimate | None, share: bool, *, signed: bool = False) -> str:
    """11.72 [11.50, 11.94]; shares in percent: 21.3% [20.1, 22.4]; their differences in points."""
    if estimate is None or estimate.value is None:
        return "–"
    scale, digits, unit = (100.0, 1, "" if signed else "%") if share else (1.0, 2, "")

    def number(value: float) -> str:
        return f"{scale * value:{'+' if signed else ''}.{digits}f}".replace("-", "−")

    if estimate.low is None or estimate.high is None:
        return f"{number(estimate.value)}{unit} {because('[n/a]', estimate.note)}"
    return f"{number(estimate.value)}{unit} [{number(estimate.low)}, {number(estimate.high)}]"


def statistics(measured: Sequence[SetStats]) -> Table:
    """One line a set; below it the published row where the set is one of the paper's."""
    rows = {published.dataset_key(row["dataset"]): row for row in published.rows("table1")}
    lines = [
        Line((stats.name,), _values(stats, rows.get(published.dataset_key(stats.name), {})), ranked=False)
        for stats in measured
    ]
    return Table(
        "statistics",
        "Statistics of the data (the paper's Table 1)",
        ("Data set",),
        tuple(Column(key, title) for key, title in COLUMNS),
        tuple(lines),
        notes=(MEANS, COUNTED),
    )


def _values(stats: SetStats, theirs: Mapping[str, str]) -> dict[str, Fact]:
    sizes = stats.sizes
    negation = theirs.get("negation_percent", "")
    return {
        "images": Fact(f"{len(stats.images):,}", theirs.get("images", "")),
        "expressions": Fact(f"{stats.expressions:,}"),
        "instances": Fact(f"{len(stats.instances):,}", theirs.get("instances", "")),
        "words": Fact(_mean(stats, "words"), theirs.get("mean_length_words", "")),
        "distractors": Fact(_mean(stats, "distractors"), theirs.get("mean_distractors", "")),
        "negation": Fact(_mean(stats, "negation"), f"{negation}%" if negation else ""),
        "human": Fact(_mean(stats, "human")),
        "sizes": Fact(
            f"{sizes[0]:.0f}–{sizes[-1]:.0f}" if sizes else "–", theirs.get("instance_size_range", "")
        ),
        "vocabulary": Fact(f"{len(stats.vocabulary):,}", theirs.get("vocabulary", "")),
    }


def _mean(stats: SetStats, measure: str) -> str:
    """With n where not every expression has the value."""
    estimate = estimated(stats, measure)
    text = shown(estimate, MEASURES[measure][1])
    partly = estimate is not None and 0 < estimate.n < stats.expressions
    return f"{text} (n {estimate.n:,})" if partly and estimate else text


def differences(measured: Sequence[SetStats]) -> Table:
    """Each two sets in each mean that both know; no line for a single set."""
    found = compared(measured)
    lines = []
    for measure, each in found:
        title, share = MEASURES[measure]
        values = {
            "first": Fact(shown(each.first, share)),
            "second": Fact(shown(each.second, share)),
            "difference": Fact(shown(each.difference, share, signed=True)),
            "p": Fact(p_value(each.p_holm)),
            "n": Fact(f"{each.first.n:,} / {each.second.n:,}"),
            "images": Fact(f"{each.first.images:,} / {each.second.images:,}"),
        }
        lines.append(Line((title, each.a, each.b), values, title, ranked=False))
    columns = (
        Column("first", "first"),
        Column("second", "second"),
        Column("difference", "difference"),
        Column("p", "p (Holm)"),
        Column("n", "expressions", "first / second"),
        Column("images", "images", "first / second"),
    )
    heads = ("Mean", "First", "Second")
    notes = (APART.format(n=len(found)),)
    return Table("differences", "Differences between data sets", heads, columns, tuple(lines), notes=notes)
