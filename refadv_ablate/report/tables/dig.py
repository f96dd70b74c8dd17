"""The DiG protocol's layout: models down, splits across, the mean of Acc@0.5, 0.75 and 0.95 in each place."""

from __future__ import annotations

from collections.abc import Iterator

from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.tables.cautions import unanswered
from refadv_ablate.report.tables.table import Column, Line, Number, Table
from refadv_ablate.statistics import comparison as stats

METRICS = (("acc50", "Acc@0.5"), ("acc75", "Acc@0.75"), ("acc95", "Acc@0.95"), ("dig_avg", "average"))
NOTE = (
    "average: mean of Acc@0.5, 0.75 and 0.95 of each example. Answers without a box count as misses. "
    "[low, high]: 95% interval, clustered by image."
)


def dig(study: Study) -> Iterator[Table]:
    """One table over all models and splits of the study, original expressions."""
    datasets = study.datasets()
    lines: dict[tuple[str, str], dict[str, Number]] = {}
    for cell, arm in study.originals():
        model = f"{cell.names.model} ({cell.variant})" if cell.variant else cell.names.model
        values = lines.setdefault((model, cell.names.prompt), {})
        for metric, _ in METRICS:
            values[f"{cell.names.data}/{metric}"] = Number(stats.accuracy(arm, metric))
    columns = tuple(
        Column(f"{data}/{metric}", title, data, best=metric == "dig_avg")
        for data in datasets
        for metric, title in METRICS
    )
    notes = (NOTE, *(said for data in datasets for said in unanswered(study, data)))
    made = tuple(Line(labels, values) for labels, values in lines.items())
    yield Table(
        "dig", "Averages over three thresholds (DiG)", ("Model", "Prompt"), columns, made, notes=notes
    )
