"""An expression that nothing in the picture fits: does the model say so, where it may?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from perturbations.base import Parts, refused, result
from perturbations.scenes import SHAPES, VALUES, Resolved, read, resolved, substituted
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Example, Perturbed

What = Literal["attribute", "category"]
WHATS: tuple[What, ...] = get_args(What)


@dataclass(frozen=True, slots=True)
class Absent(Parts):
    """One word changed so that nothing in the picture is meant; the prompt, and that of the original beside
    it, allows the answer "none".

    kinds: attribute: a size, fill or colour that no object of the category has. category: a kind of object
    of which the picture has none. Each is a sub-condition of its own. Exact on drawn scenes.
    """

    or_none: ClassVar[bool] = True

    kinds: Sequence[What] = WHATS

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in WHATS:
                raise UserError(f"perturb.absent.kinds has no {kind!r}; {nearest(str(kind), WHATS)}.")
        if not self.kinds:
            raise UserError(f"perturb.absent.kinds is empty: name some of {', '.join(WHATS)}.")

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """The trace says which word became which."""
        found = resolved(example)
        if isinstance(found, str):
            return [refused(example, found)]
        made = [p for kind in WHATS if kind in self.kinds and (p := _changed(example, found, kind, rng))]
        return made or [
            refused(example, f"the picture lacks no {' or '.join(self.kinds)} that could be asked for")
        ]


def _changed(example: Example, found: Resolved, kind: What, rng: random.Random) -> Perturbed | None:
    changes = list((_categories if kind == "category" else _attributes)(found))
    if not changes:
        return None
    was, now, text = rng.choice(changes)
    trace = {"kind": kind, "descriptor": was, "now": now}
    return result(example, text, trace, expectation="reject", part=kind)


Change = tuple[str, str, str]
"""The old word (or none), the new one, the new text."""


def _attributes(found: Resolved) -> Iterator[Change]:
    """Another value of an attribute that is said; a colour is added where none is said."""
    pieces = [piece for piece in found.sentence.pieces if piece.kind == "attribute"]
    start, end = found.sentence.noun
    noun = found.sentence.text[start:end]
    changes = [(p.text, value, {p.spans[0]: value}) for p in pieces for value in VALUES[p.name]]
    if not any(p.name == "colour" for p in pieces):
        changes += [("", value, {(start, end): f"{value} {noun}"}) for value in VALUES["colour"]]
    for was, now, words in changes:
        new = read(substituted(found.sentence.text, words))
        if new is not None and not any(new.meaning.head.fits(thing) for thing in found.scene.things):
            yield was, now, new.text


def _categories(found: Resolved) -> Iterator[Change]:
    present = {thing["shape"] for thing in found.scene.things}
    for shape in SHAPES:
        if shape not in present:
            text = substituted(found.sentence.text, {found.sentence.noun: shape})
            yield found.sentence.meaning.head.shape, shape, text
