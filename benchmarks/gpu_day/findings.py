"""What the records of a run come to: accuracy, noise floor, and how far two engines agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.engines.runs import Key, Rows, answered, summaries
from refadv_ablate.boxes import Box, iou
from refadv_ablate.types import ORIGINAL

CLOSE = 0.9
"""IoU of two boxes that are taken for the same."""
REPEATED = "repeat"


def of_run(out: Path) -> dict[str, Any]:
    """Of each operator: both Acc@0.5 and Δ with intervals, and counts; engines; the noise floor."""
    found: dict[str, Any] = {"operators": {}, "engines": []}
    for summary in summaries(out):
        delta = summary["deltas"]["acc50"]
        found["operators"][summary["operator"]] = {
            **{side: delta[side] for side in ("original", "perturbed", "delta")},
            "planned": summary["planned"],
            "counts": summary["counts"],
            "warnings": summary["warnings"],
        }
        engines = summary["details"].get("engines", {}).values()
        found["engines"] = sorted({*found["engines"], *(name for side in engines for name in side)})
    rows = answered(out)
    found["noise"] = between(_condition(rows, ORIGINAL), _condition(rows, REPEATED))
    return found


def _condition(rows: Rows, condition: str) -> Rows:
    return {(key[0], "", key[2]): row for key, row in rows.items() if key[1] == condition}


def between(one: Rows, two: Rows) -> dict[str, int]:
    """Of the questions that both answered: same text, same box (IoU of 0.9 and more, or none in both), and
    correct at IoU 0.5 in the first or the second alone. n_one, n_two: answers of each."""
    pairs = [(one[key], two[key]) for key in one.keys() & two.keys() if _there(one, key) and _there(two, key)]
    hits = [(_hit(a), _hit(b)) for a, b in pairs]
    return {
        "n": len(pairs),
        "n_one": sum(_there(one, key) for key in one),
        "n_two": sum(_there(two, key) for key in two),
        "texts": sum(a["text"] == b["text"] for a, b in pairs),
        "boxes": sum(_same_box(a["predicted"], b["predicted"]) for a, b in pairs),
        "first_alone": sum(a and not b for a, b in hits),
        "second_alone": sum(b and not a for a, b in hits),
    }


def _there(rows: Rows, key: Key) -> bool:
    return rows[key]["outcome"] != "missing"


def _hit(row: Mapping[str, Any]) -> bool:
    return bool(row["iou"] is not None and row["iou"] >= 0.5)


def _same_box(a: list[float] | None, b: list[float] | None) -> bool:
    return a is b is None or (a is not None and b is not None and iou(Box(*a), Box(*b)) >= CLOSE)


def share(some: int, n: int) -> str:
    """`k of n [low, high]` in percent, Wilson's interval at 95% over the questions."""
    from scipy.stats import binomtest

    if not n:
        return "none"
    span = binomtest(some, n).proportion_ci(method="wilson")
    return f"{some:,} of {n:,} [{span.low:.1%}, {span.high:.1%}]"
