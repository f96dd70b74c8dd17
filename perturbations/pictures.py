"""The picture changed: what a model finds in another one, and whether it follows when things move."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from perturbations import scenes, sides
from perturbations.base import Single, pictured, refused
from refadv_ablate import edits
from refadv_ablate.errors import UserError
from refadv_ablate.types import Example, Perturbed


@dataclass(frozen=True, slots=True)
class Mirror(Single):
    """Left and right of the picture change places; box x → width − x.

    words=swap: left and right change places in the expression too, so that the same object is meant: a
    model that connects words with sides is right as often as before. words=keep: the expression stays, so
    that one with left or right means another object, if any; without such words it means the same one.
    Which other object is known on drawn scenes; elsewhere only whether answers stay on the old one.

    Not perturbable: expressions in which left or right may not be a side of the picture ("right next to",
    "left behind", "his left hand"), and those about legible things, which a mirror makes illegible.
    """

    words: Literal["swap", "keep"] = "swap"

    @property
    def does(self) -> str:  # type: ignore[override]  # as a class attribute where it is the same for all
        """By its option."""
        swap = "when the picture is mirrored and left and right change places in the words"
        return swap if self.words == "swap" else "when the picture is mirrored and the words are not"

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The trace says whether the expression names a side."""
        text = example.expression
        if problem := sides.why_not(text):
            return refused(example, problem)
        sided = sides.sided(text)
        trace = {"sided": sided}
        if self.words == "swap":
            new = sides.swapped(text)
            return pictured(example, [edits.Mirror()], trace, expectation="invariant", text=new)
        found = pictured(example, [edits.Mirror()], trace, expectation="invariant")
        return _other(found) if sided and found.status == "changed" else found


def _other(mirrored: Perturbed) -> Perturbed:
    """What a sided expression means in the mirrored picture: another object, or the same after all.

    On drawn scenes the object is known; elsewhere only that an answer shouldn't stay where it was.
    """
    before = scenes.resolved(mirrored.original)
    after = scenes.scene_of(mirrored.example)
    if isinstance(before, str) or isinstance(after, str):
        return replace(mirrored, expectation="directional")
    fits = after.fits(before.sentence.meaning)
    if len(fits) != 1 or not after.clear(before.sentence.meaning):
        why = "in the mirrored picture its words mean no one object clearly"
        return Perturbed(mirrored.original, mirrored.original, "not_perturbable", why, mirrored.trace)
    if fits[0] == before.target:
        return mirrored
    box = mirrored.example.candidates[fits[0]].box
    return replace(mirrored, example=replace(mirrored.example, target=box), expectation="directional")


@dataclass(frozen=True, slots=True)
class Blank(Single):
    """A picture of the same size that shows nothing, gray or noise, and the expression as it is.

    What is still hit was found by language and priors alone: where referents use to lie, how large they
    use to be. The image-only counterpart is `fixed` (Cirik et al. 2018 probe both sides).
    """

    does: ClassVar[str] = "when the picture is blank"

    ink: Literal["gray", "noise"] = "gray"

    def __post_init__(self) -> None:
        if self.ink not in ("gray", "noise"):
            raise UserError(f"perturb.blank.ink={self.ink!r}: choose gray or noise.")

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """Boxes stay where they are: there is nothing else to compare an answer with."""
        seed = rng.getrandbits(32) if self.ink == "noise" else 0
        return pictured(example, [edits.Blank(self.ink, seed)], expectation="drop")
