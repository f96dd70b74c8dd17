"""The perturbed texts of a data set: made once per (data, operator, seed), shared by every model.

A file holds one line per draw of each example, in the order of the data. While it is being made it is
a `.part` file that only grows; an interrupted one is continued, so that an LLM is not asked twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from refadv_ablate.running.ask import batched
from refadv_ablate.running.sweep import slugify
from refadv_ablate.seeding import digest, generator
from refadv_ablate.storage.jsonl import read_jsonl, to_line
from refadv_ablate.storage.records import perturbed_to_json
from refadv_ablate.types import Example, Json, Operator, Perturbed

BATCH = 256
"""Examples perturbed at once; bounds memory, and what parsers and LLMs work on together."""
FLUSH = 16


def perturb_all(
    examples: Iterable[Example], label: str, operator: Operator, seed: int
) -> Iterator[Perturbed]:
    """Every draw of every example, in order; depends on each example, the operator and the seed alone."""
    return operator.perturb_many(
        (example, generator(seed, example.id, label, draw))
        for example in examples
        for draw in range(operator.draws)
    )


def texts_path(
    folder: Path, data: Mapping[str, Json], label: str, operator: Operator, seed: int, limit: int | None
) -> Path:
    """Where the texts of this combination lie; `data` is the data's fingerprint."""
    key = digest(data, label, operator.identity(), operator.draws, seed, limit)
    return folder / f"{slugify(label)}-{key[:16]}.jsonl"


def ensure(
    path: Path,
    examples: Callable[[], Iterable[Example]],
    label: str,
    operator: Operator,
    seed: int,
) -> Path:
    """As `ensure_all`, for one operator."""
    ensure_all({label: (path, operator)}, examples, seed)
    return path


def ensure_all(
    wanted: Mapping[str, tuple[Path, Operator]], examples: Callable[[], Iterable[Example]], seed: int
) -> None:
    """Makes the files that aren't there in one pass over the data, going on where one was interrupted."""
    from filelock import FileLock

    with ExitStack() as stack:
        for path in sorted(path for path, _ in wanted.values()):
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(f"{path}.lock"))
        parts = {
            label: _Part.opened(path, operator, stack)
            for label, (path, operator) in wanted.items()
            if not _whole(path)
        }
        if not parts:
            return
        first = 0
        for batch in batched(examples(), BATCH):
            for label, part in parts.items():
                rest = batch[max(0, part.done - first) :]
                part.write(perturb_all(rest, label, part.operator, seed))
            first += len(batch)
        for part in parts.values():
            part.finish()


def _whole(path: Path) -> bool:
    """Whether the file is there to its last line; one that isn't is taken for a part, and gone on with."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if file.read() == b"\n":
            return True
    path.replace(path.with_suffix(".part"))
    return False


@dataclass
class _Part:
    """A file in the making; `done` examples are in it."""

    path: Path
    file: IO[bytes]
    operator: Operator
    done: int

    @classmethod
    def opened(cls, path: Path, operator: Operator, stack: ExitStack) -> _Part:
        part = path.with_suffix(".part")
        done = _complete_lines(part) // operator.draws
        length = _length_of(part, done * operator.draws)
        file = stack.enter_context(part.open("r+b" if part.exists() else "wb"))
        file.truncate(length)
        file.seek(length)
        return cls(path, file, operator, done)

    def write(self, found: Iterable[Perturbed]) -> None:
        """Each text is in the file before an expensive next one is made."""
        for count, perturbed in enumerate(found, 1):
            self.file.write((to_line(perturbed_to_json(perturbed)) + "\n").encode())
            if count % FLUSH == 0:
                self.file.flush()
        self.file.flush()

    def finish(self) -> None:
        """Gives the whole file its name."""
        self.file.close()
        self.path.with_suffix(".part").rename(self.path)


def read(path: Path) -> Callable[[], Iterator[Mapping[str, Json]]]:
    """A function that reads the file's lines anew each time."""
    return lambda: read_jsonl(path)


def count(path: Path) -> int:
    """How many lines the file has."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _complete_lines(part: Path) -> int:
    if not part.exists():
        return 0
    count = 0
    with part.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            try:
                json.loads(line)
            except ValueError:
                break
            count += 1
    return count


def _length_of(part: Path, lines: int) -> int:
    """Bytes of the first `lines` lines."""
    if not part.exists() or lines == 0:
        return 0
    with part.open("rb") as file:
        return sum(len(line) for line in islice(file, lines))
