"""In short: what was found, in plain sentences that interval and test both allow, the strongest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from refadv_ablate.report.loading.contrasting import Family
from refadv_ablate.statistics import profile
from refadv_ablate.statistics.contrasts import Contrast
from refadv_ablate.statistics.formatting import (
    cell_name,
    interval,
    operator_name,
    p_holm,
    p_value,
    points,
    with_interval,
)
from refadv_ablate.statistics.profile import ordinary
from refadv_ablate.statistics.verdicts import ALPHA, ruled_out, verdict
from refadv_ablate.types import Comparison, Estimate

MOST_HEADLINES = 6
"""Cells that are told without a count of how many fell; models that are told one by one."""
MOST_CLAUSES, MOST_DIFFERENCES = 4, 4


@dataclass(frozen=True, slots=True)
class Sentence:
    """One finding, and the pages of the examples behind it: (what they show, address)."""

    text: str
    links: tuple[tuple[str, str], ...] = ()


def in_short(
    comparisons: Sequence[Comparison], families: Sequence[Family], pages: Mapping[str, str]
) -> list[Sentence]:
    """A sentence for each model, or of many models one for each perturbation; then what differs between them.

    `pages` are the galleries' addresses by `cell_name`.
    """
    own = _own_scores(comparisons, pages)
    comparisons = ordinary(comparisons)
    found = [Sentence(counted(comparisons))] if len(comparisons) > MOST_HEADLINES else []
    groups = _groups(comparisons)
    if len(groups) > MOST_HEADLINES:
        operators = dict.fromkeys(map(operator_name, comparisons))
        found += [_range(name, [c for c in comparisons if operator_name(c) == name]) for name in operators]
        groups = groups[:MOST_CLAUSES]
    several = len({c.prompt for c in comparisons}) > 1
    return found + [_of_model(group, pages, several) for group in groups] + own + _differences(families)


def _own_scores(comparisons: Sequence[Comparison], pages: Mapping[str, str]) -> list[Sentence]:
    """Where no accuracy could fall: what the score of the expectation says, of each result or as a range."""
    told = [f for f in profile.findings(comparisons) if profile.on_old_place(f.comparison)]
    if len(told) <= MOST_HEADLINES:
        return [_own_score(f, pages) for f in told]
    groups: dict[tuple[str, str], list[profile.Finding]] = {}
    for f in told:
        groups.setdefault((operator_name(f.comparison), f.headline.name), []).append(f)
    return [_own_range(*key, group) for key, group in groups.items()]


def _own_score(f: profile.Finding, pages: Mapping[str, str]) -> Sentence:
    c, signed = f.comparison, f.headline.name in profile.SIGNED
    score = f"{profile.NAMES[f.headline.name]} {with_interval(f.headline.estimate, signed=signed)}"
    links = ((operator_name(c), pages[cell_name(c)]),) if cell_name(c) in pages else ()
    return Sentence(f"{c.model} on {c.data} under {operator_name(c)}: {score}. {f.sentence}", links)


def _own_range(operator: str, score: str, found: Sequence[profile.Finding]) -> Sentence:
    """Over many models: from which score to which."""
    ordered = sorted(found, key=lambda f: f.headline.estimate.value or 0.0)
    ends = [
        f"{points(f.headline.estimate.value or 0.0, signed=score in profile.SIGNED)} "
        f"({f.comparison.model} on {f.comparison.data})"
        for f in (ordered[0], ordered[-1])[: len(ordered)]
    ]
    return Sentence(f"{operator}, {len(found)} results: {profile.NAMES[score]} from {' to '.join(ends)}.")


def _groups(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """By model, data and prompt; in each, and among them, what stays furthest from 0 first."""
    found: dict[tuple[str, str, str], list[Comparison]] = {}
    for c in comparisons:
        found.setdefault((c.model, c.data, c.prompt), []).append(c)
    ordered = [sorted(group, key=lambda c: -_strength_of(c)) for group in found.values()]
    return sorted(ordered, key=lambda group: -_strength_of(group[0]))


def _of_model(group: Sequence[Comparison], pages: Mapping[str, str], prompts: bool) -> Sentence:
    """What one model loses under each perturbation."""
    first = group[0]
    who = f"{first.model} on {first.data}" + (f", prompt {first.prompt}" if prompts else "")
    shown = list(group[:MOST_CLAUSES])
    more = [f"{len(group) - len(shown)} more in the table"] if len(group) > len(shown) else []
    links = tuple((operator_name(c), pages[cell_name(c)]) for c in shown if cell_name(c) in pages)
    return Sentence(f"{who}: {'; '.join([*map(clause, shown), *more])}.", links)


def _range(name: str, cells: Sequence[Comparison]) -> Sentence:
    """One perturbation over many models: from which Δ to which, and what can be said of how many."""
    known = [c for c in cells if "acc50" in c.deltas and c.deltas["acc50"].delta.value is not None]
    if not known:
        return Sentence(f"{name}: no Δ in {len(cells)} results.")
    known.sort(key=lambda c: c.deltas["acc50"].delta.value or 0.0)
    ends = [known[0], known[-1]][: len(known)]
    told = " to ".join(
        f"{points(c.deltas['acc50'].delta.value or 0.0, signed=True)} ({c.model} on {c.data})" for c in ends
    )
    counts = Counter(verdict(c.deltas["acc50"]) for c in known)
    words = {
        "falls": "accuracy falls in",
        "rises": "accuracy rises in",
        "unchanged": "it is exactly unchanged, without one discordant pair, in",
        "not told apart": "no change can be told from chance in",
        "too few images": "there are too few images to decide in",
        "disagree": "interval and test disagree in",
        "none": "there is no test in",
    }
    said = "; ".join(f"{text} {counts[key]}" for key, text in words.items() if counts[key])  # type: ignore[index]
    return Sentence(f"{name}, {len(cells)} results: Δ from {told}; {said}.")


def clause(comparison: Comparison) -> str:
    """What one perturbation did, without more certainty than there is."""
    delta, name = comparison.deltas.get("acc50"), operator_name(comparison)
    if any(s.expectation == "directional" and s.estimate.n for s in comparison.scores):
        name += ", where another object is meant,"
    if delta is None or delta.delta.value is None:
        return f"no Δ under {name} ({delta.delta.note if delta else 'not computed'})"
    change = delta.delta
    size = f"Δ {points(change.value or 0, signed=True)} {interval(change)}".strip()
    amount = points(abs(change.value or 0))
    whole = f" of {points(delta.original.value)}" if delta.original.value is not None else ""
    words = {
        "falls": f"loses {amount}{whole} points under {name} ({size})",
        "rises": f"gains {amount} points under {name} ({size})",
        "unchanged": f"exactly unchanged under {name} ({change.note or 'no discordant pairs'})",
        "too few images": f"too few images to decide under {name} ({change.images:,} images; {size})",
        "disagree": f"undecided under {name}: interval and test disagree ({size}, p {p_holm(delta)})",
        "not told apart": f"no change under {name} that can be told from chance "
        f"({size}, p {p_holm(delta)}; {ruled_out(delta)})",
        "none": f"no test under {name} ({size}; {change.note or 'no interval'})",
    }
    return words[verdict(delta)]


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


def counted(comparisons: Sequence[Comparison]) -> str:
    """How many fell, rose, and did neither."""
    counts = Counter(verdict(c.deltas["acc50"]) if "acc50" in c.deltas else "none" for c in comparisons)
    rest = (
        ("not told apart", f"no change can be told from chance (p ≥ {ALPHA}, Holm)"),
        ("unchanged", "not one answer changed sides"),
        ("too few images", "there are too few images to decide"),
        ("disagree", "interval and test disagree"),
        ("none", "there is no Δ or no test"),
    )
    others = [f"in {counts[key]} {words}" for key, words in rest if counts[key]]  # type: ignore[index]
    moved = f"Of {len(comparisons)} cells accuracy falls in {counts['falls']}, rises in {counts['rises']}"
    return "; ".join([moved, *others]) + "."
