"""Pickles from outside, read as plain data: nothing in them can name a class or run code."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError


class _ForbiddenError(Exception):
    """The pickle asks for a class or function."""


class _PlainUnpickler(pickle.Unpickler):
    """Admits what needs no import: dicts, lists, tuples, sets, text, bytes, numbers, booleans, None."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Refuses every class and function, harmless ones too: plain data has none."""
        raise _ForbiddenError(f"{module_name}.{global_name}")

    def persistent_load(self, pid: Any) -> Any:
        """Refuses references to things outside the file."""
        raise _ForbiddenError(f"persistent object {pid!r}")


def read_pickle(path: Path) -> Any:
    """The plain data in a pickle file. Raises UserError for anything else, for truncated and broken files.

    Python 2 wrote the published files: their byte strings are UTF-8, else Latin-1.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror})") from error
    try:
        try:
            return _PlainUnpickler(io.BytesIO(data), encoding="utf-8").load()
        except UnicodeDecodeError:
            return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except _ForbiddenError as error:
        raise UserError(
            f"{path} is refused: the pickle names {error}, and only plain data is read; get the file from "
            "its original source"
        ) from error
    except Exception as error:
        # a malformed pickle can make the unpickler raise nearly anything; no code of the file ran
        raise UserError(
            f"{path} is no complete pickle ({type(error).__name__}: {error}); download it again"
        ) from error
