"""A record with its score computed anew from the boxes, and where a file said otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace

from refadv_ablate.parsing.scoring import score
from refadv_ablate.types import Record

TOLERANCE = 1e-4
"""A stored IoU may be rounded to four decimals."""


@dataclass(frozen=True, slots=True)
class Row:
    """`record.iou` is recomputed; `stored` is what the file says where the two differ, else None."""

    record: Record
    stored: float | None = None

    @property
    def disagreement(self) -> str:
        """row 17: stored 0.9000, boxes give 0.5000."""
        return (
            f"{self.record.example_id}: stored {self.stored:.4f}, the boxes give {self.record.iou or 0:.4f}"
        )


def scored(record: Record, stored: float | None) -> Row:
    """The record with the IoU of its boxes, whatever it held."""
    value = score(record.outcome, record.predicted, record.target)
    if record.iou != value:
        record = replace(record, iou=value)
    return Row(record, disagreeing(value, stored))


def disagreeing(value: float | None, stored: float | None) -> float | None:
    """The stored IoU where it is another than that of the boxes, else None."""
    if stored is None or value is None or abs(stored - value) <= TOLERANCE:
        return None
    return stored
