"""An answer's text in plain signs: digits of any script, full-width forms, quotes, escaped tags."""

from __future__ import annotations

import html
import re
import unicodedata

# Full-width forms are their ASCII sisters. Compatibility forms are not touched: NFKC would turn the
# superscript of 10² into a digit and ½ into 1⁄2, numbers that nobody wrote.
_SIGNS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    ord(sign): plain
    for signs, plain in (
        ("【〔「『", "["), ("】〕」』", "]"), ("〈《⟨", "<"), ("〉》⟩", ">"), ("、،﹐", ","), ("。｡", "."),
        ("؛", ";"), ("؟", "?"), ("−", "-"), ("“”„‟″«»", '"'), ("‘’‚′", "'"), ("\ufeff\u200b\u2060", ""),
        ("\u00a0\u202f\u3000\u2007\u2009", " "), ("\u200e\u200f\u061c", ""),
    )
    for sign in signs
}  # fmt: skip
_LATEX = re.compile(r"\\(?:left|right)(?=[\[\](){}|.])|\\(?=[\[\](){}])")


def plain(text: str) -> str:
    """The text with the signs that stand for brackets, commas, digits and quotes as ASCII has them."""
    if "&" in text:
        text = html.unescape(text)
    text = text.translate(_SIGNS)
    digits = {ord(sign): str(unicodedata.decimal(sign)) for sign in set(text) if _foreign_digit(sign)}
    if digits:
        text = text.translate(digits)
    return _LATEX.sub("", text) if "\\" in text and '\\"' not in text else text


def _foreign_digit(sign: str) -> bool:
    return sign > "\x7f" and unicodedata.decimal(sign, None) is not None
