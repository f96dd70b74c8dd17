"""The picture of another example, and regions of the picture covered: the referent, its like, or neither."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from perturbations.base import Parts, Single, pictured, refused
from refadv_ablate import edits
from refadv_ablate.boxes import Box, BoxMap, Size, iou
from refadv_ablate.errors import ImageUnreadable, UserError
from refadv_ablate.types import Candidate, Data, Example, ImageRef, Json, Perturbed

PLACEBO, COVERING = "placebo", "covering_placebo"
SAME_OBJECT = 0.5
"""IoU from which a candidate is the referent itself."""


@dataclass(frozen=True, slots=True)
class WrongImage(Single):
    """Another picture of the data set, one that shows nothing of the referent's category.

    Nothing matches, and the prompt allows the answer "none". Boxes keep their relative place: an answer
    that falls on the original box was found without looking. What a picture shows is known by its
    annotated instances, else by the categories of the referents on it (the trace says which).
    """

    does: ClassVar[str] = "about another picture, which lacks the category"
    or_none: ClassVar[bool] = True
    not_identity: ClassVar[frozenset[str]] = frozenset({"pool"})

    pool: Pool | None = field(default=None, compare=False, repr=False)

    def with_data(self, data: Data) -> WrongImage:
        """The same operator; the data are read when the first picture is wanted."""
        return replace(self, pool=Pool(data))

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The trace names the picture. Not perturbable without a category that some picture lacks."""
        if self.pool is None:
            raise UserError("perturb=wrong_image takes its pictures from the data and was given none.")
        if not example.expression.strip():
            return refused(example, "the expression is empty")
        if not example.category:
            return refused(example, "the data have no category for it, so no picture is known to lack it")
        other = self.pool.without(example, rng)
        if other is None:
            return refused(example, f"no other picture of the data lacks the category {example.category!r}")
        try:
            frame = BoxMap.between(example.image.size(), other.image.size())
        except ImageUnreadable as error:
            return refused(example, str(error))
        new = replace(
            example,
            image=other.image,
            target=frame(example.target),
            candidates=other.candidates,
            distractors=0,
        )
        trace = {"picture": other.image.key, "known_by": "instances" if other.candidates else "referents"}
        return Perturbed(new, example, "changed", "", trace, "reject", frame)


@dataclass(frozen=True, slots=True)
class _Picture:
    image: ImageRef
    candidates: tuple[Candidate, ...]
    shows: frozenset[str]


@dataclass
class Pool:
    """The pictures of a data set, each once, with the categories that they are known to show."""

    data: Data
    most: int = 5000
    """Pictures that are remembered: the first ones."""
    _pictures: list[_Picture] | None = field(default=None, init=False, repr=False)

    def without(self, example: Example, rng: random.Random) -> _Picture | None:
        """Another picture, without the example's category, each as likely; None where there is none."""
        fitting = [
            picture
            for picture in self._known()
            if picture.image.key != example.image.key and _name(example.category) not in picture.shows
        ]
        return fitting[rng.randrange(len(fitting))] if fitting else None

    def _known(self) -> list[_Picture]:
        if self._pictures is None:
            found: dict[str, _Picture] = {}
            for example in self.data:
                key = example.image.key
                shows = {_name(c.category) for c in example.candidates} | {_name(example.category)}
                if key in found:
                    found[key] = replace(found[key], shows=found[key].shows | shows)
                elif len(found) < self.most:
                    found[key] = _Picture(example.image, example.candidates, frozenset(shows))
            self._pictures = list(found.values())
        return self._pictures


def _name(category: str | None) -> str:
    return (category or "").strip().lower()


