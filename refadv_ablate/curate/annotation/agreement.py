"""How far annotators agree: Fleiss' kappa, blind-grounding accuracy, keep rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from refadv_ablate.curate.annotation.answers import Outcome, Sheet, chosen
from refadv_ablate.curate.annotation.items import Item
from refadv_ablate.statistics.inference import wilson_interval


@dataclass(frozen=True, slots=True)
class Kappa:
    """value: None where it isn't defined, and why. observed, expected: agreement, by chance."""

    value: float | None
    observed: float | None
    expected: float | None
    items: int
    note: str = ""


def fleiss_kappa(ratings: Sequence[Sequence[Hashable]]) -> Kappa:
    """Over items that all have the same number of ratings (Fleiss 1971).

    Undefined where every rating of every item is the same, since chance agrees then as well.
    """
    if not ratings:
        return Kappa(None, None, None, 0, "no item has been rated by all")
    raters = len(ratings[0])
    if raters < 2 or any(len(row) != raters for row in ratings):
        return Kappa(
            None, None, None, len(ratings), "needs two raters or more, the same number for each item"
        )
    counts = [Counter(row) for row in ratings]
    pairs = raters * (raters - 1)
    observed = sum(sum(n * (n - 1) for n in c.values()) / pairs for c in counts) / len(counts)
    totals: Counter[Hashable] = Counter()
    for count in counts:
        totals.update(count)
    expected = sum((n / (raters * len(ratings))) ** 2 for n in totals.values())
    if len(totals) == 1:
        return Kappa(None, observed, expected, len(ratings), "all ratings are the same")
    return Kappa((observed - expected) / (1 - expected), observed, expected, len(ratings))


@dataclass(frozen=True, slots=True)
class Share:
    """k of n with its 95% Wilson interval; value None where n is 0."""

    k: int
    n: int

    @property
    def value(self) -> float | None:
        """k / n."""
        return self.k / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% Wilson interval; items are taken as independent."""
        return wilson_interval(self.k / self.n, self.n) if self.n else None

    def __str__(self) -> str:
        if not self.n:
            return "n/a (none yet)"
        low, high = self.interval or (0.0, 0.0)
        return f"{100 * self.k / self.n:.1f}% [{100 * low:.1f}, {100 * high:.1f}] ({self.k} of {self.n})"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Statistics of a verification. blind: by annotator, whether the gold target was found unaided.

    dropped_early: dropped with fewer verdicts than are needed; these enter no kappa.
    """

    kappa_correct: Kappa
    kappa_hard: Kappa
    kappa_blind: Kappa
    blind: dict[str, Share]
    blind_all: Share
    verdicts: dict[str, int]
    kept: int
    dropped: int
    open: int
    keep_rate: Share
    dropped_early: int = 0


def agreement(items: Sequence[Item], answers: Sheet, found: Sequence[Outcome], needed: int) -> Agreement:
    """Kappas over the items that at least `needed` annotators finished (the first `needed` of each)."""
    blind: dict[str, Share] = {}
    for annotator, said in answers.items():
        hits = [chosen(said[i.id].blind or {}, i.scene) == i.target for i in items if _blind(said.get(i.id))]
        blind[annotator] = Share(sum(hits), len(hits))
    states = Counter(o.state for o in found)
    return Agreement(
        kappa_correct=fleiss_kappa(list(_verdicts(items, answers, needed, "correct"))),
        kappa_hard=fleiss_kappa(list(_verdicts(items, answers, needed, "hard"))),
        kappa_blind=fleiss_kappa(list(_choices(items, answers, needed))),
        blind=blind,
        blind_all=Share(sum(s.k for s in blind.values()), sum(s.n for s in blind.values())),
        verdicts={a: sum(s.verdict is not None for s in said.values()) for a, said in answers.items()},
        kept=states["kept"],
        dropped=states["dropped"],
        open=states["open"],
        keep_rate=Share(states["kept"], states["kept"] + states["dropped"]),
        dropped_early=sum(o.state == "dropped" and o.verdicts < needed for o in found),
    )


def _blind(said: object) -> bool:
    return getattr(said, "blind", None) is not None


def _verdicts(items: Sequence[Item], answers: Sheet, needed: int, field: str) -> Iterator[list[bool]]:
    for item in items:
        given = [said[item.id].verdict for said in answers.values() if item.id in said]
        values = [bool(v[field]) for v in given if v is not None]
        if len(values) >= needed:
            yield values[:needed]


def _choices(items: Sequence[Item], answers: Sheet, needed: int) -> Iterator[list[tuple[str, int]]]:
    """Candidates differ from scene to scene, so the categories rated are right, look-alike, other, none."""
    for item in items:
        given = [said[item.id].blind for said in answers.values() if item.id in said]
        numbers = [chosen(b, item.scene) for b in given if b is not None]
        if len(numbers) >= needed:
            yield [(_role(item, number), 0) for number in numbers[:needed]]


def _role(item: Item, number: int) -> str:
    if number == item.target:
        return "target"
    return "look-alike" if number == item.distractor else "other" if number else "none"


def lines(a: Agreement) -> list[str]:
    """The statistics as a screen shows them."""
    total = a.kept + a.dropped + a.open
    shown = [
        f"{total} expressions: {a.kept} kept, {a.dropped} dropped, {a.open} open",
        f"keep rate of those decided: {a.keep_rate}",
        f"blind grounding, all annotators: {a.blind_all}",
    ]
    shown += [f"  {name}: {share}; {a.verdicts[name]} verdicts" for name, share in sorted(a.blind.items())]
    for name, kappa in (
        ("correct and unambiguous", a.kappa_correct),
        ("hard distractors present", a.kappa_hard),
        ("blind choice (target, look-alike, other, none)", a.kappa_blind),
    ):
        value = "n/a" if kappa.value is None else f"{kappa.value:.3f}"
        note = f" ({kappa.note})" if kappa.note else ""
        shown.append(f"Fleiss' kappa, {name}: {value} over {kappa.items} items{note}")
    if a.dropped_early:
        shown.append(
            f"{a.dropped_early} dropped expressions have not been judged by all: they are in no kappa, which "
            "is then over a milder selection"
        )
    return shown
