"""Commands of this package as a user gives them, what they answered, and whether two of them agree."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.engines.environments import ROOT
from benchmarks.engines.serving import QUIET, alone_after, end_group

Key = tuple[str, str, int]
Rows = dict[Key, dict[str, Any]]
PRIVATE = ("attempts",)
"""Fields of a record that tell how it came about and not what was answered."""


class Failed(Exception):
    """A command ended otherwise than it should have."""


def operators() -> list[str]:
    """Every perturbation that needs no file and no service of its own."""
    found = []
    for path in sorted((ROOT / "conf" / "perturb").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if "???" not in text and "api_key" not in text and yaml.safe_load(text):
            found.append(path.stem)
    return found


@dataclass(frozen=True)
class Work:
    """What every engine is asked: checkpoint (a model's YAML), number of examples, operators."""

    model: str
    n: int
    operators: tuple[str, ...]
    extra: tuple[str, ...] = ()

    def words(self, out: Path, backend: Sequence[str] = ()) -> list[str]:
        """The command's words."""
        return [
            f"perturb=[{','.join(self.operators)}]", f"model={self.model}", f"data.n={self.n}", f"out={out}",
            "tracking=none", "pages=false", "gallery=0", "progress=off", *backend, *self.extra,
        ]  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """What a command came to. code: its exit status, None where it had to be ended.

    left: its processes that were alive 5 s after it had ended.
    """

    code: int | None
    seconds: float
    told: str
    left: int = 0


def command(
    words: Sequence[str],
    folder: Path,
    python: Path | str = sys.executable,
    seconds: float = 1800,
    meanwhile: Callable[[subprocess.Popen[bytes]], None] | None = None,
    variables: Mapping[str, str] = QUIET,
    module: str = "refadv_ablate",
) -> Ran:
    """Runs the package (or another module) with these words; all its processes are gone afterwards.

    meanwhile: called once the command runs. A command that lives on after `seconds` is ended. What it
    says goes to command.log in folder.
    """
    log = folder / "command.log"
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(python), "-m", module, *words], stdout=file, stderr=file,
            env={**os.environ, **variables, "PYTHONPATH": str(ROOT)}, cwd=folder, start_new_session=True,
        )  # fmt: skip
    code: int | None = None
    left = 0
    try:
        if meanwhile is not None:
            meanwhile(process)
        code = process.wait(max(1.0, seconds - (time.monotonic() - started)))
    except subprocess.TimeoutExpired:
        code = None
    finally:
        spent = time.monotonic() - started
        left = alone_after(process, 5)
        end_group(process)
    return Ran(code, spent, log.read_text(encoding="utf-8", errors="replace"), left)


def answered(out: Path) -> Rows:
    """The records of every cell under out, by example, condition and draw."""
    return {
        (row["example_id"], row["condition"], row["draw"]): row
        for path in sorted(out.glob("cells/*/predictions.jsonl"))
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    }


def summaries(out: Path) -> Iterator[dict[str, Any]]:
    """The summaries of every cell under out."""
    for path in sorted(out.glob("cells/*/summary.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def stored(out: Path) -> int:
    """How many answers the store under out has so far."""
    path = out / "store.db"
    if not path.is_file():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1) as database:
            return int(database.execute("select count(*) from replies").fetchone()[0])
    except sqlite3.Error:
        return 0


@dataclass(frozen=True)
class Agreement:
    """Two engines on the same questions. asked_alike: same expressions; the rest are counts of answers."""

    n: int
    texts: int
    tokens: int
    asked_alike: bool
    first: str = ""


def agreement(reference: Rows, other: Rows) -> Agreement:
    """How many answers are the same text, and the same number of generated tokens. Missing ones differ."""
    texts = tokens = 0
    first = ""
    for key, row in reference.items():
        theirs = other.get(key, {"text": None, "usage": {}, "expression": row["expression"]})
        same = theirs["text"] == row["text"]
        texts += same
        tokens += theirs["usage"].get("output_tokens") == row["usage"]["output_tokens"]
        if not same and not first:
            first = f"{key}: {row['text']!r}, {theirs['text']!r}"
    both = reference.keys() & other.keys()
    alike = bool(both) and all(other[key]["expression"] == reference[key]["expression"] for key in both)
    return Agreement(len(reference), texts, tokens, alike, first)


def same_records(one: Rows, two: Rows) -> bool:
    """Whether two runs left the same records."""

    def plain(rows: Rows) -> Any:
        return {key: {k: v for k, v in row.items() if k not in PRIVATE} for key, row in rows.items()}

    return bool(one) and plain(one) == plain(two)
