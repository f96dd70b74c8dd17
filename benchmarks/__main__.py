"""`make bench`: runs every `bench_*.py` here and writes RESULTS.md with machine and n.

Each module has `run() -> list[dict]` with rows of what, against, ours, theirs, ratio, goal, met and n.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
COLUMNS = ("what", "against", "ours", "theirs", "ratio", "goal", "met", "n")


def main(names: list[str]) -> int:
    modules = sorted(path.stem for path in HERE.glob("bench_*.py"))
    chosen = [name for name in modules if not names or any(word in name for word in names)]
    rows = []
    for name in chosen:
        print(f"— {name}", flush=True)
        for row in importlib.import_module(f"benchmarks.{name}").run():
            rows.append(row)
            print("  " + " · ".join(f"{key} {row[key]}" for key in COLUMNS if key in row), flush=True)
    keep(rows)
    return 0 if all(row.get("met", True) not in (False, "no") for row in rows) else 1


def keep(rows: list[dict[str, object]]) -> None:
    """Writes RESULTS.md; rows that were not measured now stay as they are."""
    path = HERE / "RESULTS.md"
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = [line for line in old if line.startswith("| ") and not line.startswith("| what")]
    lines = {tuple(line.split(" | ")[:2]): line for line in known}
    for row in rows:
        line = "| " + " | ".join(str(row.get(key, "")) for key in COLUMNS) + " |"
        lines[tuple(line.split(" | ")[:2])] = line
    text = [
        "# Benchmarks",
        "",
        f"{time.strftime('%Y-%m-%d')} · {os.cpu_count()} cores · {platform.machine()} ·"
        f" Python {platform.python_version()}."
        " Times are of one machine on one day; the ratios, each within one run, are what counts.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *lines.values(),
        "",
    ]
    path.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