@dataclass(frozen=True, slots=True)
class Occlude(Parts):
    """The referent covered, and, as placebos, boxes of its size elsewhere.

    A model that looks at the referent loses it: its answers leave the old box. What a placebo costs is
    the price of the patch itself; necessity is the drop under `referent` less that under `placebo`.
    ink: what covers (surround: the median colour around; gray; noise). n_placebos: at most so many.
    A placebo never touches the referent; of the places tried it takes one that covers least of the other
    instances, and says so.
    """

    does: ClassVar[str] = "when the referent is covered"

    ink: edits.Ink = "surround"
    n_placebos: int = 1

    def __post_init__(self) -> None:
        _check_ink("occlude", self.ink)
        if self.n_placebos < 1:
            raise UserError(f"perturb.occlude.n_placebos is {self.n_placebos}: it must be at least 1.")

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """`referent`, then each `placebo` (`covering_placebo` where it hides some of another instance)."""
        seed = rng.getrandbits(32)
        return [self._covered(example, example.target, seed, "referent"), *self._placebos(example, rng, seed)]

    def _covered(
        self, example: Example, box: Box, seed: int, part: str, trace: Mapping[str, Json] | None = None
    ) -> Perturbed:
        fill = edits.Fill((_quad(box),), self.ink, seed)
        told = {"covered": box.as_list(), **(trace or {})}
        placebo = part in (PLACEBO, COVERING)
        expectation = "invariant" if placebo else "drop"
        return pictured(example, [fill], told, expectation=expectation, part=part, placebo=placebo)  # type: ignore[arg-type]  # one of two literals

    def _placebos(self, example: Example, rng: random.Random, seed: int) -> Iterator[Perturbed]:
        try:
            size = example.image.size()
        except ImageUnreadable as error:
            yield refused(example, str(error), part=PLACEBO, placebo=True)
            return
        taken = [example.target]
        for _ in range(self.n_placebos):
            found = _elsewhere(example, size, taken, rng)
            if found is None:
                reason = "no box of the referent's size lies clear of it" + " and of other placebos" * (
                    len(taken) > 1
                )
                yield refused(example, reason, part=PLACEBO, placebo=True)
                return
            box, hidden = found
            taken.append(box)
            part = PLACEBO if hidden == 0 else COVERING
            yield self._covered(example, box, seed, part, {"hides": round(hidden, 6)})


TRIES = 200


def _elsewhere(
    example: Example, size: Size, taken: Sequence[Box], rng: random.Random
) -> tuple[Box, float] | None:
    """A box of the referent's size clear of `taken`, and the largest share of an instance that it hides."""
    width, height = example.target.width, example.target.height
    across, down = size[0] - width, size[1] - height
    if across < 0 or down < 0:
        return None
    others = [c.box for c in example.candidates if iou(c.box, example.target) < SAME_OBJECT]
    best: tuple[Box, float] | None = None
    for _ in range(TRIES):
        x, y = rng.random() * across, rng.random() * down
        box = Box(x, y, x + width, y + height)
        if any(_apart(box, other) < 2 for other in taken):
            continue
        hidden = max((_share(box, other) for other in others), default=0.0)
        if best is None or hidden < best[1]:
            best = box, hidden
        if hidden == 0:
            break
    return best


def _apart(a: Box, b: Box) -> float:
    """Pixels between two boxes along the axis that parts them; negative where they overlap."""
    return max(a.x1 - b.x2, b.x1 - a.x2, a.y1 - b.y2, b.y1 - a.y2)


def _share(cover: Box, box: Box) -> float:
    """How much of a box is covered, 0…1; what touches it within two pixels counts as covering."""
    if _apart(cover, box) >= 2:
        return 0.0
    width = min(cover.x2, box.x2) - max(cover.x1, box.x1)
    height = min(cover.y2, box.y2) - max(cover.y1, box.y1)
    return max(1e-6, max(0.0, width) * max(0.0, height) / box.area)


@dataclass(frozen=True, slots=True)
class EraseDistractors(Single):
    """All other instances of the referent's category covered, the referent left as it is.

    Accuracy can only gain: the gain is the error that distractors make. A model that reads the head noun
    alone is always right here. Where a distractor overlaps the referent, the referent's own box stays
    uncovered. Candidates and the number of distractors follow. ink: as in `occlude`.
    """

    does: ClassVar[str] = "when all distractors of its category are covered"

    ink: edits.Ink = "surround"

    def __post_init__(self) -> None:
        _check_ink("erase_distractors", self.ink)

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The trace counts what was erased. Not perturbable where distractors aren't annotated or overlap."""
        seed = rng.getrandbits(32)
        if not example.candidates or not example.category:
            return refused(example, "the data have no instances of the category to erase")
        like = [c for c in example.candidates if _name(c.category) == _name(example.category)]
        gone = [c for c in like if iou(c.box, example.target) < SAME_OBJECT]
        if not gone:
            return refused(example, "no other instance of the category is annotated")
        if any(_apart(c.box, example.target) < 0 for c in gone):
            return refused(example, "a distractor overlaps the referent: erasing it would harm both")
        fill = edits.Fill(tuple(_quad(c.box) for c in gone), self.ink, seed)
        found = pictured(example, [fill], {"erased": len(gone), "matching": 1}, expectation="invariant")
        kept = tuple(c for c in example.candidates if c not in gone)
        changed = replace(found.example, candidates=kept, distractors=0)
        return found if found.status == "not_perturbable" else replace(found, example=changed)


def _quad(box: Box) -> tuple[float, float, float, float]:
    return box.x1, box.y1, box.x2, box.y2


def _check_ink(label: str, ink: str) -> None:
    if ink not in ("surround", "gray", "noise"):
        raise UserError(f"perturb.{label}.ink={ink!r}: choose surround, gray or noise.")
