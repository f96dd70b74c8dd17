"""What an experiment log is told of a comparison: names, numbers and tables, free of any tracker.

One scheme for metrics: `acc50/delta`, one folder deep, so that none is ever the folder of another.
Names keep to letters, digits, underscore, dot, dash and slash, which every tracker and file system takes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote, urlencode

from refadv_ablate.masking import censored, secrets
from refadv_ablate.statistics.formatting import UNREAD, operator_name, p_value, points, with_interval
from refadv_ablate.statistics.profile import findings, is_profile
from refadv_ablate.storage.jsonl import read_json
from refadv_ablate.tracking import views
from refadv_ablate.tracking.interface import CellInfo
from refadv_ablate.types import METRICS, Comparison, Delta, Json

__all__ = ["censored", "secrets"]

MAX_DIFFERENCES = 30
"""Differences that a sweep's own run logs; more are in its tables."""
MOST_SETTINGS = 90
"""Settings of a cell that are logged; config.yaml has all."""
MOST_COMPARED = 50
"""Cells in one address: browsers and the page itself get slow beyond."""
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
    """`bow · internvl3`, with what else was swept: the pages cut the end, so what differs most is first."""
    more = {"data": cell.data, "prompt": cell.prompt, "seed": f"seed {cell.seed}"}
    return " · ".join([cell.operator, cell.model, *(more[key] for key in extra)])


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


def settings(c: Comparison) -> dict[str, str]:
    """What a difference may come from: the composed settings by dotted key, the engine that answered, a size.

    The pages draw the first of the parameters that differ, by name: model and perturb come before these.
    """
    known: Mapping[str, Json] = c.details.get("settings") or {}
    found = {"settings.engine": engines(c), "size": str(known.get("model.size") or "")}
    found |= {f"settings.{safe(key)}": str(value) for key, value in known.items() if value is not None}
    told = {key: censored(value)[:LIMIT_SHOWN] for key, value in found.items() if value}
    return dict(list(told.items())[:MOST_SETTINGS])


OWN = ("model", "perturb", "data", "prompt", "seed", "limit", "size")
"""Parameters that name a cell; settings tell apart what they don't."""


def differing(params: Sequence[Mapping[str, str]]) -> list[str]:
    """Parameters that tell runs apart: model and perturb always, settings only among runs of one name."""
    groups: dict[tuple[str | None, ...], list[Mapping[str, str]]] = {}
    for each in params:
        groups.setdefault(tuple(each.get(name) for name in OWN), []).append(each)
    found = ["model", "perturb", *(name for name in OWN if len({each.get(name) for each in params}) > 1)]
    for group in groups.values():
        names = dict.fromkeys(name for each in group for name in each)
        found += [name for name in names if len({each.get(name) for each in group}) > 1]
    return list(dict.fromkeys(found))


def title(c: Comparison, comparisons: Sequence[Comparison]) -> str:
    """A cell's name once its sweep is known: perturbation and model first, then only what differs."""
    more = [getattr(c, key) for key in ("data", "prompt") if len({getattr(o, key) for o in comparisons}) > 1]
    return " · ".join([operator_name(c), c.model, *more])


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────


def metrics(c: Comparison) -> dict[str, float]:
    """The numbers that one compares by, to four digits; summary.json has all of them, exactly.

    What can't be had is left out, never NaN and never 0.
    """
    found: dict[str, float | None] = {}
    for name in METRICS:
        if name in c.deltas:
            of_delta = _of_delta(c.deltas[name], name == "acc50")
            found |= {f"{name}/{key}": value for key, value in of_delta.items()}
    found |= _scores(c)
    found |= _counts(c)
    found |= {f"cost/{name}": _number(c.details.get(name)) for name in ("usd", "seconds")}
    return finite(found)


def finite(values: Mapping[str, float | None]) -> dict[str, float]:
    """Those that are numbers: fractions to four digits, 0.7 − 0.5 as 0.2; a small p is not made 0."""
    return {key: _rounded(float(v)) for key, v in values.items() if v is not None and math.isfinite(v)}


def _rounded(value: float) -> float:
    return round(value, 4) if abs(value) >= 0.001 else float(f"{value:.2g}")


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _of_delta(delta: Delta, whole: bool) -> dict[str, float | None]:
    short = {
        "delta": delta.delta.value,  # first: comparisons of runs open on the first metric
        "original": delta.original.value,
        "perturbed": delta.perturbed.value,
    }
    more = {
        "delta_ci_low": delta.delta.low,
        "delta_ci_high": delta.delta.high,
        "p": delta.p,
        "p_holm": delta.p_holm,
        "right_to_wrong": delta.right_to_wrong,
        "wrong_to_right": delta.wrong_to_right,
    }
    return short | more if whole else {"delta": delta.delta.value}


def _scores(c: Comparison) -> dict[str, float | None]:
    """The scores that stand for the cell in the profile, such as `understanding/youden`, with intervals."""
    found: dict[str, float | None] = {}
    for finding in findings([c]) if is_profile([c]) else []:
        name, value = finding.headline.name, finding.headline.estimate
        found |= {
            f"understanding/{name}": value.value,
            f"understanding/{name}_ci_low": value.low,
            f"understanding/{name}_ci_high": value.high,
        }
    return found


