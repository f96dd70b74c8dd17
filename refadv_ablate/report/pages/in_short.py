"""In short: what was found, in plain sentences that interval and test both allow, the strongest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refadv_ablate.report.loading.contrasting import Family
from refadv_ablate.statistics.contrasts import Contrast
from refadv_ablate.statistics.formatting import interval, operator_name, p_holm, p_value, points
from refadv_ablate.statistics.verdicts import ALPHA, ruled_out, verdict
from refadv_ablate.types import Comparison, Estimate

MOST_HEADLINES = 6
"""Cells that are told one by one; of more, how many fell, and the strongest."""
MOST_STRONG, MOST_DIFFERENCES = 4, 4


@dataclass(frozen=True, slots=True)
class Sentence:
    """One finding, and the page of the examples behind it where there is one."""

    text: str
    link: str = ""


def in_short(
    comparisons: Sequence[Comparison], families: Sequence[Family], galleries: Sequence[tuple[str, str]]
) -> list[Sentence]:
    """Of the cells and of the differences between them; `galleries` are (folder, address)."""
    pages = {name.rsplit("-", 1)[-1]: address for name, address in galleries}
    ordered = sorted(comparisons, key=lambda c: -_strength_of(c))
    found = []
    if len(comparisons) > MOST_HEADLINES:
        found += [Sentence(text) for text in headlines(comparisons)]
        ordered = [c for c in ordered if _strength_of(c) > 0][:MOST_STRONG]
    found += [Sentence(headline(c), _page(c, pages)) for c in ordered]
    return found + _differences(families)


def _page(comparison: Comparison, pages: Mapping[str, str]) -> str:
    return pages.get(str(comparison.details.get("hash", ""))[:8], "")


def _strength(estimate: Estimate) -> float:
    """How far the interval stays from 0."""
    if estimate.low is None or estimate.high is None:
        return 0.0
    return max(0.0, estimate.low, -estimate.high)


def _strength_of(comparison: Comparison) -> float:
    delta = comparison.deltas.get("acc50")
    return _strength(delta.delta) if delta and verdict(delta) in ("falls", "rises") else 0.0


def _differences(families: Sequence[Family]) -> list[Sentence]:
    """Those of models and of data: what papers claim. Of the others the tables speak."""
    claims = [
        each
        for family in families
        if family.kind in ("model", "data") or len(families) == 1
        for each in family.contrasts
        if each.quantity == "delta"
    ]
    claims.sort(key=lambda each: -_strength(each.difference))
    more = len(claims) - MOST_DIFFERENCES
    rest = [Sentence(f"{more} more differences are in the tables.")] if more > 0 else []
    return [Sentence(sentence(each)) for each in claims[:MOST_DIFFERENCES]] + rest


def sentence(each: Contrast) -> str:
    """What one difference of Δ allows to say, and no more."""
    change = each.difference
    if change.value is None:
        return f"{each.b} against {each.a} ({each.where}): no difference ({change.note})."
    size = f"{points(change.value, signed=True)} {interval(change)} points".replace("  ", " ")
    if change.low is None or change.high is None or each.p is None:
        return f"{each.b} against {each.a} ({each.where}): {size}; {change.note}."
    p = each.p if each.p_holm is None else each.p_holm
    told = f"difference of Δ {size}, p {p_value(p)}"
    if p >= ALPHA or change.low <= 0 <= change.high:
        return f"{each.b} against {each.a} ({each.where}): the difference can't be told from 0; {told}."
    more = "loses less" if change.value > 0 else "loses more"
    return f"{each.b} {more} than {each.a} ({each.where}): {told}."


def headline(comparison: Comparison) -> str:
    """One sentence on the main Δ, without more certainty than there is."""
    delta = comparison.deltas.get("acc50")
    who = f"{comparison.model} on {comparison.data}"
    if delta is None or delta.delta.value is None:
        return f"{operator_name(comparison)}, {who}: no Δ ({delta.delta.note if delta else 'not computed'})."
    change, bounds = delta.delta, interval(delta.delta)
    size = f"Δ {points(change.value or 0, signed=True)} {bounds or '(no interval)'} points"
    said = verdict(delta)
    if said in ("unchanged", "none"):
        return f"{operator_name(comparison)}, {who}: {size}; {change.note or 'no test'}."
    words = {
        "falls": "accuracy falls",
        "rises": "accuracy rises",
        "too few images": f"too few images to decide ({change.images:,}; p {p_holm(delta)})",
        "disagree": f"undecided: the interval leaves 0 out, the test doesn't (p {p_holm(delta)})",
        "not told apart": f"no change that can be told from chance (p {p_holm(delta)}; {ruled_out(delta)})",
    }
    return f"{operator_name(comparison)}, {who}: {words[said]}, {size}."


def headlines(comparisons: Sequence[Comparison]) -> list[str]:
    """A sentence for each, or, of many, how many fell, rose, and did neither."""
    sentences = [headline(c) for c in comparisons]
    if len(sentences) <= MOST_HEADLINES:
        return sentences
    counts = Counter(verdict(c.deltas["acc50"]) if "acc50" in c.deltas else "none" for c in comparisons)
    rest = (
        ("not told apart", f"no change can be told from chance (p ≥ {ALPHA}, Holm)"),
        ("unchanged", "not one answer changed"),
        ("too few images", "there are too few images to decide"),
        ("disagree", "interval and test disagree"),
        ("none", "there is no Δ or no test"),
    )
    others = [f"in {counts[key]} {words}" for key, words in rest if counts[key]]  # type: ignore[index]
    moved = f"Of {len(sentences)} cells accuracy falls in {counts['falls']}, rises in {counts['rises']}"
    return ["; ".join([moved, *others]) + "."]
