"""Texts that don't depend on the expression, and control conditions that leave it as it is."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from perturbations.base import Single, result
from refadv_ablate.errors import UserError
from refadv_ablate.types import Example, Perturbed


@dataclass(frozen=True, slots=True)
class Fixed(Single):
    """The same words for every example (the paper's fixed-prompt ablation: "the one").

    What is still located then was located without the language: saliency, priors, a single candidate.
    """

    text: str = "the one"

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UserError("perturb.fixed.text is empty: give the words to ask with, such as 'the one'.")

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Unchanged where the expression is this text already."""
        return result(example, self.text)


@dataclass(frozen=True, slots=True)
class Identity(Single):
    """The expression as it is: the original condition is an operator like any other."""

    keeps_text: ClassVar[bool] = True

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Always unchanged."""
        return result(example, example.expression)


@dataclass(frozen=True, slots=True)
class Repeat(Single):
    """The same request asked again, past the store: the noise floor of a Δ on engines that aren't
    deterministic. `n` repetitions are asked as draws."""

    repeat: ClassVar[bool] = True
    keeps_text: ClassVar[bool] = True
    not_identity: ClassVar[frozenset[str]] = frozenset({"n"})

    n: int = 1

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UserError(f"perturb.repeat.n is {self.n}: it must be at least 1.")

    @property
    def draws(self) -> int:
        """How often the request is asked again."""
        return self.n

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Always unchanged."""
        return result(example, example.expression)
