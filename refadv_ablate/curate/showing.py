"""What the stages show on a terminal: a counting line, and paths as a person would type them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def progress(setting: str, title: str) -> Callable[[int], None]:
    """A line on the terminal that counts; nothing where there is none."""
    shown = setting == "on" or (setting == "auto" and sys.stderr.isatty())

    def heard(n: int) -> None:
        if shown:
            print(f"\r{title}: {n} ", end="", file=sys.stderr, flush=True)

    return heard


def relative(path: Path) -> str:
    """As a person would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
