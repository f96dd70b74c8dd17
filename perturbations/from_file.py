"""Texts that someone has made, read and edited: a file written by the perturb command, or one's own."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perturbations.base import Single
from refadv_ablate import changes
from refadv_ablate.errors import FieldError, UserError
from refadv_ablate.seeding import digest
from refadv_ablate.types import EMPTY, Example, ImageRef, Json, Perturbed, Status

_NEEDED = ("id", "original", "expression")


@dataclass(frozen=True, slots=True)
class FromFile(Single):
    """Perturbed texts from a JSONL file with the keys id, original, expression (and status, reason,
    trace, draw, label, which may be absent).

    path: relative to where the command is started. label: which operator's lines, where the file
    holds those of several. An edited text counts as changed if it differs from the original; a line
    that is still "not_perturbable" with the original text is not asked. Several lines of one id are
    draws, in their order; every id has the same number of them.

    What else a line says of the question (expectation, picture, target, frame, part) is kept; a line whose
    `target` is edited means another object.
    """

    path: str
    label: str | None = None

    @property
    def draws(self) -> int:
        """Lines per example; 0 where examples have sub-conditions."""
        rows = self._rows()
        return 0 if _parted(rows) else len(next(iter(rows.values())))

    def identity(self) -> Mapping[str, Json]:
        """What the texts say, not where they lie."""
        texts = {
            key: [
                [row["original"], row["expression"], row.get("status") == "not_perturbable", *_besides(row)]
                for row in rows
            ]
            for key, rows in self._rows().items()
        }
        return {"operator": "FromFile", "version": self.version, "texts": digest(texts)}

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The first draw of the example."""
        return self._apply(example, 0)

    def perturb_many(self, items: Iterable[tuple[Example, random.Random]]) -> Iterator[Perturbed]:
        """The draws of an example come one after another. Raises UserError for a text that is missing
        or was made for another expression."""
        if not self.draws:
            for found in self.perturb_parts(items):
                yield found[0]
            return
        last, draw = "", 0
        for example, _ in items:
            draw = (draw + 1) % self.draws if example.id == last else 0
            last = example.id
            yield self._apply(example, draw)

    def perturb_parts(
        self, items: Iterable[tuple[Example, random.Random]]
    ) -> Iterator[tuple[Perturbed, ...]]:
        """All lines of each example. Raises UserError as `perturb_many` does."""
        for example, _ in items:
            count = max(1, len(self._rows().get(example.id, ())))
            yield tuple(self._apply(example, draw) for draw in range(count))

    def _apply(self, example: Example, draw: int) -> Perturbed:
        rows = self._rows().get(example.id)
        if rows is None:
            raise UserError(
                f"{self.path} has no text for example {example.id!r}: it was made from other data; write it "
                "anew with the perturb command, or ask only the examples that it has."
            )
        row = rows[draw]
        if row["original"] != example.expression:
            raise UserError(
                f"{self.path}:{row['line']}: the text of {example.id!r} was made for {row['original']!r}, "
                f"but the data say {example.expression!r}; edit only 'expression', or write the file anew."
            )
        left_out = row["expression"] == row["original"] or not row["expression"].strip()
        trace, reason = row.get("trace") or EMPTY, row.get("reason") or "marked in the file"
        try:
            new, told = changes.applied(row, example, self._image)
        except FieldError as error:
            raise UserError(f"{self.path}:{row['line']}: {error}.") from error
        if row.get("status") == "not_perturbable" and left_out:
            return Perturbed(example, example, "not_perturbable", reason, trace, **told)
        new = new.saying(row["expression"])
        status: Status = "unchanged" if new == example else "changed"
        return Perturbed(new, example, status, "", trace, **told)

    def _image(self, key: str) -> ImageRef:
        raise FieldError(f"'picture' is made of image {key!r}: ask such questions by their own operator")

    def _rows(self) -> Mapping[str, list[dict[str, Any]]]:
        path = Path(self.path).absolute()
        try:
            stamp = path.stat()
        except OSError as error:
            raise UserError(
                f"perturb.file.path={self.path} can't be read ({error.strerror}): give the JSONL file that "
                "the perturb command wrote."
            ) from error
        return _read(str(path), self.path, self.label, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=4)
def _read(
    path: str, shown: str, label: str | None, mtime: int, size: int
) -> Mapping[str, list[dict[str, Any]]]:
    """The rows by example id; read again only when the file changes."""
    rows: dict[str, list[dict[str, Any]]] = {}
    labels: set[str] = set()
    with Path(path).open(encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = _row(line, f"{shown}:{number}") | {"line": number}
                    if label is None or row.get("label") == label:
                        labels.add(str(row.get("label", "")))
                        rows.setdefault(row["id"], []).append(row)
        except UnicodeDecodeError as error:
            raise UserError(f"{shown} is not UTF-8 text: save it as UTF-8.") from error
    if len(labels) > 1:
        raise UserError(
            f"{shown} holds the texts of several operators ({', '.join(sorted(labels))}): choose one with "
            "perturb.file.label=."
        )
    _check_draws(rows, shown, label)
    return rows


def _check_draws(rows: Mapping[str, list[dict[str, Any]]], shown: str, label: str | None) -> None:
    if not rows:
        raise UserError(f"{shown} has no lines{f' with label {label!r}' if label else ''}: nothing to ask.")
    if _parted(rows):
        return
    first, draws = next((key, len(found)) for key, found in rows.items())
    for key, found in rows.items():
        if len(found) != draws:
            raise UserError(
                f"{shown} has {draws} lines for example {first!r} but {len(found)} for {key!r}: every "
                "example needs the same number of draws."
            )


def _parted(rows: Mapping[str, list[dict[str, Any]]]) -> bool:
    return any(row.get("part") for found in rows.values() for row in found)


_BESIDES = ("expectation", "part", "placebo", "frame", "picture", "target", "candidates", "distractors")


def _besides(row: Mapping[str, Any]) -> list[Json]:
    """What a line changes besides the text; nothing for lines that change the text alone."""
    found = {name: row[name] for name in _BESIDES if name in row}
    return [found] if found else []


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"{where} is not JSON ({error}): mend or remove the line.") from error
    if not isinstance(row, dict):
        raise UserError(f"{where} must be one JSON object with the keys {', '.join(_NEEDED)}.")
    for key in _NEEDED:
        if not isinstance(row.get(key), str):
            raise UserError(f"{where} needs the key {key!r} with a text.")
    if not row["expression"].strip() and row.get("status") != "not_perturbable":
        raise UserError(
            f"{where} has an empty 'expression': write a text, or set 'status' to not_perturbable to leave "
            "the example out."
        )
    return row
