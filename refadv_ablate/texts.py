"""The perturbed texts of a data set: made once per (data, operator, seed), shared by every model.

A file holds one line per draw of each example, in the order of the data. While it is being made it is
a `.part` file that only grows; an interrupted one is continued, so that an LLM is not asked twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from refadv_ablate.jsonl import read_jsonl, to_line
from refadv_ablate.records import perturbed_to_json
from refadv_ablate.seeding import digest, generator
from refadv_ablate.sweep import slugify
from refadv_ablate.types import Example, Json, Operator, Perturbed


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
    heard: Callable[[int], None] = lambda n: None,
) -> Path:
    """Makes the file unless it is there, going on where an interrupted run stopped."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if path.exists():
            return path
        part = path.with_suffix(".part")
        done = _complete_lines(part) // operator.draws
        with part.open("r+b" if part.exists() else "wb") as file:
            file.truncate(_length_of(part, done * operator.draws))
            file.seek(0, 2)
            rest = islice(iter(examples()), done, None)
            for count, perturbed in enumerate(perturb_all(rest, label, operator, seed), 1):
                file.write((to_line(perturbed_to_json(perturbed)) + "\n").encode())
                if count % 64 == 0:
                    file.flush()
                    heard(done + count // operator.draws)
        part.rename(path)
    return path


def read(path: Path) -> Callable[[], Iterator[Mapping[str, Json]]]:
    """A function that reads the file's lines anew each time."""
    return lambda: read_jsonl(path)


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
