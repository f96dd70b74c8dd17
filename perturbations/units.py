"""The phrases and clauses after the noun that each tell one thing of the referent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from perturbations import lexicon as lx
from perturbations.attachment import verdict
from perturbations.chunks import Chunk
from perturbations.noun_phrase import noun_phrase
from perturbations.setting import Setting, Verdict
from perturbations.words import Word


@dataclass(slots=True)
class Unit:
    """Chunks that belong together, in parts where "and" or a comma joins equals.

    doubt: 0 where rules or all parses agree on both ends, 1 where most do, 2 where it may be cut wrong.
    """

    parts: list[list[Chunk]]
    doubt: int = 0
    votes: list[str] = field(default_factory=list)
    split: bool = True

    @property
    def chunks(self) -> list[Chunk]:
        """All of them in order."""
        return [c for part in self.parts for c in part]

    @property
    def start(self) -> int:
        """The first word, connectors included."""
        return self.parts[0][0].start

    @property
    def end(self) -> int:
        """One past the last word."""
        return self.parts[-1][-1].end


def units(words: Sequence[Word], found: Sequence[Chunk], head: str, hurried: bool = False) -> list[Unit]:
    """The chunks in units, each with the doubt that its borders leave."""
    made: list[Unit] = []
    for chunk in found:
        if not made:
            made.append(Unit([[chunk]]))
            continue
        unit = made[-1]
        later = (c.joint for c in found if c.start > chunk.start and c.kind == "noun")
        listed = next((joint for joint in later if joint in {"and", "or"}), "")
        said = verdict(Setting(words, unit.chunks, head, listed, hurried), chunk)
        _take(made, unit, chunk, said)
    for unit in made:
        unit.split = len(unit.parts) > 1 and not unit.doubt and not _shared(words, unit)
    for before, unit in pairwise(made):
        if len(before.parts) > 1 and unit.chunks[0].joint and not any(p[0].joint for p in before.parts):
            unit.doubt = (
                2  # the "and" of a list stands before it ("a black cap, a silver barrel, and whose …")
            )
    return made


def _take(made: list[Unit], unit: Unit, chunk: Chunk, said: Verdict) -> None:
    if said.votes:
        unit.votes.append(said.votes)
    if said.join:
        if said.part:
            unit.parts.append([chunk])
        else:
            unit.parts[-1].append(chunk)
        unit.doubt = max(unit.doubt, 0 if said.sure else 1)
        if said.part and unit.chunks[0].kind == "contrast":
            unit.doubt = 2
            if len(made) > 1:
                made[-2].doubt = 2
        return
    fresh = Unit([[chunk]], votes=[said.votes] if said.votes else [])
    if not said.sure:
        unit.doubt, fresh.doubt = max(unit.doubt, 2), 1
    made.append(fresh)


def _shared(words: Sequence[Word], unit: Unit) -> bool:
    """Whether the parts can't go one by one: one negation for all, "between A and B", "suit and tie"."""
    first = unit.parts[0]
    if any(w.low in {"neither", "either"} for w in words[first[0].start : first[-1].end]):
        later_finite = all(part[0].kind in {"finite", "relative"} for part in unit.parts[1:])
        return not later_finite
    if words[first[0].key].low in lx.BETWEEN or any(words[c.key].low in lx.BETWEEN for c in first):
        return True
    later = [part[0] for part in unit.parts[1:]]
    denied = any(c.negated for c in first)
    if denied and any(c.kind != "finite" and not c.negated for c in later):
        return True
    bare = [c for c in later if c.kind in {"noun", "odd"} and not _full(words, c)]
    if bare and len(bare) < len(later):
        unit.doubt = 2
    return bool(bare)


def _full(words: Sequence[Word], chunk: Chunk) -> bool:
    """Whether a joined noun has an article or an attribute of its own; part of a compound is none, since
    an adjective before the first noun may tell of both ("more defined rim holes and hub detail")."""
    phrase = noun_phrase(words, chunk.key)
    return phrase is not None and any(w.kind != "noun" for w in words[phrase.start : phrase.noun])
