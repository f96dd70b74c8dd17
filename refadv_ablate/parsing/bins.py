"""Boxes in location tokens, four bins in a row: `<12><305><480><999>`, `<loc0012><loc0305>…`."""

from __future__ import annotations

import re

from refadv_ablate.boxes import Quad

_RUN = re.compile(r"(?:<(?:loc)?\d{1,4}>\s{0,3})+")
_NONE = re.compile(r"<\|box_start\|>\s{0,3}none\s{0,3}(?:<\|box_end\|>|$)", re.IGNORECASE)
_BIN = re.compile(r"<(?:loc)?(\d{1,4})>")


def quads(text: str) -> tuple[Quad, ...]:
    """The boxes of a text in written order, as often as they are there, the numbers as they stand.

    Runs of two bins are points and those of more than four polygons (Rex-Omni, rex_omni/parser.py): no boxes.
    """
    found: list[Quad] = []
    for run in _RUN.finditer(text):
        bins = [float(number) for number in _BIN.findall(run[0])]
        if len(bins) == 4:
            found.append((bins[0], bins[1], bins[2], bins[3]))
    return tuple(found)


def says_none(text: str) -> bool:
    """Whether the box tokens enclose the word None, which the prompt that allows it asks for."""
    return _NONE.search(text) is not None
