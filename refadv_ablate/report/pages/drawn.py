"""Images with boxes over them, and expressions with their changes marked, as markup without a script."""

from __future__ import annotations

import html
from collections.abc import Sequence

from refadv_ablate.boxes import Box
from refadv_ablate.errors import printable
from refadv_ablate.parsing.scoring import on_old_place, right
from refadv_ablate.report.pages.words import Segment
from refadv_ablate.types import Record

Boxes = Sequence[tuple[Box | None, str, str]]
"""(box, the classes of its look, what is written at its corner)."""


def framed(source: str, size: Sequence[float], boxes: Boxes, label: str) -> str:
    """An image (a data URI or nothing) under boxes in pixels of the original; `label` says what it shows."""
    width, height = (max(float(v), 1.0) for v in size)
    image = f'<img src="{escaped(source)}" alt="" loading=lazy>' if source else ""
    known = [(box, look, text) for box, look, text in boxes if box is not None]
    halos = "".join(_rectangle(box, "halo") for box, _, _ in known)
    side = max(width, height) / 24
    lines = "".join(
        f'<g class="{escaped(look.split()[-1])}">{_rectangle(box, "b " + look)}{_corner(box, text, side)}</g>'
        for box, look, text in known
    )
    return (
        f'<span class=frame style="aspect-ratio:{width:g}/{height:g}" role=img aria-label="{escaped(label)}">'
        f'{image}<svg viewBox="0 0 {width:g} {height:g}" preserveAspectRatio=none aria-hidden=true>'
        f"{halos}{lines}</svg></span>"
    )


def result(record: Record, of: str = "IoU ") -> str:
    """What came of an answer, with ✓ or ✗ where it is known to be right or wrong; `of` precedes an IoU."""
    known = right(record)
    if record.predicted is None or record.iou is None:
        return record.outcome.replace("_", " ") + (" ✓" if known else "")
    if on_old_place(record):
        return "a box ✗" if known is False else "a box"
    return f"{of}{record.iou:.2f} {'✓' if known else '✗'}"


def _rectangle(box: Box, look: str) -> str:
    return (
        f'<rect class="{escaped(look)}" x="{box.x1:.1f}" y="{box.y1:.1f}" '
        f'width="{max(box.x2 - box.x1, 0.1):.1f}" height="{max(box.y2 - box.y1, 0.1):.1f}"></rect>'
    )


def _corner(box: Box, text: str, side: float) -> str:
    if not text:
        return ""
    place = f'x="{box.x1 + side / 4:.1f}" y="{box.y1 + side:.1f}" font-size="{side:.1f}"'
    return f"<text {place}>{escaped(text)}</text>"


def marked(segments: Sequence[Segment]) -> str:
    """An expression: what is gone, new or moved in a mark of its kind."""
    return " ".join(
        escaped(text) if kind == "same" else f'<mark class="{kind}">{escaped(text)}</mark>'
        for kind, text in segments
    )


def escaped(text: str) -> str:
    """For element content and for quoted attributes."""
    return html.escape(printable(text), quote=True)
