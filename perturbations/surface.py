"""Changes that keep the meaning, or all of it but the kind: what a robust model should shrug off."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from perturbations.base import Single, refused, result
from refadv_ablate.errors import UserError
from refadv_ablate.types import Example, Perturbed

_LETTERS = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class CategoryOnly(Single):
    """The name of the referent's category and nothing else: what can be found by kind alone.

    text: with the placeholder {category}. Needs data with categories.
    """

    text: str = "the {category}"

    def __post_init__(self) -> None:
        if "{category}" not in self.text:
            raise UserError(
                f"perturb.category.text={self.text!r} has no {{category}}: perturb=fixed asks a fixed text."
            )

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Not perturbable where the category is unknown."""
        if not example.category:
            return refused(example, "the data have no category for it")
        return result(example, self.text.replace("{category}", example.category))


@dataclass(frozen=True, slots=True)
class LetterCase(Single):
    """The same words in capitals, or without any."""

    case: Literal["upper", "lower"] = "upper"

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Unchanged in scripts without case."""
        text = example.expression
        return result(example, text.upper() if self.case == "upper" else text.lower())


@dataclass(frozen=True, slots=True)
class Typos(Single):
    """Slips of the finger: in some words two neighbouring letters change places.

    rate: share of the words of four letters or more that get one slip, at least one word. The first
    and the last letter stay, so that a reader hardly stumbles; white space and punctuation stay too.
    """

    not_identity: ClassVar[frozenset[str]] = frozenset({"n_draws"})

    rate: float = 0.3
    n_draws: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise UserError(f"perturb.typos.rate is {self.rate}: a share above 0 and up to 1 is needed.")
        if self.n_draws < 1:
            raise UserError(f"perturb.typos.n_draws is {self.n_draws}: it must be at least 1.")

    @property
    def draws(self) -> int:
        """Independent slips per expression."""
        return self.n_draws

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The trace keeps the slipped words by where they begin."""
        text = example.expression
        spots = {m.start(): _swaps(m.group()) for m in _LETTERS.finditer(text)}
        able = [start for start, swaps in spots.items() if swaps]
        if not able:
            return result(example, text, reason="no word in which two letters could change places")
        chosen = sorted(rng.sample(able, max(1, round(self.rate * len(able)))))
        letters = list(text)
        for start in chosen:
            at = start + rng.choice(spots[start])
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
        return result(example, "".join(letters), trace={"words": chosen})


def _swaps(word: str) -> list[int]:
    """Places whose letter differs from the next one, neither being the first or the last."""
    return [i for i in range(1, len(word) - 2) if word[i] != word[i + 1]]
