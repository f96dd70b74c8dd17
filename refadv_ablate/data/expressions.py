"""What an expression must be before it is put to a model."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 10_000
"""Characters; the longest expression of the published sets has some hundreds."""

_CONTROL = re.compile(
    r"<\|[^<>|\s]{1,40}\|>|<｜[^<>｜]{1,40}｜>"  # Qwen, InternVL, GLM, DeepSeek, Molmo
    r"|</?(?:s|bos|eos|pad|unk|img|image|IMG_CONTEXT|think|answer|ref|box|quad)>"
    r"|<(?:start|end)_of_(?:turn|image)>|<loc_?\d{1,4}>|<seg\d{3}>|\[/?INST\]|<<?/?SYS>>?"
)
"""Tokens by which families end a turn, place an image or write a box."""


def visible(text: str) -> bool:
    """Whether anything can be seen of a text: not only blanks, controls and zero-width characters."""
    return any(not c.isspace() and unicodedata.category(c) not in ("Cf", "Cc", "Mn", "Cn") for c in text)


def unusable(text: str) -> str:
    """Why a text can't be put to a model; empty where it can."""
    if len(text) > LONGEST:
        return f"the expression has {len(text):,} characters, more than {LONGEST:,}"
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "the expression holds half of a surrogate pair, which is no character"
    if "\0" in text:
        return "the expression holds a NUL character"
    if found := _CONTROL.search(text):
        return f"the expression holds {found[0]!r}, which models take for a control token and not for words"
    return ""
