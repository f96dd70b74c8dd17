"""What a reader should know before believing a comparison, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from refadv_ablate.parsing.scoring import rates
from refadv_ablate.statistics import verdicts
from refadv_ablate.statistics.formatting import interval, points
from refadv_ablate.statistics.profile import on_old_place, partly_on_old_place
from refadv_ablate.types import Comparison, Delta

GREY_BELOW = 10
"""With fewer images a part is shown grey: too few to say anything."""
UNREAD_FROM = 0.05
"""Share of answers without a box from which on Acc is visibly lowered by them; 50%: it says little else."""
MOSTLY = 0.5
UNCHANGED_FROM = 0.05
"""Share of texts left as they were from which on Δ is visibly diluted."""
APART = 0.2
"""Part of Δ that a difference in unread answers may reach before it is told."""
UNEQUAL = 0.7
"""Effective number, as a part of the images, below which they hold examples so unequally that it is said."""
WARN_BELOW = 40
"""With fewer effective images cluster-robust intervals tend to be too narrow."""


def warnings(result: Comparison, perturbs: bool = True) -> tuple[str, ...]:
    """One sentence each; none for a result that can be read as it is.

    `perturbs`: the second arm was asked other words than the first.
    """
    if on_old_place(result):  # its Δ is no change of accuracy
        told = (_coverage(result), _unread(result), _few_images(result), _engines(result))
        return tuple(filter(None, told))
    found = [
        _nothing_to_lose(result),
        _coverage(result),
        *_missing(result),
        _unread(result),
        _few_images(result),
        _unparsed(result),
        _unchanged(result) if perturbs else "",
        _engines(result),
    ]
    found += [_sign(name, result) for name in result.deltas]
    found += [partly_on_old_place(result)]
    found += [verdicts.disagreement(delta) for delta in result.deltas.values()]
    found += [_disagreement(delta) for delta in result.deltas.values()]
    return tuple(filter(None, found))


def all_unchanged(counts: Mapping[str, int]) -> bool:
    """Whether every text of an arm is the original one: identity, repeat, or an operator that did nothing."""
    return 0 < counts.get("answers", 0) == counts.get("unchanged", 0)


def _nothing_to_lose(result: Comparison) -> str:
    """At the floor Δ 0 is no robustness."""
    delta = result.deltas.get("acc50")
    if delta is None or delta.original.value is None:
        return ""
    value, low, high = delta.original.value, delta.original.low, delta.original.high
    chance = result.details.get("chance_acc50")
    if value == 0:
        return "Original accuracy is 0: Δ has nothing to lose and says nothing of robustness."
    if isinstance(chance, int | float) and low is not None and high is not None and low <= chance:
        return (
            f"Original accuracy {points(value)} {interval(delta.original)} can't be told from chance "
            f"({points(chance)}): Δ has nothing to lose and says nothing of robustness."
        )
    return ""


def _coverage(result: Comparison) -> str:
    planned, came = result.details.get("answers_planned"), result.details.get("answers")
    if result.paired >= result.planned and (planned is None or planned == came):
        return ""
    missing = " and ".join(
        f"{counts['missing']} in the {arm} condition"
        for arm, counts in result.counts.items()
        if counts.get("missing")
    )
    impossible = result.counts["perturbed"].get("not_perturbable", 0)
    reasons = [f"never answered: {missing}"] if missing else []
    reasons += [f"not perturbable: {impossible}"] if impossible else []
    why = f" ({'; '.join(reasons)})" if reasons else ""
    answers = "" if planned is None or came is None else f"; {came:,} of {planned:,} planned answers came"
    rest = "the rest is in no number"
    if result.paired >= result.planned:
        rest = "examples with a part of their draws count by the draws that came"
    return f"{result.paired} of {result.planned} planned examples are paired{why}{answers}; {rest}."


def _missing(result: Comparison) -> Iterator[str]:
    """Answers that fail are seldom a random part: bounds, and who they were."""
    bounds = result.details.get("worst_case")
    delta = result.deltas.get("acc50")
    if not bounds or delta is None or delta.delta.value is None:
        return
    arms = {arm: _lacking(counts) for arm, counts in result.counts.items()}
    unequal = abs(arms["original"] - arms["perturbed"]) > 0.01
    shares = " and ".join(f"{share:.1%} ({arm})" for arm, share in arms.items())
    yield (
        f"Answers lacking: {shares}. Had they come, Δ {points(delta.delta.value, signed=True)} could lie "
        f"anywhere from {points(bounds[0], signed=True)} to {points(bounds[1], signed=True)}"
        + (": the arms differ, so Δ may be biased." if unequal else ".")
    )
    groups = result.details.get("left_out") or {}
    inside, outside = groups.get("inside", {}), groups.get("outside", {})
    if inside.get("original") is not None and outside.get("original") is not None:
        yield (
            f"Original accuracy of the {outside['n']:,} examples that are left out or lack draws is "
            f"{points(outside['original'])}, of the other {inside['n']:,} {points(inside['original'])}."
        )


def _lacking(counts: Mapping[str, int]) -> float:
    lost = counts.get("missing", 0) + counts.get("not_perturbable", 0)
    return lost / counts["answers"] if counts.get("answers") else 0.0


def _few_images(result: Comparison) -> str:
    delta = result.deltas.get("acc50") or next(iter(result.deltas.values()), None)
    effective = result.images if delta is None else delta.delta.effective or result.images
    if not 0 < effective < WARN_BELOW:
        return ""
    images = "1 image" if result.images == 1 else f"{result.images} images"
    if effective < UNEQUAL * result.images:
        return (
            f"{images} hold examples so unequally that they weigh as {effective:.1f} of one size (effective "
            f"number): cluster-robust intervals may be too narrow below {WARN_BELOW}."
        )
    return f"Only {images}: cluster-robust intervals may be too narrow below {WARN_BELOW}."


def _unread(result: Comparison) -> str:
    """Answers that can't be read lower both conditions alike: Δ 0 hides them."""
    arms = {arm: rates(counts) for arm, counts in result.counts.items()}
    worst = max(rate["parse_failure"] or 0.0 for rate in arms.values())
    if worst < UNREAD_FROM:
        return ""
    kinds = {
        kind: sum(counts.get(kind, 0) for counts in result.counts.values())
        for kind in ("empty", "unparsable", "refused", "truncated")
    }
    told = ", ".join(f"{kind}: {n}" for kind, n in kinds.items() if n)
    hint = "look at the answers in predictions.jsonl"
    if kinds["truncated"] * 2 >= sum(kinds.values()):
        hint = "raise model.sampling.max_new_tokens"
    shares = " and ".join(f"{rate['parse_failure'] or 0.0:.0%} ({arm})" for arm, rate in arms.items())
    if worst >= MOSTLY:
        return (
            f"Most answers hold no box that can be read: {shares}; {told}. Acc measures this first: {hint}."
        )
    return f"Answers hold no box that can be read: {shares}; {told}. They count as misses: {hint}."


