"""An SVG file as part of an HTML page that holds others."""

from __future__ import annotations

import html
import re

THEMED = {
    "#1a1a1a": "ink",
    "#000000": "ink",
    "#666666": "soft",
    "#d9d9d9": "line",
    "#ffffff": "raised",
    "#0072b2": "original",
    "#d55e00": "perturbed",
    "#009e73": "target",
}
"""Colours of a figure's file → the variables of the page's theme that stand for them."""


def inline(svg: str, prefix: str, label: str) -> str:
    """The <svg> element alone, its ids made unique by a prefix, its size and its colours left to the page."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r'\bid="', f'id="{prefix}', element)
    element = re.sub(r'((?:xlink:)?href)="#', rf'\1="#{prefix}', element)
    element = re.sub(r"url\(#", f"url(#{prefix}", element)
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'style="[^"]*"', _themed, element)
    head, rest = element.split(">", 1)
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    width = re.search(r'width="([\d.]+)pt"', element.split(">", 1)[0])
    style = f' style="max-width:{float(width[1]) * 1.35:.0f}px"' if width else ""
    return f'{head} role="img" aria-label="{html.escape(label, quote=True)}"{style}>{rest}'


def _themed(style: re.Match[str]) -> str:
    def variable(colour: re.Match[str]) -> str:
        name = THEMED.get(colour[0].lower())
        return f"var(--{name}, {colour[0]})" if name else colour[0]

    return re.sub(r"#[0-9a-fA-F]{6}", variable, style[0])
