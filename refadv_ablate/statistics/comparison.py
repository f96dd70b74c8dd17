"""Over examples: accuracies, and what a perturbation does to them on the same examples.

Examples on one image aren't independent, so every interval and every main test takes the image as
the unit. Several draws of one example are averaged before anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm, Columns, Mask
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.seeding import generator
from refadv_ablate.statistics import inference
from refadv_ablate.statistics import slices as slicing
from refadv_ablate.statistics.estimates import difference_of, fraction_of
from refadv_ablate.statistics.missing_answers import Account
from refadv_ablate.statistics.pairing import Paired, Pairs, examples, mean_by, together
from refadv_ablate.statistics.profile import on_old_place
from refadv_ablate.statistics.samples import ByImage, Gathered
from refadv_ablate.statistics.warnings import GREY_BELOW, UNEQUAL, WARN_BELOW, all_unchanged, warnings
from refadv_ablate.storage.columns import pieces
from refadv_ablate.types import EMPTY, METRICS, Comparison, Delta, Estimate, Json, Slice

DEFAULT_FLIPS = 10_000


def compare(
    original: Arm,
    perturbed: Arm,
    *,
    model: str,
    data: str,
    prompt: str,
    operator: str,
    planned: int,
    slices: Sequence[str] = (),
    seed: int = 0,
    n_boot: int = 10_000,
    metrics: Sequence[str] = METRICS,
    perturbs: bool = True,
    details: Mapping[str, Json] = EMPTY,
) -> Comparison:
    """Original against perturbed on the examples answered in both.

    Unparsed answers are misses in `deltas` and left out of `parsed_only`. `n_boot` resamples check the
    interval (0: no check). `slices` name attributes. `perturbs`: the second arm was asked other words; then
    no test is made where every text is the original one. `details` are kept, and a chance level in them is
    minded. Raises UserError for an unknown metric or attribute.
    """
    parts = {by: slicing.cuts(original, by) for by in slices}
    found = _paired(original, perturbed, metrics, parts, planned)
    counts = {"original": original.counts(), "perturbed": perturbed.counts()}
    tested = not (perturbs and all_unchanged(counts["perturbed"]))
    result = Comparison(
        model=model,
        data=data,
        prompt=prompt,
        operator=operator,
        planned=planned,
        paired=len(found.answered),
        images=sum(len(np.unique(block.image)) for block in found.answered.blocks()),
        deltas=_deltas(found.answered, seed, n_boot, "all", tested),
        parsed_only=_deltas(found.parsed, seed, n_boot, "parsed", tested),
        counts=counts,
        slices=tuple(part for by in slices for part in _slices(found.answered, parts[by], by, seed)),
        details={**found.account, **_engines(original, perturbed), **details},
    )
    if perturbed.parted:  # sub-conditions are no draws of one thing: their spread is no noise
        result = replace(result, deltas=_without_spread(result.deltas))
    return replace(result, warnings=warnings(result, perturbs))


def _without_spread(deltas: Mapping[str, Delta]) -> dict[str, Delta]:
    return {name: replace(delta, draw_sd=None) for name, delta in deltas.items()}


@dataclass(frozen=True, slots=True)
class _Found:
    """The pairs of two arms: of all answers, of those with a box, and what is lacking."""

    answered: Paired
    parsed: Paired
    account: Mapping[str, Json]


def _paired(
    original: Arm,
    perturbed: Arm,
    metrics: Sequence[str],
    parts: Mapping[str, Sequence[slicing.Cut]],
    planned: int,
) -> _Found:
    """One pass over both arms."""
    cuts = {_mark(by, cut.label): cut for by, found in parts.items() for cut in found}
    draws = sorted(perturbed.draws)
    answered, parsed = Paired(metrics, draws, tuple(cuts)), Paired(metrics, draws)
    lacking = Account(planned, (len(original.draws), len(perturbed.draws)), parted=perturbed.parted)
    for before, after in together(original, perturbed):
        marks = {name: before.example[cut.rows(before)] for name, cut in cuts.items()}
        answered.add(before.where(before.answered), after.where(after.answered), marks)
        parsed.add(before.where(before.parsed), after.where(after.parsed))
        lacking.add(before, after)
    return _Found(answered, parsed, lacking.details())


def _mark(by: str, label: str) -> str:
    return f"{by}={label}"


def _engines(original: Arm, perturbed: Arm) -> dict[str, Json]:
    """What answered, where that is known: `engines`, by arm."""
    found = {"original": original.engines(), "perturbed": perturbed.engines()}
    return {"engines": found} if any(found.values()) else {}


def accuracy(
    arm: Arm,
    metric: str = "acc50",
    *,
    parsed_only: bool = False,
    rows: Callable[[Columns], Mask] | None = None,
) -> Estimate:
    """Mean of a metric over the answered examples of one arm (over those with a box, if `parsed_only`).

    `rows` chooses among the arm's answers.
    """
    gathered, value_of = ByImage(), metric_of(metric)
    for columns in arm.parts(pieces(len(arm))):
        keep = columns.parsed if parsed_only else columns.answered
        kept = columns.where(keep if rows is None else keep & rows(columns))
        example, codes, first = examples(kept)
        gathered.add("", mean_by(codes, len(example), value_of(kept.iou)), kept.image[first])
    return fraction_of(gathered.samples()[""])


def accuracy_by(arm: Arm, by: str, metric: str = "acc50") -> list[tuple[str, Estimate]]:
    """The same for each part of the arm, such as the distractor bins, in a fixed order."""
    return [(cut.label, accuracy(arm, metric, rows=cut.rows)) for cut in slicing.cuts(arm, by)]


def holm(comparisons: Sequence[Comparison], metric: str = "acc50") -> list[Comparison]:
    """The same comparisons with `p_holm` of that metric: they are the family that was declared.

    Those whose Δ is no change of accuracy test nothing and are no part of it.
    """
    adjusted = inference.holm([None if on_old_place(c) else _p_of(c, metric) for c in comparisons])
    return [
        each
        if p is None
        else replace(each, deltas={**each.deltas, metric: replace(each.deltas[metric], p_holm=p)})
        for each, p in zip(comparisons, adjusted, strict=True)
    ]


def _p_of(comparison: Comparison, metric: str) -> float | None:
    if metric not in comparison.deltas:
        raise UserError(
            f"{comparison.model} × {comparison.data} × {comparison.operator} has no {metric}: "
            f"it has {', '.join(comparison.deltas)}."
        )
    return comparison.deltas[metric].p


# ── estimates ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Tally:
    """What a Δ is made of, taken in block by block."""

    before: Gathered = field(default_factory=Gathered)
    after: Gathered = field(default_factory=Gathered)
    change: Gathered = field(default_factory=Gathered)
    right_to_wrong: float = 0.0
    wrong_to_right: float = 0.0
    lost: int = 0
    won: int = 0
    draws: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Draw → sum of the changes and how many."""

    def add(self, name: str, pairs: Pairs) -> None:
        """A block; images aren't in several."""
        before, after = pairs.original[name], pairs.perturbed[name]
        change = np.round(after - before, 12)  # the mean of three equal draws is off in the 17th digit
        for gathered, values in ((self.before, before), (self.after, after), (self.change, change)):
            gathered.add(values, pairs.image)
        self.right_to_wrong += float(np.sum(np.sort(np.maximum(-change, 0))))
        self.wrong_to_right += float(np.sum(np.sort(np.maximum(change, 0))))
        self.lost += int(np.sum(before > after))
        self.won += int(np.sum(after > before))
        for draw, row in enumerate(pairs.draws[name]):
            answered = ~np.isnan(row)
            total, n = self.draws.get(draw, (0.0, 0))
            apart = row[answered] - before[answered]
            self.draws[draw] = total + float(np.sum(apart)), n + len(apart)

    def draw_sd(self) -> float | None:
        """Standard deviation of Δ over the draws."""
        deltas = [total / n for total, n in self.draws.values() if n]
        return float(np.std(deltas, ddof=1)) if len(deltas) > 1 else None