def _unparsed(result: Comparison) -> str:
    """A difference of format is measured against Δ, not by its own size alone."""
    before, after = (rates(result.counts[arm])["parse_failure"] or 0.0 for arm in ("original", "perturbed"))
    delta = result.deltas.get("acc50")
    if not result.paired:
        return ""
    size = abs(delta.delta.value) if delta and delta.delta.value is not None else 0.0
    if abs(after - before) < min(UNREAD_FROM, max(0.005, APART * size)):
        return ""
    return (
        f"Answers without a box: {before:.1%} in the original and {after:.1%} in the perturbed condition; "
        "part of Δ is a change of format, compare Δ on answers parsed in both."
    )


def _unchanged(result: Comparison) -> str:
    """Δ over texts that are the same is no evidence. Not for operators that mean to change nothing."""
    counts = result.counts["perturbed"]
    same, texts = counts.get("unchanged", 0), counts.get("answers", 0)
    if result.details.get("keeps_text"):
        return ""
    if all_unchanged(counts):
        return (
            f"Nothing was changed: all {texts} perturbed texts are the original ones. Δ measures no "
            "perturbation and has no p."
        )
    if not same or same < UNCHANGED_FROM * texts:
        return ""
    return (
        f"{same} of {texts} perturbed texts are the original ones unchanged "
        f"({same / texts:.1%}; see texts.jsonl): Δ can't come from them and is pulled to 0."
    )


def _engines(result: Comparison) -> str:
    """Engines and their versions round differently: a Δ across two of them holds more than one cause."""
    sides = result.details.get("engines", {})
    if len({engine for side in sides.values() for engine in side}) < 2:
        return ""
    first, second = (
        ", ".join(f"{engine} ({n:,})" for engine, n in side.items()) or "not known" for side in sides.values()
    )
    shown = f"one side has {first}, the other {second}" if first != second else f"both sides have {first}"
    return (
        f"The answers are of more than one engine: {shown}. Part of Δ may come from that: answer both sides "
        "with one engine and version, or hold Δ against that of perturb=repeat."
    )


def _sign(name: str, result: Comparison) -> str:
    primary, secondary = result.deltas[name].delta.value, result.parsed_only[name].delta.value
    if primary is None or secondary is None or primary * secondary >= 0:
        return ""
    return (
        f"{name}: Δ is {primary * 100:+.1f} points with unparsed answers as misses and "
        f"{secondary * 100:+.1f} on answers parsed in both conditions: the signs differ."
    )


def _disagreement(delta: Delta) -> str:
    estimate = delta.delta
    if delta.bootstrap is None or estimate.low is None or estimate.high is None:
        return ""
    if (estimate.effective or estimate.images) < WARN_BELOW:
        return ""  # said already, and expected
    width = estimate.high - estimate.low
    apart = max(abs(delta.bootstrap[0] - estimate.low), abs(delta.bootstrap[1] - estimate.high))
    if apart <= 0.2 * width:
        return ""
    return (
        f"{delta.metric}: the cluster bootstrap gives {delta.bootstrap[0] * 100:+.1f} to "
        f"{delta.bootstrap[1] * 100:+.1f} points, the t interval {estimate.low * 100:+.1f} to "
        f"{estimate.high * 100:+.1f}: few images carry the change, read the interval with care."
    )
