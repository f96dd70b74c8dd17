"""Where in its image the referent lies, as labels to slice by."""

from __future__ import annotations

from collections.abc import Iterator

from refadv_ablate.boxes import Box, Size

ACROSS = ("left third", "middle third", "right third")
DOWN = ("top third", "middle third", "bottom third")
CENTRE, OFF_CENTRE = "centre", "off centre"
NAMES = ("position", "position_x", "position_y")


def positions(target: Box, size: Size) -> Iterator[tuple[str, str]]:
    """(name, label) by the centre of the box, both in pixels; nothing where the image's size isn't known.

    position_x and position_y: the third of the width and of the height. position: centre where both are the
    middle third.
    """
    width, height = size
    if width <= 0 or height <= 0:
        return
    across = _third((target.x1 + target.x2) / 2 / width)
    down = _third((target.y1 + target.y2) / 2 / height)
    yield "position_x", ACROSS[across]
    yield "position_y", DOWN[down]
    yield "position", CENTRE if across == down == 1 else OFF_CENTRE


def _third(share: float) -> int:
    """0, 1 or 2; a box may stick out of its image by rounding."""
    return min(2, max(0, int(share * 3)))
