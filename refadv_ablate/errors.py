"""What a person can mend: each error is one sentence that says what, where, and what to do."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable


class UserError(Exception):
    """A mistake or a lack on the user's side; the command line prints its text and exits with 2."""


class ModelUnavailable(UserError):
    """Weights or a server that can't be had now; what was answered so far is kept."""


class BudgetReached(UserError):
    """The run stopped before it would have spent more than `budget_usd`; what was answered is kept."""


class ImageUnreadable(UserError):
    """An image that is missing, broken, too large, or outside the data root."""


def printable(text: str) -> str:
    """The text with control characters written out, so that no data or server commands a terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


FULL = (errno.ENOSPC, errno.EDQUOT)
"""What a system says where nothing more can be written: no room, or none left of a quota."""


def unwritten(path: object, error: OSError) -> str:
    """The sentence for a file that can't be written; answers are stored as they come, so none is lost."""
    if error.errno in FULL:
        return (
            f"the disk is full: {path} can't be written; make room and give the same command again, "
            "it goes on from what is kept"
        )
    mend = (
        "raise the limit of a file's size (ulimit -f)" if error.errno == errno.EFBIG else "check the rights"
    )
    return f"can't write {path}: {error.strerror or error}; {mend}"


class FieldError(ValueError):
    """A value that isn't what its place needs; says which, and becomes a UserError with file and line."""


def shown(value: object) -> str:
    """A value as an error sentence shows it, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that a misspelt `word` was probably meant to be; None where none is near."""
    return next(iter(difflib.get_close_matches(word, sorted(choices), n=1, cutoff=0.5)), None)


def nearest(word: str, choices: Iterable[str]) -> str:
    """A clause naming the nearest match and the choices, to end a sentence about an unknown `word`."""
    options = sorted(choices)
    close = closest(word, options)
    hint = f"did you mean {close!r}? " if close else ""
    return f"{hint}choices: {', '.join(options)}" if options else "there is nothing to choose from"