def _counts(c: Comparison) -> dict[str, float | None]:
    found: dict[str, float | None] = {"n/paired": c.paired, "n/images": c.images}
    for arm, counts in c.counts.items():
        found[f"n/missing_{safe(arm)}"] = counts.get("missing", 0)
        found[f"n/unparsed_{safe(arm)}"] = sum(counts.get(kind, 0) for kind in UNREAD)
    found["n/unchanged"] = c.counts.get("perturbed", {}).get("unchanged", 0)
    return found


def parent_metrics(comparisons: Sequence[Comparison], failures: int) -> dict[str, float]:
    """How many cells there are; their numbers are in their own runs and in the sweep's table."""
    return {"n/cells": float(len(comparisons)), "n/failed": float(failures)}


def differences(folder: Path) -> dict[str, float]:
    """Differences of Δ between models or data sets, as the sweep's page left them; of few, so that the list

    of metrics stays short enough to read. Names say of what both sides share only what isn't always the same.
    """
    path = folder / "contrasts.json"
    rows = read_json(path).get("contrasts", []) if path.is_file() else []
    kinds = [[r for r in rows if (r["kind"], r["quantity"]) == (k, "delta")] for k in ("model", "data")]
    found: dict[str, float | None] = {}
    for own in kinds if sum(map(len, kinds)) <= MAX_DIFFERENCES else []:
        for row, where in zip(own, _apart([row["where"] for row in own]), strict=True):
            name = "--".join(filter(None, (f"{row['second']}-{row['first']}", where)))
            found[unused(metric("diff_acc50", name), found)] = row["difference"]
    return finite(found)


def _apart(places: Sequence[str]) -> list[str]:
    """`shapes · direct · bow` as `bow` where all of them are on shapes and direct."""
    parts = [place.split(" · ") for place in places]
    shared = set(parts[0]).intersection(*parts[1:]) if parts else set()
    return ["-".join(word for word in each if word not in shared) for each in parts]


def labels(comparisons: Sequence[Comparison]) -> list[str]:
    """`operator--model`, with data and prompt where the cells differ in them, each unlike the others."""
    found: list[str] = []
    for c in comparisons:
        parts = (safe(part) for part in title(c, comparisons).split(" · "))
        found.append(unused("--".join(parts), found))
    return found


def unused(name: str, taken: Iterable[str]) -> str:
    """The name, with a number behind it if it is taken already."""
    names, number, free = set(taken), 1, name
    while free in names:
        number += 1
        free = f"{name}-{number}"
    return free


def addresses(
    server: str, experiment: str, parent: str, cells: Sequence[str], view: str | None = None
) -> list[tuple[str, str]]:
    """Where the pages of a sweep are on an MLflow server: (what they show, address).

    view: the name of a saved view of the run list; without one the address says what it can by itself.
    """
    here = f"{server}/#/experiments/{experiment}/runs"
    found = [
        ("the newest sweep", f"{here}/{parent}"),
        ("its table", f"{here}/{parent}/artifacts/summary.html"),
    ]
    if 1 < len(cells) <= MOST_COMPARED:
        runs, experiments = quote(json.dumps(list(cells))), quote(json.dumps([experiment]))
        compared = f"{server}/#/compare-runs?runs={runs}&experiments={experiments}"
        found.insert(0, ("its cells side by side", compared))
    if view is None:
        only = {
            "searchFilter": "tags.`refadv.kind` = 'cell'",
            "orderByKey": "metrics.`acc50/delta`",
            "orderByAsc": "true",
        }
        return [*found, ("all cells, the largest loss first", f"{here}?{urlencode(only)}")]
    return [
        ("its cells with Δ, interval and n", views.address(server, experiment, view)),
        ("their charts", views.address(server, experiment, view, "CHART")),
        ("their answers, example by example", views.address(server, experiment, view, "ARTIFACT")),
        *found,
        ("all cells, the largest loss first", views.address(server, experiment, views.ALL)),
    ]


# ── tables ──────────────────────────────────────────────────────────────────────────────────────

NUMBERS = ("Δ [95% interval]", "original", "perturbed", "p", "p (Holm)", "pairs")
SHOWN = (
    "acc50/delta",
    "acc50/delta_ci_low",
    "acc50/delta_ci_high",
    "acc50/original",
    "acc50/perturbed",
    "acc50/p_holm",
    "n/paired",
    "n/images",
)
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
        marks = re.sub(r"([|\\`*_\[\]])", r"\\\1", " ".join(text.split()))
        return marks.replace("<", "&lt;").replace(">", "&gt;")  # an escaped < is shown with its backslash

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


def cells_table(comparisons: Sequence[Comparison]) -> Json:
    """The cells of a sweep as columns and data, which the pages show as a table."""
    rows = []
    for c, name in zip(comparisons, labels(comparisons), strict=True):
        found = metrics(c)
        rows.append([name, c.model, c.data, c.prompt, operator_name(c), *(found.get(key) for key in SHOWN)])
    return {"columns": ["cell", "model", "data", "prompt", "perturb", *SHOWN], "data": rows}


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
