"""The SQLite file of an experiment log: there whole, or not there.

MLflow makes its tables in some fifty migrations. A process that is killed among them leaves a file that no
later one can use, so the file is made beside its place and moved there when it is done. The caller holds
the lock of the log meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from refadv_ablate.errors import UserError

OWN = frozenset({"alembic_version", "experiments", "runs", "metrics", "params", "tags"})
"""Tables by which a database is known to be MLflow's, the first that it makes among them."""
SIDES = ("-journal", "-wal", "-shm")


def ensure(path: Path, build: Callable[[Path], None]) -> None:
    """Makes the database by `build` where there is none, or one that was never finished and holds nothing.

    Raises UserError for a database of another program.
    """
    if _holds_experiments(path):
        return
    part = path.with_name(f".{path.name}.part")
    _remove(part)
    try:
        build(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        for side in SIDES:  # a journal of the old file would be played back into the new one
            path.with_name(path.name + side).unlink(missing_ok=True)
        part.replace(path)
    finally:
        _remove(part)


def _holds_experiments(path: Path) -> bool:
    """Whether the file is for MLflow to judge: it has experiments, or is no database to us."""
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(path, timeout=60)) as connection:
            tables = {
                row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
            }
            if tables and not tables & OWN:
                raise UserError(
                    f"{path} is a database of another program; give another tracking.uri=sqlite:///FILE"
                )
            if "experiments" not in tables:
                return False
            return connection.execute("SELECT 1 FROM experiments LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True


def _remove(path: Path) -> None:
    for side in ("", *SIDES):
        path.with_name(path.name + side).unlink(missing_ok=True)
