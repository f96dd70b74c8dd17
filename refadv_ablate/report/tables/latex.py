"""Text for pdflatex: specials escaped, and nothing that stops the compiler."""

from __future__ import annotations

import unicodedata

_SPECIALS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",  # \textquotedbl needs another font encoding
    "−": "$-$",
    "–": "--",
    "—": "---",
    "Δ": r"$\Delta$",
    "→": r"$\rightarrow$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    "✓": r"$\surd$",  # \checkmark needs amssymb
    "✗": r"$\times$",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\n": " ",
    "\t": " ",
}


def escape(text: str) -> str:
    """Any text as LaTeX; a character that pdflatex doesn't know by itself becomes its code point."""
    return "".join(map(_character, unicodedata.normalize("NFC", text)))


def _character(character: str) -> str:
    if character in _SPECIALS:
        return _SPECIALS[character]
    if character.isascii() and character.isprintable():
        return character
    if "À" <= character <= "ž" and character.isalpha():
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Mn"):
        return ""  # joiners, direction marks and variation selectors say nothing in print
    return rf"\texttt{{U+{ord(character):04X}}}"
