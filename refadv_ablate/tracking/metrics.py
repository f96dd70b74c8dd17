"""What an experiment log is told of a comparison: names, numbers and tables, free of any tracker.

One scheme for metrics: `acc50/delta`, one folder deep, so that none is ever the folder of another.
Names keep to letters, digits, underscore, dot, dash and slash, which every tracker and file system takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from refadv_ablate.masking import censored, secrets
from refadv_ablate.statistics.formatting import UNREAD, operator_name, p_value, points, with_interval
from refadv_ablate.storage.jsonl import read_json
from refadv_ablate.tracking.interface import CellInfo
from refadv_ablate.types import METRICS, Comparison, Delta, Json

__all__ = ["censored", "secrets"]

MAX_DIFFERENCES = 30
"""Differences that a sweep's own run logs; more are in its tables."""
MAX_PARENT_DELTAS = 100
"""Cells whose Δ a sweep's own run repeats; a larger sweep has them in its table."""
LIMIT_SHOWN = 500
"""Characters of a parameter; trackers cut longer ones silently."""
_WORDS = {"@": "_at_", "+": "_plus", "%": "_percent", "=": "_eq_", "<": "_lt_", ">": "_gt_", "&": "_and_"}


# ── names ───────────────────────────────────────────────────────────────────────────────────────


def safe(name: str) -> str:
    """A name as one path component of [A-Za-z0-9_.-]: refcoco+ → refcoco_plus, Acc@0.5 → Acc_at_0.5.

    Letters of other scripts become their code points, so that different names stay different.
    """
    out = "".join(
        _WORDS.get(c) or (c if c.isascii() else f"u{ord(c):x}" if c.isalnum() else "_") for c in name
    )
    out = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_.-]", "_", out)).strip("_.")
    return out[:100] or "x"


def metric(group: str, name: str) -> str:
    """The key of a metric, one folder deep."""
    return f"{safe(group)}/{safe(name)}"


def swept(words: Sequence[str]) -> list[str]:
    """Which of data, prompt and seed a command varies, besides model and operator."""
    if any(word.startswith(("paper=", "robustness=", "+paper=", "+robustness=")) for word in words):
        return ["data", "prompt"]
    several = {word.split("=", 1)[0].lstrip("+") for word in words if "," in word or "range(" in word}
    return [
        key for key in ("data", "prompt", "seed") if any(s == key or s.startswith(f"{key}.") for s in several)
    ]


def child_name(cell: CellInfo, extra: Iterable[str]) -> str:
    """`internvl3 · bow`, with what else was swept: `internvl3 · bow · refcoco_val · seed 1`."""
    more = {"data": cell.data, "prompt": cell.prompt, "seed": f"seed {cell.seed}"}
    return " · ".join([cell.model, cell.operator, *(more[key] for key in extra)])


def params(cell: CellInfo) -> dict[str, str]:
    """Short values to filter and group by."""
    values = {
        "model": cell.model,
        "data": cell.data,
        "prompt": cell.prompt,
        "perturb": cell.operator,
        "seed": str(cell.seed),
        "limit": "all" if cell.limit is None else str(cell.limit),
    }
    return {key: value[:LIMIT_SHOWN] for key, value in values.items()}


def engines(c: Comparison) -> str:
    """What answered, with version: `vllm 0.32.0`; "" where that isn't known."""
    sides = c.details.get("engines", {}).values()
    return ", ".join(sorted({engine for side in sides for engine in side}))[:LIMIT_SHOWN]


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────


def metrics(c: Comparison) -> dict[str, float]:
    """At most 40 finite numbers; what can't be had is left out, never NaN and never 0."""
    found: dict[str, float | None] = {}
    for name in METRICS:
        if name in c.deltas:
            found |= {
                f"{name}/{key}": value for key, value in _of_delta(c.deltas[name], name == "acc50").items()
            }
    if "acc50" in c.parsed_only:
        parsed = c.parsed_only["acc50"].delta
        found |= {
            "acc50_parsed/delta": parsed.value,
            "acc50_parsed/delta_ci_low": parsed.low,
            "acc50_parsed/delta_ci_high": parsed.high,
        }
    found |= _counts(c)
    found |= {f"cost/{name}": _number(c.details.get(name)) for name in ("usd", "seconds")}
    return finite(found)


