"""How all figures look: one palette that the colour-blind and a grey printer can tell apart, SVG and PNG.

Series differ by colour, marker and hatch at once. Colours are Okabe and Ito's, in an order of
different lightness. No pyplot: a figure is an object, nothing global is kept open.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PALETTE = ("#0072B2", "#D55E00", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#009E73")
"""Blue is the original condition, orange the perturbed one, on the pages too; green is their target."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo")
INK, SOFT, FAINT = "#1a1a1a", "#666666", "#d9d9d9"

SETTINGS = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.formatter.use_mathtext": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,
    "pdf.fonttype": 42,  # letters stay text that a journal's check accepts
    "svg.hashsalt": "refadv-ablate",
    "savefig.facecolor": "white",
}


@contextmanager
def drawing(width: float, height: float, *, rows: int = 1, columns: int = 1) -> Iterator[tuple[Any, Any]]:
    """A matplotlib Figure of this size in inches and its axes, within the style."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Any, stem: Path) -> list[Path]:
    """Writes stem.svg, stem.png (160 dpi) and stem.pdf (for a paper), the same bytes for the same figure."""
    from matplotlib import rc_context

    stem = Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    svg, png = stem.with_name(f"{stem.name}.svg"), stem.with_name(f"{stem.name}.png")
    with rc_context(SETTINGS):
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
        figure.savefig(png, dpi=160, metadata={"Software": None})
        pdf = stem.with_name(f"{stem.name}.pdf")
        logging.getLogger("fontTools").setLevel(logging.WARNING)  # tells of every glyph it embeds
        _for_paper(figure)
        figure.savefig(pdf, metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return [svg, png, pdf]


COLUMN_IN, PAGE_IN, PAPER_PT = 3.3, 6.9, 8.0
"""Widths of a column and of a two-column page, and the largest text in a figure that needs no scaling."""


def _for_paper(figure: Any) -> None:
    """The figure in one of the two widths that papers take, its text in their size."""
    from matplotlib.text import Text

    wide, high = figure.get_size_inches()
    figure.set_size_inches(PAGE_IN if wide > 1.7 * COLUMN_IN else COLUMN_IN, high * (1 if wide > 6 else 0.75))
    for text in figure.findobj(Text):
        text.set_fontsize(min(text.get_fontsize(), PAPER_PT))


def empty(axes: Any, why: str) -> None:
    """States in the plot's place why there is nothing to plot."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", color=SOFT, transform=axes.transAxes, wrap=True)
