"""What operators share: one draw, one example at a time, an identity made of the fields."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar

from refadv_ablate.types import EMPTY, Example, Json, Perturbed, Status


class Single:
    """Base of operators: subclasses are frozen dataclasses that define `perturb`."""

    __slots__ = ()

    repeat: ClassVar[bool] = False
    """True for the noise-floor arm: the same request is asked again, past the store."""
    keeps_text: ClassVar[bool] = False
    """True for arms that mean to leave every expression as it is: Δ is their noise, not an effect."""
    version: ClassVar[int] = 1
    """Raised when the same example and generator would give another text."""
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


def result(example: Example, text: str, trace: Mapping[str, Json] = EMPTY, reason: str = "") -> Perturbed:
    """The example with this text; changed or unchanged according to the text alone."""
    status: Status = "unchanged" if text == example.expression else "changed"
    return Perturbed(example.saying(text), example, status, reason, trace)


def refused(example: Example, reason: str, trace: Mapping[str, Json] = EMPTY) -> Perturbed:
    """No perturbed text exists: the example stays as it is, is not asked, and is counted."""
    return Perturbed(example, example, "not_perturbable", reason, trace)
