"""Whether a tab-separated file is quoted as ordinary CSV writers quote, or holds its quotes as text.

Both kinds are about: pandas and spreadsheets write "the ""blue"" cup", while published tables hold captions
with lone quotes and no quoting at all. Nothing in the name tells, so the file's own quotes decide.
"""

from __future__ import annotations

import csv
import re
from functools import lru_cache
from pathlib import Path

JUDGED = 1 << 26
"""Characters by which a file is judged; a table of text is smaller."""

_CELL = re.compile(r'"((?:[^"]|"")*)"(?=[\t\r\n]|\Z)|([^\t\r\n]*)')
_SEPARATOR = re.compile(r"\t|\r\n|\r|\n")


def is_quoted(path: Path) -> bool:
    """Whether cells in double quotes are quoted cells. Raises OSError and UnicodeDecodeError."""
    status = path.stat()
    return _is_quoted(path, status.st_mtime_ns, status.st_size)


def cells_of(line: str, quoted: bool) -> list[str]:
    """The cells of one line without its line break. Raises csv.Error for quotes that don't close."""
    if not quoted:
        return line.split("\t")
    return next(csv.reader([line], delimiter="\t", strict=True), [])


@lru_cache(maxsize=16)
def _is_quoted(path: Path, _time: int, _length: int) -> bool:
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = file.read(JUDGED)
        if file.read(1):
            text = text[: text.rfind("\n") + 1]
    return quoted_text(text)


def quoted_text(text: str) -> bool:
    """The same of a table's whole text.

    Quoted: it reads as such, no bare cell holds a quote (a writer would have quoted that one), and
    something shows a writer at work: a doubled quote, cells that hold tabs or line breaks and would
    tear the table otherwise, a header in quotes, or a column in which every cell is in quotes.
    """
    if '"' not in text:
        return False
    rows = _parsed(text)
    width = len(rows[0]) if rows else 0
    if not rows or any(len(row) != width for row in rows):
        return False
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if line]
    if any(line.count("\t") != width - 1 for line in lines):
        return True
    whole = any(all(row[at][0] for row in rows[1:]) for at in range(width)) and len(rows) > 3
    doubled = any(quoted and '""' in cell for row in rows for quoted, cell in row)
    torn = any(re.search(r"[\t\r\n]", cell) for row in rows for quoted, cell in row if quoted)
    return not torn and (doubled or whole or all(quoted for quoted, _ in rows[0]))


def _parsed(text: str) -> list[list[tuple[bool, str]]]:
    """Rows of (in quotes, content with doubled quotes as they are), without blank lines.

    None at all where a bare cell holds a quote.
    """
    rows: list[list[tuple[bool, str]]] = [[]]
    place = 0
    while True:
        cell = _CELL.match(text, place)
        assert cell is not None
        if cell[1] is None and '"' in cell[2]:
            return []
        rows[-1].append((cell[1] is not None, cell[1] if cell[1] is not None else cell[2]))
        separator = _SEPARATOR.match(text, cell.end())
        if separator is None:
            break
        if separator[0] != "\t":
            rows.append([])
        place = separator.end()
    return [row for row in rows if row not in ([], [(False, "")])]
