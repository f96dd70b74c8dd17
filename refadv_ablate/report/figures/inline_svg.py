"""An SVG file as part of an HTML page that holds others."""

from __future__ import annotations

import html
import re


def inline(svg: str, prefix: str, label: str) -> str:
    """The <svg> element alone, its ids made unique by a prefix, its size left to the page."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r'\bid="', f'id="{prefix}', element)
    element = re.sub(r'((?:xlink:)?href)="#', rf'\1="#{prefix}', element)
    element = re.sub(r"url\(#", f"url(#{prefix}", element)
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    head, rest = element.split(">", 1)
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    width = re.search(r'width="([\d.]+)pt"', element.split(">", 1)[0])
    style = f' style="max-width:{float(width[1]) * 1.35:.0f}px"' if width else ""
    return f'{head} role="img" aria-label="{html.escape(label, quote=True)}"{style}>{rest}'
