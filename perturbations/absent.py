"""An expression that nothing in the picture fits: does the model say so, where it may?"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, get_args

from perturbations.base import Parts, refused, result
from perturbations.scenes import SHAPES, VALUES, Resolved, read, resolved, substituted
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Data, Example, HasNoTargets, NoTarget, Perturbed

What = Literal["attribute", "category"]
WHATS: tuple[What, ...] = get_args(What)


@dataclass(frozen=True, slots=True)
class Absent(Parts):
    """One word changed so that nothing in the picture is meant; the prompt, and that of the original beside
    it, allows the answer "none".

    kinds: attribute: a size, fill or colour that no object of the category has. category: a kind of object
    of which the picture has none. Each is a sub-condition of its own. Exact on drawn scenes.

    Where the data have expressions without a referent (gRefCOCO's no-target ones, FineCops-Ref's negatives),
    those are asked, each beside the expression that it was made from, else beside one about the same image.
    """

    does: ClassVar[str] = "about something that the picture doesn't show"
    or_none: ClassVar[bool] = True
    not_identity: ClassVar[frozenset[str]] = frozenset({"given"})

    kinds: Sequence[What] = WHATS
    given: Given | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in WHATS:
                raise UserError(f"perturb.absent.kinds has no {kind!r}; {nearest(str(kind), WHATS)}.")
        if not self.kinds:
            raise UserError(f"perturb.absent.kinds is empty: name some of {', '.join(WHATS)}.")

    def with_data(self, data: Data) -> Absent:
        """The same operator; the data are gone through when the first of their expressions is wanted."""
        return replace(self, given=Given(data)) if isinstance(data, HasNoTargets) else self

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """The trace says which word became which, or what the data say of their expression."""
        if self.given is not None and self.given:
            return list(_told(example, self.given.of(example)))
        found = resolved(example)
        if isinstance(found, str):
            return [refused(example, found)]
        made = [p for kind in WHATS if kind in self.kinds and (p := _changed(example, found, kind, rng))]
        return made or [
            refused(example, f"the picture lacks no {' or '.join(self.kinds)} that could be asked for")
        ]


class Given:
    """A data set's own expressions without a referent, each set beside one example."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def __bool__(self) -> bool:
        return bool(self._table)

    def of(self, example: Example) -> Sequence[NoTarget]:
        """Those that are asked beside an example, in stored order."""
        return self._table.get(example.id, ())

    @cached_property
    def _table(self) -> dict[str, list[NoTarget]]:
        """Each beside the example that it was made from; one of its own beside an example on its image, by
        turns, so that each is asked once."""
        own = list(self.data.no_targets()) if isinstance(self.data, HasNoTargets) else []
        table: dict[str, list[NoTarget]] = {}
        if not own:
            return table
        authors: dict[str, str] = {}
        on_image: dict[str, list[str]] = {}
        for example in self.data:
            authors[str(example.attributes.get("id", ""))] = example.id
            on_image.setdefault(example.image.key, []).append(example.id)
        turns: Counter[str] = Counter()
        for one in own:
            beside = on_image.get(one.image, ()) if not one.of else [authors[one.of]] * (one.of in authors)
            if beside:
                table.setdefault(beside[turns[one.image] % len(beside)], []).append(one)
                turns[one.image] += 1
        return table


def _told(example: Example, given: Sequence[NoTarget]) -> Iterator[Perturbed]:
    if not given:
        yield refused(example, "the data have no expression without a referent that goes with it")
    times: Counter[str] = Counter()
    for one in given:
        label = one.kind or "no target"
        times[label] += 1
        part = label if times[label] == 1 else f"{label} {times[label]}"
        trace = {"kind": one.kind, "of": one.of}
        yield result(example, one.expression, trace, expectation="reject", part=part)


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