def finite(values: Mapping[str, float | None]) -> dict[str, float]:
    """Those that are numbers, to ten digits: 0.7 − 0.5 reads as 0.2."""
    return {key: float(f"{v:.10g}") for key, v in values.items() if v is not None and math.isfinite(v)}


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _of_delta(delta: Delta, whole: bool) -> dict[str, float | None]:
    short = {
        "delta": delta.delta.value,  # first: comparisons of runs open on the first metric
        "original": delta.original.value,
        "perturbed": delta.perturbed.value,
        "delta_ci_low": delta.delta.low,
        "delta_ci_high": delta.delta.high,
    }
    more = {
        "p": delta.p,
        "p_holm": delta.p_holm,
        "p_mcnemar": delta.p_mcnemar,
        "right_to_wrong": delta.right_to_wrong,
        "wrong_to_right": delta.wrong_to_right,
        "draw_sd": delta.draw_sd,
    }
    return short | more if whole else short


def _counts(c: Comparison) -> dict[str, float | None]:
    found: dict[str, float | None] = {"n/planned": c.planned, "n/paired": c.paired, "n/images": c.images}
    for arm, counts in c.counts.items():
        found[f"n/missing_{safe(arm)}"] = counts.get("missing", 0)
        found[f"n/unparsed_{safe(arm)}"] = sum(counts.get(kind, 0) for kind in UNREAD)
    perturbed = c.counts.get("perturbed", {})
    found["n/unchanged"] = perturbed.get("unchanged", 0)
    found["n/not_perturbable"] = perturbed.get("not_perturbable", 0)
    return found


def parent_metrics(comparisons: Sequence[Comparison], failures: int) -> dict[str, float]:
    """Δ at Acc@0.5 of every cell of a sweep, and how many cells there are."""
    found: dict[str, float | None] = {}
    if len(comparisons) <= MAX_PARENT_DELTAS:
        for comparison, label in zip(comparisons, labels(comparisons), strict=True):
            delta = comparison.deltas.get("acc50")
            found[unused(metric("delta_acc50", label), found)] = delta.delta.value if delta else None
    found |= {"n/cells": len(comparisons), "n/failed": failures}
    return finite(found)


def differences(folder: Path) -> dict[str, float]:
    """Differences of Δ between models or data sets, as the sweep's page left them; of few, so that the list

    of metrics stays short enough to read.
    """
    path = folder / "contrasts.json"
    rows = read_json(path).get("contrasts", []) if path.is_file() else []
    rows = [row for row in rows if row["kind"] in ("model", "data") and row["quantity"] == "delta"]
    found: dict[str, float | None] = {}
    for row in rows if len(rows) <= MAX_DIFFERENCES else []:
        name = f"{row['second']}-{row['first']}--{row['where'].replace(' · ', '-')}"
        found[unused(metric("diff_acc50", name), found)] = row["difference"]
    return finite(found)


def labels(comparisons: Sequence[Comparison]) -> list[str]:
    """`model--operator`, with data and prompt where the cells differ in them."""
    data = len({c.data for c in comparisons}) > 1
    prompt = len({c.prompt for c in comparisons}) > 1
    return [
        "--".join(safe(part) for part in (c.model, operator_name(c), *[c.data] * data, *[c.prompt] * prompt))
        for c in comparisons
    ]


def unused(name: str, taken: Iterable[str]) -> str:
    """The name, with a number behind it if it is taken already."""
    names, number, free = set(taken), 1, name
    while free in names:
        number += 1
        free = f"{name}-{number}"
    return free


# ── tables ──────────────────────────────────────────────────────────────────────────────────────

