"""Where an answer landed: on the referent, on a distractor of its category, on another object, on nothing.

Boxes and candidates are in pixels of one image. "Loosely" is an IoU with the referent of 0.1 to 0.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.types import Candidate, Example

Landing = Literal[
    "referent", "loosely", "same category", "another object", "whole image", "elsewhere", "no box"
]
LANDINGS: tuple[Landing, ...] = get_args(Landing)
HIT, LOOSE, WHOLE = 0.5, 0.1, 0.95


def landing(
    predicted: Box | None,
    target: Box,
    candidates: Sequence[Candidate] = (),
    category: str | None = None,
    size: Size = (0, 0),
) -> Landing:
    """The kind of an answer. Without candidates a miss is loose, whole or elsewhere, never a distractor.

    A candidate is hit at IoU ≥ 0.5, if no other box is hit better; the whole image is 95% of its area.
    """
    if predicted is None:
        return "no box"
    own = iou(predicted, target)
    if own >= HIT:
        return "referent"
    others = [(iou(predicted, each.box), each) for each in candidates if each.box != target]
    best, found = max(others, key=lambda pair: pair[0], default=(0.0, None))
    if found is not None and best >= HIT:
        same = category is not None and found.category == category
        return "same category" if same else "another object"
    if size[0] and size[1] and predicted.area >= WHOLE * size[0] * size[1]:
        return "whole image"
    return "loosely" if own >= LOOSE else "elsewhere"


def by_chance(example: Example) -> Mapping[Landing, float] | None:
    """Where pointing at any candidate with equal chance would land; None without candidates."""
    k = len(example.candidates)
    if not k:
        return None
    counts = dict.fromkeys(LANDINGS, 0)
    for each in example.candidates:
        counts[landing(each.box, example.target, example.candidates, example.category)] += 1
    return {kind: n / k for kind, n in counts.items()}
