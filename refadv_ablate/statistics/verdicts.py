"""What may be said of a Δ in words: no more than its interval and its test both allow."""

from __future__ import annotations

from typing import Literal

from refadv_ablate.statistics.formatting import p_value, points
from refadv_ablate.types import Delta

ALPHA = 0.05
TOO_FEW = 10
"""With fewer effective images nothing is decided."""

Verdict = Literal["falls", "rises", "unchanged", "not told apart", "too few images", "disagree", "none"]


def p_of(delta: Delta) -> float | None:
    """The adjusted p where a family was declared, otherwise the raw one."""
    return delta.p if delta.p_holm is None else delta.p_holm


def verdict(delta: Delta) -> Verdict:
    """Falls and rises need an interval without 0 and p < 0.05; unchanged means not one answer changed."""
    change = delta.delta
    if change.value is None:
        return "none"
    if not delta.right_to_wrong and not delta.wrong_to_right:
        return "unchanged"
    if change.low is None or change.high is None or (change.effective or change.images) < TOO_FEW:
        return "too few images" if change.images < TOO_FEW or change.low is not None else "none"
    clear = change.low > 0 or change.high < 0
    p = p_of(delta)
    if p is None:
        return "none"
    if clear and p < ALPHA:
        return "falls" if change.value < 0 else "rises"
    return "not told apart" if not clear else "disagree"


def disagreement(delta: Delta) -> str:
    """A sentence where the raw p and the 95% interval say different things, else nothing."""
    low, high = delta.delta.low, delta.delta.high
    if low is None or high is None or delta.p is None:
        return ""
    clear = low > 0 or high < 0
    if clear == (delta.p < ALPHA):
        return ""
    where = "leaves 0 out" if clear else "holds 0"
    return (
        f"{delta.metric}: the 95% interval {where} while p is {p_value(delta.p)}: they rest on different "
        "approximations and part near the border; take this Δ as undecided."
    )


def ruled_out(delta: Delta) -> str:
    """The equivalence statement of a Δ that can't be told from 0: what change its interval excludes."""
    low, high = delta.delta.low, delta.delta.high
    if low is None or high is None:
        return ""
    fall, rise = points(max(0.0, -low)), points(max(0.0, high))
    return f"a fall of more than {fall} and a rise of more than {rise} points are ruled out"
