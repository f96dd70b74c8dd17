"""Statistics of data sets as the paper's Table 1 gives them, over annotations alone, in one pass.

Words of an expression: what white space separates and holds a letter or digit, so that hyphenated words
and contractions count once. Vocabulary: spaCy's English tokens with a letter or digit, lower case.
Instances: distinct target boxes (refs); one may have several expressions. Size: square root of the box
area in pixels. Distractors: mean over expressions for which their number is known.
"""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from refadv_ablate import assets
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.masking import censored
from refadv_ablate.statistics.data_sets import SetStats, mean, measure
from refadv_ablate.types import Data


def run(cfg: Any) -> int:
    """`stats`: prints the table and, where asked, the data report or the figures."""
    from rich.console import Console

    from refadv_ablate.data.check import report

    options = cfg.command
    chosen = list(_chosen(cfg))
    console = Console(highlight=False)
    if options.check:
        reports = [report(data) for _, parts in chosen for data in parts]
        for found in reports:
            console.print(found.text(), markup=False, soft_wrap=True)
        return int(any(found.exclusion for found in reports))
    with spacy_without_torch():
        measured = [measure(name, parts) for name, parts in chosen]
    for table in tables(measured, published() if options.published else []):
        console.print(table)
    if options.to:
        from refadv_ablate.report import data_sets

        told = shlex.join(["python", "-m", "refadv_ablate", *sys.argv[1:]])
        for path in data_sets.write(measured, Path(options.to), censored(told)):
            console.print(str(path), markup=False, soft_wrap=True)
    return 0


def _chosen(cfg: Any) -> Iterator[tuple[str, list[Data]]]:
    """(name of the row, its sets) of `sets`, or of `data` where `sets` is null."""
    if cfg.command.sets is None:
        data = assets.build(cfg.data, "data")
        yield data.name, [data]
        return
    for entry in assets.plain(cfg.command.sets):
        described = {"data": entry} if isinstance(entry, str) else dict(entry)
        name = described.pop("data", None)
        if not isinstance(name, str):
            raise UserError(f"sets: {entry!r} names no data set; write a name, or {{data: name, path: …}}")
        label = described.pop("label", None)
        splits = described.pop("split", None)
        several = splits if isinstance(splits, list) else [splits]
        parts = [_built(name, described if one is None else {**described, "split": one}) for one in several]
        yield label or "+".join(dict.fromkeys(part.name for part in parts)), parts


def _built(name: str, values: Mapping[str, Any]) -> Data:
    from omegaconf import OmegaConf

    config = assets.compose([f"data={name}"]).data
    for key, value in values.items():
        if key not in config:
            raise UserError(f"sets: data={name} has no key {key!r}; {nearest(key, map(str, config))}")
        OmegaConf.update(config, key, value)
    data: Data = assets.build(config, f"sets.{name}")
    return data


@contextmanager
def spacy_without_torch() -> Iterator[None]:
    """Lets spaCy be imported without PyTorch, which its tokeniser never uses and which takes seconds.

    Nothing changes where either is loaded already: a process that asks models keeps its PyTorch.
    """
    if "torch" in sys.modules or "spacy" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment] # the documented way to make an import fail
    try:
        import spacy  # noqa: F401 - for its effect
    finally:
        del sys.modules["torch"]
    yield


# ── the table ───────────────────────────────────────────────────────────────────────────────────


def published() -> list[Mapping[str, str]]:
    """The rows of the paper's Table 1."""
    path = assets.package_path("report/loading/published_tables/table1_statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tables(measured: Sequence[SetStats], paper: Sequence[Mapping[str, str]]) -> list[Any]:
    """A column for each set, measured; below, the published ones."""
    rows = [_cells(stats) for stats in measured]
    printed = [_table("Measured", [stats.name for stats in measured], rows)]
    if paper:
        cells = [_published_cells(row) for row in paper]
        printed.append(_table("Published (Ref-Adv, Table 1)", [row["dataset"] for row in paper], cells))
    return printed


def _table(title: str, names: Sequence[str], columns: Sequence[Mapping[str, str]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    labels = dict.fromkeys(label for column in columns for label in column)
    for label in labels:
        table.add_row(label, *(column.get(label, "–") for column in columns))
    return table


def _cells(stats: SetStats) -> Mapping[str, str]:
    sizes, found = stats.sizes, stats.agreement
    known = stats.distractors.total()
    some = "" if known in (0, stats.expressions) else f" (of {known:,})"
    cells = {
        "images": f"{len(stats.images):,}",
        "expressions": f"{stats.expressions:,}",
        "instances": f"{len(stats.instances):,}",
        "mean length (words)": _number(mean(stats.lengths), 1),
        "mean distractors": _number(mean(stats.distractors), 2) + some,
        "flagged as negation": _percent(stats.negation),
        "negation by cue rule": _percent(stats.by_rule / stats.expressions if stats.expressions else None),
        "rule: precision / recall": f"{_percent(found.precision)} / {_percent(found.recall)}"
        if found
        else "–",
        "instance size (px)": f"{sizes[0]:.0f}–{sizes[-1]:.0f}" if sizes else "–",
        "vocabulary": f"{len(stats.vocabulary):,}",
        "human-authored": f"{stats.human[True]:,} of {stats.human.total():,}" if stats.human else "–",
    }
    if stats.excluded:
        cells["excluded"] = ", ".join(f"{number:,} {kind}" for kind, number in stats.excluded.items())
    return cells


def _published_cells(row: Mapping[str, str]) -> Mapping[str, str]:
    low, _, high = row["instance_size_range"].partition("-")
    return {
        "images": f"{int(row['images']):,}",
        "instances": f"{int(row['instances']):,}",
        "mean length (words)": row["mean_length_words"],
        "mean distractors": row["mean_distractors"],
        "flagged as negation": f"{row['negation_percent']}%",
        "instance size (px)": f"{low}–{high}",
        "vocabulary": f"{int(row['vocabulary']):,}",
    }


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"