NUMBERS = ("Δ [95% interval]", "original", "perturbed", "p", "p (Holm)", "pairs")
TITLE = "Acc@0.5, original against perturbed on the same examples"


@dataclass(frozen=True)
class Table:
    """Cells as text: `caption` says what they all share, `header` and `rows` the rest."""

    caption: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    labels: int
    """How many of the first columns are names, not numbers."""


def table(comparisons: Sequence[Comparison], name: str = "acc50") -> Table:
    """One row a cell, in percentage points; data and prompt are columns only where they differ."""
    names = {
        "model": [c.model for c in comparisons],
        "data": [c.data for c in comparisons],
        "prompt": [c.prompt for c in comparisons],
        "operator": [operator_name(c) for c in comparisons],
    }
    shared = [key for key in ("data", "prompt") if len(set(names[key])) == 1]
    own = [key for key in names if key not in shared]
    rows = [(*(names[key][i] for key in own), *_numbers(c, name)) for i, c in enumerate(comparisons)]
    caption = TITLE + "".join(f"; {key}: {names[key][0]}" for key in shared)
    return Table(caption, (*own, *NUMBERS), rows, len(own))


def _numbers(c: Comparison, name: str) -> tuple[str, ...]:
    delta = c.deltas.get(name)
    if delta is None:
        return (*("n/a",) * 5, str(c.paired))
    return (
        with_interval(delta.delta, signed=True),
        _points(delta.original.value),
        _points(delta.perturbed.value),
        p_value(delta.p),
        p_value(delta.p_holm),
        str(c.paired),
    )


def _points(value: float | None) -> str:
    return "n/a" if value is None else points(value)


def markdown(comparisons: Sequence[Comparison], failures: Sequence[tuple[str, str]]) -> str:
    """The table of a sweep and what failed."""

    def plain(text: str) -> str:
        return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", " ".join(text.split()))

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(map(plain, cells)) + " |"

    text = ["No cell has a result."]
    if comparisons:
        shown = table(comparisons)
        kinds = "|" + "---|" * shown.labels + "---:|" * (len(shown.header) - shown.labels)
        text = [plain(shown.caption), "", line(shown.header), kinds, *map(line, shown.rows)]
    if failures:
        text += [
            "",
            f"**{len(failures)} failed**",
            "",
            line(("cell", "reason")),
            "|---|---|",
            *map(line, failures),
        ]
    return "\n".join(text) + "\n"


def html(comparisons: Sequence[Comparison], failures: Sequence[tuple[str, str]], title: str) -> str:
    """The same as a page that needs nothing else."""

    def cells(tag: str, row: Sequence[str], right: int) -> str:
        marks = (" class=r" if i >= right else "" for i in range(len(row)))
        parts = (f"<{tag}{m}>{escape(value)}</{tag}>" for m, value in zip(marks, row, strict=True))
        return f"<tr>{''.join(parts)}</tr>"

    def grid(header: Sequence[str], body: Sequence[Sequence[str]], right: int) -> str:
        return (
            f"<table>{cells('th', header, right)}{''.join(cells('td', row, right) for row in body)}</table>"
        )

    shown = table(comparisons)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>{escape(title)}</title>",
        "<style>body{font:14px/1.5 system-ui,sans-serif;margin:1.5rem;overflow-x:auto}h1{font-size:1.1rem}",
        "table{border-collapse:collapse}",
        "th,td{padding:.25rem .7rem;text-align:left;border-bottom:1px solid #ddd;white-space:nowrap}",
        "td:last-child{white-space:normal}.r{text-align:right;font-variant-numeric:tabular-nums}</style>",
        f"<h1>{escape(title)}</h1><p>{escape(shown.caption)}</p>",
        grid(shown.header, shown.rows, shown.labels),
    ]
    if failures:
        parts.append(f"<h1>{len(failures)} failed</h1>{grid(('cell', 'reason'), failures, 9)}")
    return "".join(parts) + "</html>\n"
