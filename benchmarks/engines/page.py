"""What was measured, kept in measured.json, and written as tables into docs/engines.md."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.caches import Caches
from benchmarks.engines.environments import ROOT

KEPT = Path(__file__).with_name("measured.json")
PAGE = ROOT / "docs" / "engines.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass(frozen=True)
class Row:
    """One engine on one checkpoint; not_run says why there are no numbers.

    engine: as its answers name it. n: answers compared with those of transformers; texts, tokens: how many
    have the same text and the same number of generated tokens. penalty, marks: of how many the texts agree
    with a repetition penalty, and with Set-of-Marks. resumed: whether a run whose engine was killed ended
    with the same records. left: processes that were there 5 s after an end; orphans: those 5 s after a
    SIGKILL of the command alone. Seconds: to start, and of the run.
    """

    name: str
    checkpoint: str
    engine: str = ""
    n: int = 0
    texts: int = 0
    tokens: int = 0
    penalty: tuple[int, int] = (0, 0)
    resumed: bool | None = None
    killed_at: int = 0
    left: int = 0
    start_seconds: float = 0.0
    run_seconds: float = 0.0
    orphans: int = 0
    operators: tuple[str, ...] = ()
    not_run: str = ""
    note: str = ""
    marks: tuple[int, int] = (0, 0)


def keep(rows: list[Row], caches: Caches | None) -> None:
    """Adds what was measured now to what was measured before, and writes the page."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"rows": {}}
    day = time.strftime("%Y-%m-%d")
    for row in rows:
        kept["rows"][f"{row.name} | {row.checkpoint}"] = {**asdict(row), "day": day}
    if caches is not None:
        kept["caches"] = {**asdict(caches), "day": day}
    kept["machine"] = f"{os.cpu_count()} CPU cores, no GPU, {platform.machine()}"
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write(kept)


def write(kept: Mapping[str, Any]) -> None:
    """Puts the tables between the two marks of docs/engines.md."""
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    PAGE.write_text(f"{head}{BEGIN}\n{chr(10).join(tables(kept))}\n{END}{tail}", encoding="utf-8")


def tables(kept: Mapping[str, Any]) -> Iterator[str]:
    """Markdown: engines that ran, engines that didn't, caches."""
    rows = list(kept["rows"].values())
    ran = [row for row in rows if not row["not_run"]]
    days = sorted({row["day"] for row in rows})
    asked = ", ".join(sorted({operator for row in ran for operator in row["operators"]}))
    when = " and ".join(days[:: max(1, len(days) - 1)])
    where = f"{kept['machine']}, other work beside it"
    yield f"`make engines`, {when}, {where}. Greedy, float32; operators: {asked}."
    yield ""
    yield (
        "| engine | checkpoint | same text as transformers | same output tokens "
        "| same text, repetition penalty 1.3 | same text, Set-of-Marks | killed after, resumed "
        "| start | run | processes left |"
    )
    yield "|" + "---|" * 10
    yield from map(_ran, ran)
    if missing := [row for row in rows if row["not_run"]]:
        yield ""
        yield "| engine | not run, because |"
        yield "|---|---|"
        yield from (f"| {_named(row)} | {row['not_run']} |" for row in missing)
    if "caches" in kept:
        yield ""
        yield from _caches(kept["caches"])


def _named(row: Mapping[str, Any]) -> str:
    """An engine that runs one checkpoint and not another is named with the one that it doesn't."""
    return " · ".join(filter(None, (row["name"], row["checkpoint"])))


def _ran(row: Mapping[str, Any]) -> str:
    resumed = {None: "not tried", True: "equal", False: "**not equal**"}[row["resumed"]]
    killed = f"{row['killed_at']} answers: records {resumed}" if row["resumed"] is not None else resumed
    penalty, marks = (_share(row.get(name, (0, 0))) for name in ("penalty", "marks"))
    note = f" ({row['note']})" if row["note"] else ""
    start = f"{row['start_seconds']:.0f} s" if row["start_seconds"] else "in the run"
    orphans = f" ({row['orphans']} where the command alone was killed)" if row.get("orphans") else ""
    return (
        f"| {row['name']}: {row['engine']} | {row['checkpoint']} | {row['texts']:,} of {row['n']:,}{note} "
        f"| {row['tokens']:,} of {row['n']:,} | {penalty} | {marks} | {killed} "
        f"| {start} | {row['run_seconds']:.0f} s | {row['left']}{orphans} |"
    )


def _share(found: Sequence[int]) -> str:
    return f"{found[0]:,} of {found[1]:,}" if found[1] else "not tried"


def _caches(c: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"vLLM's caches on {c['requests']:,} requests about {c['images']} images ({c['prompt_tokens']:,} "
        f"prompt tokens; the cache holds {c['held']:,}), {c['day']}, each order "
        f"{len(c['orders'][0]['seconds'])} times from empty caches:"
    )
    yield ""
    yield "| order | prompt tokens found in the prefix cache | images found | seconds (median, all) |"
    yield "|---|---|---|---|"
    for order in c["orders"]:
        seconds = sorted(order["seconds"])
        yield (
            f"| {order['name']} | {order['prefix']:.1%} | {order['image']:.1%} "
            f"| {seconds[len(seconds) // 2]:.1f} ({', '.join(f'{s:.1f}' for s in seconds)}) |"
        )
    one, two = c["orders"]
    found = [_times(one[kind], two[kind]) for kind in ("prefix", "image")]
    took = _times(*(statistics.median(order["seconds"]) for order in (one, two)))
    yield f"| **{one['name']} / {two['name']}** | {' | '.join((*found, took))} |"


def _times(one: float, two: float) -> str:
    return f"{one / two:.2f} times" if two else "none found"
