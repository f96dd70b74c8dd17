"""What it is decided on whether a chunk goes on with what stands before it, and the say of the parses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perturbations import lexicon as lx
from perturbations.chunks import Chunk
from perturbations.words import Word


@dataclass(frozen=True, slots=True)
class Verdict:
    """join: goes on with the unit before it. part: as one of several joined by and, or, a comma.

    sure: whether rules or all parses agree. votes: parses that hang it on the unit before, of all.
    """

    join: bool
    sure: bool = True
    part: bool = False
    votes: str = ""


JOIN, NEW, PART = Verdict(True), Verdict(False), Verdict(True, part=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a verdict is given on: the words, the chunks of the unit so far, and the referent's noun."""

    words: Sequence[Word]
    unit: Sequence[Chunk]
    head: str

    @property
    def last(self) -> Chunk:
        """The chunk just before."""
        return self.unit[-1]

    @property
    def noun(self) -> Word | None:
        """The last noun that the chunk just before names."""
        return None if self.last.noun is None else self.words[self.last.noun]

    listed: str = ""
    """The "and" or "or" by which a later chunk joins a noun: commas before it then are those of a list."""
    hurried: bool = False
    """Whether the text is a caption without articles, cut by classes of words."""

    @property
    def animate(self) -> bool:
        """Whether the referent is a person or animal, who can wear, hold and look."""
        return self.head in lx.ANIMATES

    @property
    def relative(self) -> bool:
        """Whether the unit is a relative clause."""
        return self.unit[0].kind == "relative"

    @property
    def rival(self) -> bool:
        """Whether the last noun is one that what follows can tell of as well as of the referent."""
        inside = self.words[self.last.key : self.last.end] if self.last.noun is not None else []
        toy = len(inside) > 1 and inside[-2].low in {"teddy", "toy"}
        same = self.noun is not None and self.noun.low.rstrip("s") == self.head.rstrip("s")
        return (self.named(lx.ANIMATES) and not toy) or same or any(w.low in lx.GROUPS for w in inside)

    @property
    def placed(self) -> bool:
        """Whether the last noun is a place in the picture."""
        return self.noun is not None and (self.noun.low in lx.PLACE_NOUNS or side(self.noun.low))

    def named(self, names: frozenset[str]) -> bool:
        """Whether the last noun is one of these."""
        return self.noun is not None and self.noun.low in names


def side(low: str | None) -> bool:
    """Whether a noun is a place in the picture that locates by itself ("left", "bottom-center")."""
    return low is not None and any(part in lx.SIDES for part in low.split("-"))


def compares(words: Sequence[Word], chunk: Chunk) -> bool:
    """Whether a chunk says more or less of something, or counts."""
    return any(
        w.low in lx.COMPARATIVES | lx.ORDINALS or w.tag in {"JJR", "RBR"}
        for w in words[chunk.key : chunk.end]
    )


# ── the parses' say ─────────────────────────────────────────────────────────────────────────────


def votes_for(setting: Setting, chunk: Chunk) -> int:
    """How many parses hang the chunk on the unit before it."""
    start = setting.unit[0].start
    return sum(start <= governor < chunk.start for governor in _governors(setting.words, chunk))


def _governors(words: Sequence[Word], chunk: Chunk) -> list[int]:
    """Where each parse hangs the chunk: up from its first word until the governor is outside of it."""
    found = []
    for parse in range(len(words[chunk.key].governors)):
        at, seen = chunk.key, 0
        while chunk.start <= at < chunk.end and seen < len(words):
            at, seen = words[at].governors[parse], seen + 1
        found.append(at)
    return found


def by_vote(setting: Setting, chunk: Chunk, leaning: int = 0) -> Verdict:
    """The majority of the parses; sure where all agree and nothing leans the other way."""
    n = len(setting.words[chunk.key].governors)
    low = votes_for(setting, chunk)
    leaning += any(w.low in lx.GROUPS for w in setting.words[setting.last.key : setting.last.end])
    join = 2 * (low + leaning) > n
    risky = setting.rival or leaning or any(c.joint for c in setting.unit[1:])
    sure = not join and low == 0 and not risky
    return Verdict(join, sure=sure, votes=f"{low}/{n}")
