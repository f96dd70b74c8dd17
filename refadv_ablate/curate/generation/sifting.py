"""Which expressions of an answer are used: each that is good alone; every other with one reason.

A reason is its kind, and after a colon what is particular to this expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refadv_ablate.curate.generation.checks import Checks, plain
from refadv_ablate.curate.generation.prompts import PER_TARGET, Made
from refadv_ablate.types import Json


def sift(
    made: Iterable[Made], checks: Checks, category: str, seen: set[str]
) -> tuple[list[Made], list[dict[str, Json]]]:
    """Those that can be used, and the others with their reason. `seen`: plain texts of the scene; grows."""
    kept: list[Made] = []
    dropped: list[dict[str, Json]] = []
    for one, reason in _judged(made, checks, category, seen):
        if reason:
            dropped.append({"expression": one.expression, "reason": reason})
        else:
            kept.append(one)
    return kept, dropped


def first_fault(made: Iterable[Made], checks: Checks, category: str) -> str:
    """What an answer is sent back for: the first expression that can't be used; "" if all can."""
    for number, (one, reason) in enumerate(_judged(made, checks, category, set()), 1):
        if reason:
            return f"expression {number} ({one.expression!r}): {reason}"
    return ""


def _judged(
    made: Iterable[Made], checks: Checks, category: str, seen: set[str]
) -> Iterator[tuple[Made, str]]:
    """Each expression with its reason, "" for one that is used."""
    used: list[tuple[str, ...]] = []
    for one in made:
        reason = one.fault or _fault(one, checks, category, used)
        if not reason and len(used) >= PER_TARGET:
            reason = f"more than {PER_TARGET} expressions were given"
        if not reason and plain(one.expression) in seen:
            reason = "it repeats another expression of the scene"
        if not reason:
            seen.add(plain(one.expression))
            used.append(one.combination)
        yield one, reason


def _fault(one: Made, checks: Checks, category: str, used: Sequence[tuple[str, ...]]) -> str:
    if one.combination and one.combination in used:
        return "its combination of discriminators is used already"
    found = checks.fault(one.expression, category)
    if found or one.polarity is None or (one.polarity == "positive" and one.negates):
        return found
    return checks.polarity_fault(one.expression, one.polarity)


def by_kind(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Dropped expressions by the kind of their reason, over rows of composed.jsonl."""
    counts: Counter[str] = Counter()
    for row in rows:
        for part in row.get("targets", (row,)):
            counts.update(kind(str(one["reason"])) for one in part.get("dropped", ()))
    return counts


def kind(reason: str) -> str:
    """A reason without what is particular to one answer."""
    return reason.partition(":")[0]