def _deltas(
    paired: Paired, seed: int, n_boot: int, label: str, tested: bool = True, mark: str = ""
) -> dict[str, Delta]:
    """By metric; of the examples that a mark is on, where there is one."""
    tallies = {name: _Tally() for name in paired.metrics}
    for block in paired.blocks():
        pairs = block.where(block.marks[mark]) if mark else block
        for name, tally in tallies.items():
            tally.add(name, pairs)
    found = {
        name: _delta(name, tally, np.random.default_rng(_bits(seed, label, name)), n_boot)
        for name, tally in tallies.items()
    }
    if tested:
        return found
    return {name: replace(delta, p=None, p_mcnemar=None) for name, delta in found.items()}


def _bits(seed: int, *parts: str) -> int:
    return generator(seed, "inference", *parts).getrandbits(128)


def _delta(name: str, tally: _Tally, rng: np.random.Generator, n_boot: int) -> Delta:
    before, after, change = tally.before.sample(), tally.after.sample(), tally.change.sample()
    delta = difference_of(change)
    found = Delta(
        metric=name,
        original=fraction_of(before),
        perturbed=fraction_of(after),
        delta=delta,
        right_to_wrong=tally.right_to_wrong,
        wrong_to_right=tally.wrong_to_right,
        draw_sd=tally.draw_sd(),
        note=_note(delta),
    )
    if not delta.n:
        return found
    bootstrap = p = None
    if n_boot and delta.low is not None:
        bootstrap = inference.bootstrap_interval(change.clusters, rng, n_boot)
    if delta.images >= 2 or not change.some:
        p = inference.sign_flip_p(change.clusters, rng, n_boot or DEFAULT_FLIPS)
    # None where a value isn't a hit or a miss: averaged draws and means over thresholds
    p_mcnemar = inference.mcnemar_p(tally.lost, tally.won) if before.hits and after.hits else None
    return replace(found, bootstrap=bootstrap, p=p, p_mcnemar=p_mcnemar)


def _note(delta: Estimate) -> str:
    number = delta.images if delta.effective is None else delta.effective
    images = f"only {delta.images} images"
    if number < UNEQUAL * delta.images:
        images = f"{delta.images} images that weigh as {number:.1f}"
    if 0 < number < GREY_BELOW:
        few = f"{images}: too few to conclude from"
    elif 0 < number < WARN_BELOW:
        few = f"{images}: the interval may be too narrow"
    else:
        few = ""
    return "; ".join(filter(None, (delta.note, few)))


# ── parts ───────────────────────────────────────────────────────────────────────────────────────


def _slices(paired: Paired, cuts: Sequence[slicing.Cut], by: str, seed: int) -> list[Slice]:
    """Without the bootstrap, which checks the whole; an example is where any of its first answers is."""
    marks = [(cut.label, _mark(by, cut.label)) for cut in cuts]
    return [Slice(by, label, _deltas(paired, seed, 0, mark, mark=mark)) for label, mark in marks]
