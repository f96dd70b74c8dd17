"""What operators share: one draw, one example at a time, an identity made of the fields."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

from refadv_ablate.boxes import SAME_FRAME, Box, Size
from refadv_ablate.edits import Edit, edited
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.types import EMPTY, Example, Expectation, Json, Perturbed, Status


class Single:
    """Base of operators: subclasses are frozen dataclasses that define `perturb`."""

    __slots__ = ()

    repeat: ClassVar[bool] = False
    """True for the noise-floor arm: the same request is asked again, past the store."""
    keeps_text: ClassVar[bool] = False
    """True for arms that mean to leave every expression as it is: Δ is their noise, not an effect."""
    version: ClassVar[int] = 1
    """Raised when the same example and generator would give another question."""
    or_none: ClassVar[bool] = False
    """True where the question, and the original beside it, allow the answer "none"."""
    does: ClassVar[str] = ""
    """What was done, as the end of a sentence about answers: "when the picture is mirrored"."""
    not_identity: ClassVar[frozenset[str]] = frozenset()
    """Fields that never change a single text, such as how many draws are made."""

    @property
    def draws(self) -> int:
        """How many independent perturbations of one example are asked."""
        return 1

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Keeps the id, the image and the target."""
        raise NotImplementedError

    def perturb_many(self, items: Iterable[tuple[Example, random.Random]]) -> Iterator[Perturbed]:
        """As `perturb`, in the same order."""
        for example, rng in items:
            yield self.perturb(example, rng)

    def identity(self) -> Mapping[str, Json]:
        """Class, version and those fields that determine a text."""
        own = {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name not in self.not_identity}  # type: ignore[arg-type]  # every subclass is a dataclass
        return {"operator": type(self).__name__, "version": self.version, **own}


def plain(value: Any) -> Json:
    """The JSON of a field: what has an identity of its own speaks for itself."""
    return dict(value.identity()) if hasattr(value, "identity") else value


class Parts(Single):
    """Base of operators that ask an example in several labelled sub-conditions: define `parts`.

    The generator is one for all sub-conditions of an example; each `Perturbed` says its `part`.
    """

    __slots__ = ()

    @property
    def draws(self) -> int:
        """As many as an example has sub-conditions."""
        return 0

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """At least one, if only to say why there is none."""
        raise NotImplementedError

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The first sub-condition."""
        return self.parts(example, rng)[0]

    def perturb_many(self, items: Iterable[tuple[Example, random.Random]]) -> Iterator[Perturbed]:
        """The first sub-condition of each example."""
        for found in self.perturb_parts(items):
            yield found[0]

    def perturb_parts(
        self, items: Iterable[tuple[Example, random.Random]]
    ) -> Iterator[tuple[Perturbed, ...]]:
        """The sub-conditions of each example, in the same order."""
        for example, rng in items:
            yield tuple(self.parts(example, rng))


def result(
    example: Example,
    text: str,
    trace: Mapping[str, Json] = EMPTY,
    reason: str = "",
    *,
    expectation: Expectation = "drop",
    part: str = "",
    target: Box | None = None,
) -> Perturbed:
    """The example with this text; changed or unchanged according to the text alone.

    target: the box of another object that the text means now (expectation `directional`).
    """
    status: Status = "unchanged" if text == example.expression else "changed"
    new = example.saying(text) if target is None else replace(example, expression=text, target=target)
    return Perturbed(new, example, status, reason, trace, expectation, part=part)


def pictured(
    example: Example,
    edits: Sequence[Edit],
    trace: Mapping[str, Json] = EMPTY,
    *,
    expectation: Expectation,
    text: str | None = None,
    part: str = "",
    placebo: bool = False,
) -> Perturbed:
    """The example on its edited image: target, candidates and frame follow the edits.

    An expression that is empty and an image that can't be read can't be asked: they are not perturbable.
    """
    if not example.expression.strip():
        return refused(example, "the expression is empty", trace, part=part, placebo=placebo)
    try:
        own = example.image.size()
    except ImageUnreadable as error:
        return refused(example, str(error), trace, part=part, placebo=placebo)
    image = edited(example.image, *edits)
    frame = SAME_FRAME
    for edit, size in _sizes(own, edits):
        frame = frame.then(edit.frame(size))
    candidates = tuple(replace(c, box=frame(c.box)) for c in example.candidates)
    new = replace(
        example,
        image=image,
        expression=example.expression if text is None else text,
        target=frame(example.target),
        candidates=candidates,
    )
    return Perturbed(new, example, "changed", "", trace, expectation, frame, part, placebo)


def _sizes(size: Size, edits: Sequence[Edit]) -> Iterator[tuple[Edit, Size]]:
    for edit in edits:
        yield edit, size
        size = edit.size(size)


def refused(
    example: Example, reason: str, trace: Mapping[str, Json] = EMPTY, *, part: str = "", placebo: bool = False
) -> Perturbed:
    """No perturbed question exists: the example stays as it is, is not asked, and is counted."""
    return Perturbed(example, example, "not_perturbable", reason, trace, part=part, placebo=placebo)
