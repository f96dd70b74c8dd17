"""Over examples: accuracies, and what a perturbation does to them on the same examples.

Examples on one image aren't independent, so every interval and every main test takes the image as
the unit. Several draws of one example are averaged before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Floats
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm, Columns, Mask
from refadv_ablate.parsing.scoring import metric as metric_of
from refadv_ablate.seeding import generator
from refadv_ablate.statistics import inference, slices
from refadv_ablate.statistics.estimates import difference, fraction
from refadv_ablate.statistics.inference import Clusters
from refadv_ablate.statistics.missing_answers import account
from refadv_ablate.statistics.warnings import GREY_BELOW, UNEQUAL, WARN_BELOW, all_unchanged, warnings
from refadv_ablate.types import EMPTY, METRICS, Comparison, Delta, Estimate, Json, Slice

DEFAULT_FLIPS = 10_000


@dataclass(frozen=True, slots=True)
class Pairs:
    """Examples answered in both arms, sorted by id: draws averaged within the example.

    `image` numbers the images. `draws` is the perturbed value per draw, shape (number of draws,
    examples), NaN where not answered.
    """

    example: NDArray[np.uint64]
    image: NDArray[np.intp]
    original: Mapping[str, Floats]
    perturbed: Mapping[str, Floats]
    draws: Mapping[str, Floats]

    def where(self, rows: Mask) -> Pairs:
        """Some of the examples."""
        return Pairs(
            self.example[rows],
            self.image[rows],
            {name: values[rows] for name, values in self.original.items()},
            {name: values[rows] for name, values in self.perturbed.items()},
            {name: values[:, rows] for name, values in self.draws.items()},
        )


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
    before, after = original.columns(), perturbed.columns()
    pairs = _pair(before.where(before.answered), after.where(after.answered), metrics)
    parsed = _pair(before.where(before.parsed), after.where(after.parsed), metrics)
    counts = {"original": original.counts(), "perturbed": perturbed.counts()}
    tested = not (perturbs and all_unchanged(counts["perturbed"]))
    result = Comparison(
        model=model,
        data=data,
        prompt=prompt,
        operator=operator,
        planned=planned,
        paired=len(pairs.example),
        images=len(np.unique(pairs.image)),
        deltas=_deltas(pairs, seed, n_boot, "all", tested),
        parsed_only=_deltas(parsed, seed, n_boot, "parsed", tested),
        counts=counts,
        slices=tuple(part for by in slices for part in _slices(original, pairs, by, seed)),
        details={
            **account(before, after, planned, parted=perturbed.parted),
            **_engines(original, perturbed),
            **details,
        },
    )
    if perturbed.parted:  # sub-conditions are no draws of one thing: their spread is no noise
        result = replace(result, deltas=_without_spread(result.deltas))
    return replace(result, warnings=warnings(result, perturbs))


def _without_spread(deltas: Mapping[str, Delta]) -> dict[str, Delta]:
    return {name: replace(delta, draw_sd=None) for name, delta in deltas.items()}


def paired_values(
    original: Arm, perturbed: Arm, metric: str = "acc50"
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], Floats, Floats]:
    """Example, image and the metric in both conditions, of the examples answered in both, by example."""
    before, after = original.columns(), perturbed.columns()
    before, after = before.where(before.answered), after.where(after.answered)
    pairs = _pair(before, after, (metric,))
    examples, _, first = _examples(before)
    image = before.image[first[np.searchsorted(examples, pairs.example)]]
    return pairs.example, image, pairs.original[metric], pairs.perturbed[metric]


def _engines(original: Arm, perturbed: Arm) -> dict[str, Json]:
    """What answered, where that is known: `engines`, by arm."""
    found = {"original": original.engines(), "perturbed": perturbed.engines()}
    return {"engines": found} if any(found.values()) else {}


def accuracy(
    arm: Arm, metric: str = "acc50", *, parsed_only: bool = False, rows: Mask | None = None
) -> Estimate:
    """Mean of a metric over the answered examples of one arm (over those with a box, if `parsed_only`).

    `rows` chooses among the arm's answers.
    """
    columns = arm.columns()
    keep = columns.parsed if parsed_only else columns.answered
    kept = columns.where(keep if rows is None else keep & rows)
    example, codes, first = _examples(kept)
    values = _mean_by(codes, len(example), metric_of(metric)(kept.iou))
    return fraction(values, kept.image[first])


def accuracy_by(arm: Arm, by: str, metric: str = "acc50") -> list[tuple[str, Estimate]]:
    """The same for each part of the arm, such as the distractor bins, in a fixed order."""
    return [(label, accuracy(arm, metric, rows=rows)) for label, rows in slices.parts(arm, by)]


def holm(comparisons: Sequence[Comparison], metric: str = "acc50") -> list[Comparison]:
    """The same comparisons with `p_holm` of that metric: they are the family that was declared."""
    adjusted = inference.holm([_p_of(each, metric) for each in comparisons])
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


# ── pairing ─────────────────────────────────────────────────────────────────────────────────────


def _examples(columns: Columns) -> tuple[NDArray[np.uint64], NDArray[np.intp], NDArray[np.intp]]:
    """Sorted distinct examples, the example of each row, the first row of each example."""
    example, first, codes = np.unique(columns.example, return_index=True, return_inverse=True)
    return example, codes, first


def _mean_by(codes: NDArray[np.intp], n: int, values: Floats) -> Floats:
    """Mean of the values of each code, 0 … n − 1."""
    means: Floats
    if len(codes) == n:
        means = np.empty(n)
        means[codes] = values
        return means
    order = np.lexsort((values, codes))  # the order of the answers must not show in the last digit
    means = np.bincount(codes[order], weights=values[order], minlength=n) / np.bincount(codes, minlength=n)
    return means


def _pair(before: Columns, after: Columns, metrics: Sequence[str]) -> Pairs:
    ids_before, codes_before, first_before = _examples(before)
    ids_after, codes_after, _ = _examples(after)
    both, left, right = np.intersect1d(ids_before, ids_after, assume_unique=True, return_indices=True)
    draws, draw_codes = np.unique(after.draw, return_inverse=True)
    original, perturbed, by_draw = {}, {}, {}
    for name in metrics:
        value_of = metric_of(name)
        values = value_of(after.iou)
        grid = np.full((len(draws), len(ids_after)), np.nan)
        grid[draw_codes, codes_after] = values
        original[name] = _mean_by(codes_before, len(ids_before), value_of(before.iou))[left]
        perturbed[name] = _mean_by(codes_after, len(ids_after), values)[right]
        by_draw[name] = grid[:, right]
    _, image = np.unique(before.image[first_before][left], return_inverse=True)
    return Pairs(both, image, original, perturbed, by_draw)


# ── estimates ───────────────────────────────────────────────────────────────────────────────────


def _deltas(pairs: Pairs, seed: int, n_boot: int, label: str, tested: bool = True) -> dict[str, Delta]:
    found = {
        name: _delta(name, pairs, np.random.default_rng(_bits(seed, label, name)), n_boot)
        for name in pairs.original
    }
    if tested:
        return found
    return {name: replace(delta, p=None, p_mcnemar=None) for name, delta in found.items()}


def _bits(seed: int, *parts: str) -> int:
    return generator(seed, "inference", *parts).getrandbits(128)


def _delta(name: str, pairs: Pairs, rng: np.random.Generator, n_boot: int) -> Delta:
    before, after = pairs.original[name], pairs.perturbed[name]
    change = np.round(after - before, 12)  # the mean of three equal draws is off in the 17th digit
    delta = difference(change, pairs.image)
    found = Delta(
        metric=name,
        original=fraction(before, pairs.image),
        perturbed=fraction(after, pairs.image),
        delta=delta,
        right_to_wrong=float(np.sum(np.sort(np.maximum(-change, 0)))),
        wrong_to_right=float(np.sum(np.sort(np.maximum(change, 0)))),
        draw_sd=_draw_sd(pairs.draws[name], before),
        note=_note(delta),
    )
    if not len(change):
        return found
    return replace(
        found,
        bootstrap=_bootstrap(delta, change, pairs, rng, n_boot),
        p=_p(delta, change, pairs, rng, n_boot),
        p_mcnemar=_mcnemar(before, after),
    )


def _bootstrap(
    delta: Estimate, change: Floats, pairs: Pairs, rng: np.random.Generator, n_boot: int
) -> tuple[float, float] | None:
    if not n_boot or delta.low is None:
        return None
    return inference.bootstrap_interval(Clusters.of(change, pairs.image), rng, n_boot)


def _p(delta: Estimate, change: Floats, pairs: Pairs, rng: np.random.Generator, n_boot: int) -> float | None:
    if delta.images < 2 and np.any(change):
        return None
    return inference.sign_flip_p(Clusters.of(change, pairs.image), rng, n_boot or DEFAULT_FLIPS)


def _mcnemar(before: Floats, after: Floats) -> float | None:
    """None where a value isn't a hit or a miss: averaged draws and means over thresholds."""
    both = np.concatenate([before, after])
    if not np.all((both == 0) | (both == 1)):
        return None
    return inference.mcnemar_p(int(np.sum(before > after)), int(np.sum(after > before)))


def _draw_sd(draws: Floats, before: Floats) -> float | None:
    deltas = [
        float(np.mean(row[answered] - before[answered]))
        for row in draws
        if (answered := ~np.isnan(row)).any()
    ]
    return float(np.std(deltas, ddof=1)) if len(deltas) > 1 else None


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


def _slices(original: Arm, pairs: Pairs, by: str, seed: int) -> list[Slice]:
    """Without the bootstrap, which checks the whole; an example is where its first answer is."""
    rows_example = original.columns().example
    found = []
    for label, rows in slices.parts(original, by):
        inside = pairs.where(np.isin(pairs.example, rows_example[rows]))
        found.append(Slice(by, label, _deltas(inside, seed, 0, f"{by}={label}")))
    return found
