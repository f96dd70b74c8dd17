"""The perturbed texts of a data set: made once per (data, operator, seed), shared by every model.

A file holds one line per draw of each example, in the order of the data. While it is being made it is
a `.part` file that only grows; an interrupted one is continued, so that an LLM is not asked twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO

from refadv_ablate.changes import Images
from refadv_ablate.data.sample import whole
from refadv_ablate.errors import FieldError, UserError, unwritten
from refadv_ablate.running.ask import batched
from refadv_ablate.running.sweep import slugify
from refadv_ablate.seeding import digest, generator
from refadv_ablate.storage.jsonl import read_jsonl, to_line
from refadv_ablate.storage.records import perturbed_from_json, perturbed_to_json
from refadv_ablate.types import Data, Example, ImageRef, Json, NeedsData, Operator, Parted, Perturbed

BATCH = 256
"""Examples perturbed at once; bounds memory, and what parsers and LLMs work on together."""
FLUSH = 16
LINES = ".lines"
"""The suffix of the small file that says how many lines the file of texts was finished with."""


def perturb_all(
    examples: Iterable[Example], label: str, operator: Operator, seed: int
) -> Iterator[Perturbed]:
    """Every draw of every example, in order; depends on each example, the operator and the seed alone."""
    return chain.from_iterable(perturb_each(examples, label, operator, seed))


def perturb_each(
    examples: Iterable[Example], label: str, operator: Operator, seed: int
) -> Iterator[Sequence[Perturbed]]:
    """As `perturb_all`, example by example."""
    if isinstance(operator, Parted):
        return operator.perturb_parts(
            (example, generator(seed, example.id, label, 0)) for example in examples
        )
    found = operator.perturb_many(
        (example, generator(seed, example.id, label, draw))
        for example in examples
        for draw in range(operator.draws)
    )
    return batched(found, operator.draws)


def with_data(operators: Mapping[str, Operator], data: Data) -> dict[str, Operator]:
    """The same operators, those that draw on other examples with the data at hand."""
    return {
        label: operator.with_data(data) if isinstance(operator, NeedsData) else operator
        for label, operator in operators.items()
    }


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
    """Whether the file is there to its last line; one that isn't is taken for a part, and gone on with.

    How many lines it was finished with stands beside it: a file that was cut at the end of a line looks
    whole by itself. Files of earlier versions have no such number.
    """
    if not path.exists():
        return False
    ended, lines = _lines_of(path)
    if ended and lines >= _finished_with(path):
        return True
    path.replace(path.with_suffix(".part"))
    return False


def _lines_of(path: Path) -> tuple[bool, int]:
    """Whether the last line has its end, and how many have."""
    lines, last = 0, b""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            lines, last = lines + piece.count(b"\n"), piece[-1:]
    return last == b"\n", lines


def _finished_with(path: Path) -> int:
    try:
        return int(path.with_suffix(LINES).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


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
        done, lines = _complete_examples(part, operator.draws)
        length = _length_of(part, lines)
        file = stack.enter_context(part.open("r+b" if part.exists() else "wb"))
        file.truncate(length)
        file.seek(length)
        return cls(path, file, operator, done)

    def write(self, found: Iterable[Perturbed]) -> None:
        """Each text is in the file before an expensive next one is made."""
        for count, perturbed in enumerate(found, 1):
            self._put((to_line(perturbed_to_json(perturbed)) + "\n").encode(), count % FLUSH == 0)
        self._put(b"", True)

    def _put(self, line: bytes, flush: bool) -> None:
        try:
            self.file.write(line)
            if flush:
                self.file.flush()
        except OSError as error:
            raise UserError(unwritten(self.path.with_suffix(".part"), error)) from error

    def finish(self) -> None:
        """Gives the whole file its name."""
        self.file.close()
        _, lines = _lines_of(self.path.with_suffix(".part"))
        self.path.with_suffix(LINES).write_text(f"{lines}\n", encoding="ascii")
        self.path.with_suffix(".part").rename(self.path)


def read(path: Path) -> Callable[[], Iterator[Mapping[str, Json]]]:
    """A function that reads the file's lines anew each time."""
    return lambda: read_jsonl(path)


class Stream:
    """The texts of one operator, which follow the order of the data."""

    def __init__(self, lines: Iterator[Mapping[str, Json]], label: str) -> None:
        self.lines, self.label = lines, label
        self.ahead = next(lines, None)

    def of(self, example: Example, draws: int, images: Images) -> Iterator[Perturbed]:
        """The example's texts; UserError where the next ones are of another."""
        found = 0
        while found < (draws or 1) or (not draws and self.ahead and self.ahead.get("id") == example.id):
            yield self._next(example, images)
            found += 1

    def _next(self, example: Example, images: Images) -> Perturbed:
        mend = "give another out=, or delete the file of these texts under out/texts"
        if self.ahead is None:
            raise UserError(
                f"the texts of {self.label} end before the data does (there is none for {example.id!r}): "
                f"their file was cut, or rows came since; {mend}"
            )
        try:
            perturbed = perturbed_from_json(self.ahead, example, images)
        except FieldError as error:
            raise UserError(
                f"the texts of {self.label} were made for other examples than the data has now ({error}): "
                f"images or rows came or went since; {mend}"
            ) from error
        self.ahead = next(self.lines, None)
        return perturbed


@dataclass
class OtherImages:
    """Image key → image; the data are gone through once, when the first one is wanted."""

    data: Data
    _known: dict[str, ImageRef] | None = field(default=None, init=False, repr=False)

    def __call__(self, key: str) -> ImageRef:
        """Raises FieldError for a key that the data lack."""
        if self._known is None:
            self._known = {}
            for example in whole(self.data):
                self._known.setdefault(example.image.key, example.image)
        try:
            return self._known[key]
        except KeyError as error:
            raise FieldError(f"the data have no image {key!r}") from error


def count(path: Path) -> tuple[int, int]:
    """How many examples and how many lines the file has."""
    examples = lines = 0
    last: Json = None
    for row in read_jsonl(path):
        lines += 1
        examples += row.get("id") != last
        last = row.get("id")
    return examples, lines


def _complete_examples(part: Path, draws: int) -> tuple[int, int]:
    """Examples of which the file has every text, and their lines.

    Where an example has as many texts as it gives (draws 0), the last one may lack some and isn't counted.
    """
    ids = list(_complete_ids(part))
    if draws:
        return len(ids) // draws, len(ids) // draws * draws
    whole = [each for each in ids if each != ids[-1]]
    return len(set(whole)), len(whole)


def _complete_ids(part: Path) -> Iterator[Json]:
    if not part.exists():
        return
    with part.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line).get("id")
            except ValueError:
                return


def _length_of(part: Path, lines: int) -> int:
    """Bytes of the first `lines` lines."""
    if not part.exists() or lines == 0:
        return 0
    with part.open("rb") as file:
        return sum(len(line) for line in islice(file, lines))
