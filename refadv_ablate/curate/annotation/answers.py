"""What annotators said: an append-only record of blind groundings and verdicts, and what follows from it.

The first blind grounding of an item counts, since nobody is blind twice; of verdicts the last counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from refadv_ablate.boxes import Box, iou
from refadv_ablate.curate.annotation.items import Item
from refadv_ablate.curate.scenes import Scene

HIT_IOU = 0.5
"""A drawn box grounds right from this overlap with the gold box."""

Pixel = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Blind(_Form):
    """Where the annotator finds the referent before seeing the gold box, pixels of the stored image.

    One of point, box, none (found nothing that fits, or more than one thing).
    """

    kind: Literal["blind"] = "blind"
    annotator: str
    item: str
    point: tuple[Pixel, Pixel] | None = None
    box: tuple[Pixel, Pixel, Pixel, Pixel] | None = None
    none: bool = False
    seconds: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    key: Annotated[str, Field(max_length=64)] = ""


class Verdict(_Form):
    """The answers to (a) correct and unambiguous and (b) hard distractors present, having seen the gold.

    reconsidered: whether the annotator, looking again, agrees that the gold box is meant. replaces: key of
    the verdict that the annotator changes by this one, so that two windows can't overwrite each other.
    """

    kind: Literal["verdict"] = "verdict"
    annotator: str
    item: str
    correct: bool
    hard: bool
    reconsidered: bool | None = None
    replaces: Annotated[str, Field(max_length=64)] = ""
    note: Annotated[str, Field(max_length=500)] = ""
    seconds: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    key: Annotated[str, Field(max_length=64)] = ""


@dataclass(slots=True)
class Said:
    """All that one annotator said of one item."""

    blind: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None


Sheet = Mapping[str, Mapping[str, Said]]
"""Annotator → item id → what was said."""


def sheet(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Said]]:
    """The rows of answers.jsonl by annotator and item."""
    found: dict[str, dict[str, Said]] = {}
    for row in rows:
        said = found.setdefault(row["annotator"], {}).setdefault(row["item"], Said())
        if row["kind"] == "verdict":
            said.verdict = dict(row)
        elif said.blind is None:
            said.blind = dict(row)
    return found


def chosen(blind: Mapping[str, Any], scene: Scene) -> int:
    """Which candidate a blind grounding means (from 1); 0 for none of them.

    A point means the smallest candidate it lies in; a box the candidate of the greatest IoU, if ≥ 0.5.
    """
    if blind.get("point"):
        x, y = blind["point"]
        inside = [
            (box.area, n)
            for n, box in enumerate(scene.boxes, 1)
            if box.x1 <= x < box.x2 and box.y1 <= y < box.y2
        ]
        return min(inside)[1] if inside else 0
    if blind.get("box"):
        try:
            drawn = Box(*blind["box"])
        except ValueError:
            return 0
        best = max((iou(drawn, box), -n) for n, box in enumerate(scene.boxes, 1))
        return -best[1] if best[0] >= HIT_IOU else 0
    return 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an item: kept, dropped, or open while annotators are missing."""

    item: Item
    state: Literal["kept", "dropped", "open"]
    reason: str
    verdicts: int


def outcome(item: Item, answers: Sheet, needed: int) -> Outcome:
    """Kept only if `needed` annotators all say that it is correct and has hard distractors.

    One "no" drops an item at once: no later answer can save it.
    """
    verdicts = [said[item.id].verdict for said in answers.values() if item.id in said]
    given = [v for v in verdicts if v is not None]
    wrong = sum(not v["correct"] for v in given)
    easy = sum(not v["hard"] for v in given)
    if wrong or easy:
        why = [f"{wrong} × not correct or ambiguous"] * bool(wrong) + [f"{easy} × no hard distractor"] * bool(
            easy
        )
        return Outcome(item, "dropped", ", ".join(why), len(given))
    if len(given) >= needed:
        return Outcome(item, "kept", "", len(given))
    return Outcome(item, "open", f"{len(given)} of {needed} verdicts", len(given))


def outcomes(items: Sequence[Item], answers: Sheet, needed: int) -> list[Outcome]:
    """Of all items, in order."""
    return [outcome(item, answers, needed) for item in items]
