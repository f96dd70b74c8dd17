"""A table of estimates, apart from how it is written: lines, columns, and published values beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from refadv_ablate.statistics.formatting import because, interval, points, with_interval
from refadv_ablate.types import Estimate

__all__ = ["Column", "Fact", "Line", "Number", "Table"]

ROUNDING = 0.0005
"""A published value is a rounded one: half of 0.1 point."""
EXACT = "exact †"


@dataclass(frozen=True, slots=True)
class Number:
    """An estimate (a fraction) and, where there is one, the published value (a fraction too)."""

    estimate: Estimate
    published: float | None = None
    signed: bool = False

    @property
    def difference(self) -> float | None:
        """Ours − published."""
        if self.published is None or self.estimate.value is None:
            return None
        return self.estimate.value - self.published

    @property
    def within(self) -> bool | None:
        """Whether the published value lies in our interval, its rounding allowed for."""
        low, high = self.estimate.low, self.estimate.high
        if self.published is None or low is None or high is None:
            return None
        return low - ROUNDING <= self.published <= high + ROUNDING

    def shown(self) -> str:
        """The value in points, or why there is none."""
        if self.estimate.value is None:
            return with_interval(self.estimate)
        return points(self.estimate.value, signed=self.signed)

    def interval(self) -> str:
        """[low, high] in points, [n/a] (why) where a value has none, nothing without a value."""
        if self.estimate.value is None:
            return ""
        if self.exact:
            return EXACT
        return interval(self.estimate) or because("[n/a]", self.estimate.note)

    @property
    def exact(self) -> bool:
        """A Δ of 0 because not one pair differs: a note below the table says what that allows to say."""
        return self.estimate.value == 0 and self.estimate.note.startswith("no discordant pairs")

    def published_text(self) -> str:
        """52.4 ✓: the published value and whether our interval holds it."""
        if self.published is None:
            return ""
        mark = {True: " ✓", False: " ✗", None: ""}[self.within]
        return points(self.published, signed=self.signed) + mark

    def against_published(self) -> str:
        """52.4 (+0.0 ✓): the same with ours minus it."""
        if self.published is None or self.difference is None:
            return self.published_text()
        mark = {True: " ✓", False: " ✗", None: ""}[self.within]
        text = points(self.published, signed=self.signed)
        return f"{text} ({points(self.difference, signed=True)}{mark})"


@dataclass(frozen=True, slots=True)
class Fact:
    """A number without an interval, as text, and the published one."""

    text: str
    published: str = ""

    def shown(self) -> str:
        """The text."""
        return self.text

    def interval(self) -> str:
        """None."""
        return ""

    def published_text(self) -> str:
        """The published text."""
        return self.published

    def against_published(self) -> str:
        """The published text."""
        return self.published


Value = Number | Fact


@dataclass(frozen=True, slots=True)
class Column:
    """`group` heads neighbouring columns; `best` marks the highest value in bold."""

    key: str
    title: str
    group: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One row: its labels from left to right, and its values by column key."""

    labels: tuple[str, ...]
    values: Mapping[str, Value]
    section: str = ""
    """Lines of one section stand together; best values are sought within all lines that allow it."""
    ranked: bool = True
    link: str = ""
    """Where an HTML page's reader finds the examples behind the row; the last label leads there."""

    @property
    def has_published(self) -> bool:
        """Whether any value has a published one beside it."""
        return any(value.against_published() for value in self.values.values())


@dataclass(frozen=True, slots=True)
class Table:
    """`label_titles` head the label columns; notes stand below."""

    name: str
    title: str
    label_titles: tuple[str, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    caption: str = ""
    best: Mapping[str, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "best", dict(_best(self.columns, self.lines)))

    def is_best(self, line: Line, column: Column) -> bool:
        """Whether the value is the highest of its column, as far as it is shown."""
        value = line.values.get(column.key)
        return (
            line.ranked
            and isinstance(value, Number)
            and value.estimate.value is not None
            and column.key in self.best
            and round(value.estimate.value, 3) >= round(self.best[column.key], 3)
        )

    def shortened(self, most: int) -> Table:
        """The first lines alone, with a note that says where the others are."""
        if len(self.lines) <= most:
            return self
        note = f"The first {most} of {len(self.lines):,} lines; all are in tables/{self.name}.csv."
        return replace(self, lines=self.lines[:most], notes=(*self.notes, note))

    @property
    def sections(self) -> Iterator[tuple[str, Sequence[Line]]]:
        """Lines that stand together, in order."""
        for name in dict.fromkeys(line.section for line in self.lines):
            yield name, [line for line in self.lines if line.section == name]


def _best(columns: Sequence[Column], lines: Sequence[Line]) -> Iterator[tuple[str, float]]:
    """With fewer than two values nothing is best."""
    for column in columns:
        values = [
            value.estimate.value
            for line in lines
            if line.ranked
            and isinstance(value := line.values.get(column.key), Number)
            and value.estimate.value is not None
        ]
        if column.best and len(values) > 1:
            yield column.key, max(values)
