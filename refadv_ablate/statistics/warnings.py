"""What a reader should know before believing a comparison, in sentences."""

from __future__ import annotations

from refadv_ablate.parsing.scoring import rates
from refadv_ablate.types import Comparison, Delta

GREY_BELOW = 10
"""With fewer images a part is shown grey: too few to say anything."""
MOSTLY = 0.5
"""Share of answers without a box from which on Acc says nothing of grounding."""
UNCHANGED_FROM = 0.01
"""Share of texts left as they were from which on Δ is visibly diluted."""
WARN_BELOW = 40
"""With fewer images cluster-robust intervals tend to be too narrow."""


def warnings(result: Comparison) -> tuple[str, ...]:
    """One sentence each; none for a result that can be read as it is."""
    found = [
        _coverage(result),
        _mostly_unread(result),
        _few_images(result),
        _unparsed(result),
        _unchanged(result),
    ]
    found += [_sign(name, result) for name in result.deltas]
    found += [_disagreement(delta) for delta in result.deltas.values()]
    return tuple(filter(None, found))


def _coverage(result: Comparison) -> str:
    if result.paired >= result.planned:
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
    return f"{result.paired} of {result.planned} planned examples are paired{why}; the rest is in no number."


def _few_images(result: Comparison) -> str:
    if not 0 < result.images < WARN_BELOW:
        return ""
    images = "1 image" if result.images == 1 else f"{result.images} images"
    return f"Only {images}: cluster-robust intervals may be too narrow below {WARN_BELOW}."


def _mostly_unread(result: Comparison) -> str:
    """A run whose answers can't be read scores near 0, which says nothing of grounding."""
    arms = {arm: rates(counts) for arm, counts in result.counts.items()}
    if all((rate["parse_failure"] or 0.0) < MOSTLY for rate in arms.values()):
        return ""
    kinds = {
        kind: sum(counts.get(kind, 0) for counts in result.counts.values())
        for kind in ("empty", "unparsable", "refused", "truncated")
    }
    told = ", ".join(f"{kind}: {n}" for kind, n in kinds.items() if n)
    hint = "look at the answers in predictions.jsonl"
    if any((rate["truncated"] or 0.0) >= MOSTLY for rate in arms.values()):
        hint = "raise model.sampling.max_new_tokens"
    shares = " and ".join(f"{rate['parse_failure'] or 0.0:.0%} ({arm})" for arm, rate in arms.items())
    return f"Most answers hold no box that can be read: {shares}; {told}. Acc measures this first: {hint}."


def _unparsed(result: Comparison) -> str:
    before, after = (rates(result.counts[arm])["parse_failure"] or 0.0 for arm in ("original", "perturbed"))
    if abs(after - before) < 0.05:
        return ""
    return (
        f"Answers without a box: {before:.1%} in the original and {after:.1%} in the perturbed condition; "
        "part of Δ is a change of format, compare Δ on answers parsed in both."
    )


def _unchanged(result: Comparison) -> str:
    """Not for operators that leave every text as it is: identity and repeat."""
    counts = result.counts["perturbed"]
    same, texts = counts.get("unchanged", 0), counts.get("answers", 0)
    if not 0 < same < texts or same < UNCHANGED_FROM * texts:
        return ""
    return (
        f"{same} of {texts} perturbed texts are the original ones unchanged "
        f"({same / texts:.1%}; see texts.jsonl): Δ can't come from them and is pulled to 0."
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
    if estimate.images < WARN_BELOW:
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
