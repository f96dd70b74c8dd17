"""Answers of a rewriting LLM kept on disk: one line of JSON for each question, in the order they came."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

from refadv_ablate.errors import UserError


class Answers:
    """The answers in `folder`/`name`.jsonl. A line that was cut short or edited into something else is
    passed over and its question asked again; of two answers to one question the last counts."""

    def __init__(self, folder: str, name: str) -> None:
        self._path = Path(folder) / f"{name}.jsonl"
        self._known = _read(self._path)

    def get(self, key: str) -> str | None:
        """The answer to a question that was asked before."""
        return self._known.get(key)

    def put(self, key: str, answer: str) -> None:
        """Keeps an answer at once, in one write, so that processes that share the file don't mix lines."""
        self._known[key] = answer
        line = json.dumps({"key": key, "answer": answer}, ensure_ascii=False) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if _torn(self._path):
                line = "\n" + line
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, line.encode("utf-8", "surrogatepass"))
            finally:
                os.close(handle)
        except OSError as error:
            raise UserError(
                f"rewriter.cache={self._path.parent} can't be written ({error.strerror}): give another, "
                "or null to keep no answers."
            ) from error


def _torn(path: Path) -> bool:
    """Whether the last line was cut short."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


@cache
def _read(path: Path) -> dict[str, str]:
    known: dict[str, str] = {}
    if not path.is_file():
        return known
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("key"), str) and isinstance(row.get("answer"), str):
            known[row["key"]] = row["answer"]
    return known
