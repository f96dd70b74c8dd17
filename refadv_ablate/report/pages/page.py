"""The frame of every page without a script: one style, no network."""

from __future__ import annotations

import html

from refadv_ablate.errors import printable
from refadv_ablate.report.pages.gallery import static


def page_of(title: str, body: str, more_style: str = "") -> str:
    """A whole HTML document in the report's style; `body` is markup, `more_style` the rules of this page."""
    style = static("page.css") + static("report.css") + more_style
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{html.escape(printable(title), quote=True)}</title><style>{style}</style></head>\n"
        f"<body><main>{body}</main></body></html>\n"
    )
