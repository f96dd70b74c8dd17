"""Predictions on disk, whoever wrote them, as arms that can be compared: everything from the boxes again.

A cell is one model on one data set with one prompt: the original condition and any number of perturbed
ones. Its records can be read again, lazily, for pages that show them.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm, examples_of
from refadv_ablate.report.loading import refadv_files
from refadv_ablate.report.loading.rows import Row, scored
from refadv_ablate.statistics.understanding import Answers
from refadv_ablate.storage.jsonl import read_each, read_json, read_jsonl
from refadv_ablate.storage.records import record_from_json
from refadv_ablate.types import ORIGINAL, Json, Record

PREDICTIONS = "predictions.jsonl"
PATTERNS = (PREDICTIONS, "*predictions.jsonl", "*predictions.jsonl.gz", "*predictions.tsv")
KEPT = (
    "chance_acc50",
    "chance_acc50_n",
    "chance_same_category",
    "keeps_text",
    "noise_floor",
    "does",
    "settings",
    "hash",
)
"""Details of a summary that a report made anew needs."""
SHOWN = 5
"""Rows named in a warning about disagreeing IoUs; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a cell is called; empty where a file doesn't say."""

    model: str = ""
    data: str = ""
    prompt: str = ""
    checkpoint: str = ""


@dataclass(slots=True)
class Cell:
    """Predictions of one model on one data set with one prompt, by condition."""

    names: Names
    path: Path
    read: Callable[[], Iterator[Row]]
    arms: dict[str, Arm] = field(default_factory=dict)
    planned: int = 0
    warnings: list[str] = field(default_factory=list)
    config: Mapping[str, Json] = field(default_factory=dict)
    details: Mapping[str, Json] = field(default_factory=dict)
    """What the run knew that can't be seen in boxes: the chance level, whether the texts were kept."""

    variant: str = ""
    """What else tells it from others of its names, such as `seed 1`."""
    answers: dict[str, Answers] = field(default_factory=dict)
    """By perturbed condition, what its scores beyond accuracy are made of; `load` fills it."""

    @property
    def prompt(self) -> str:
        """As tables show it: with the settings that tell this cell from others of its names."""
        return " · ".join(filter(None, (self.names.prompt, self.variant)))

    @property
    def model(self) -> str:
        """As tables show it."""
        return self.names.model

    @property
    def operators(self) -> list[str]:
        """The conditions besides the original."""
        return [condition for condition in self.arms if condition != ORIGINAL]

    def records(self) -> Iterator[Record]:
        """Reads the file again."""
        return (row.record for row in self.read())

    def load(self) -> Cell:
        """Fills arms and answers; disagreeing IoUs and a file without image names become warnings."""
        disagreements: list[str] = []
        disagreeing = 0
        originals = Answers()
        for row in self.read():
            record = row.record
            arm = self.arms.get(record.condition)
            if arm is None:
                arm = self.arms[record.condition] = Arm()
            arm.add(record)
            if record.condition == ORIGINAL:
                originals.add(record)
            else:
                self.answers.setdefault(record.condition, originals.beside()).add(record)
            if row.stored is not None:
                disagreeing += 1
                if disagreeing <= SHOWN:
                    disagreements.append(row.disagreement)
        if not self.arms:
            raise UserError(f"{self.path} holds no predictions")
        self.planned = max(self.planned, examples_of(list(self.arms.values())))
        self.warnings.extend(_disagreement_warning(disagreements, disagreeing))
        return self


def from_files(paths: Sequence[str | Path], given: Names = Names()) -> list[Cell]:
    """The cells of files, cell folders, sweep folders and patterns, loaded.

    `given` names what the files don't say themselves. Raises UserError where nothing is found or a file
    can't be read.
    """
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    if not files:
        raise UserError(
            "nothing to report on: give prediction files or a results folder, such as path=results"
        )
    return [_open(file, given).load() for file in files]


def _files(path: str | Path) -> list[Path]:
    place = Path(path).expanduser()
    if place.is_file():
        return [place]
    if (place / "sweep.json").is_file():
        return _cells_of_sweep(place)
    if place.is_dir():
        found = sorted({file for pattern in PATTERNS for file in place.rglob(pattern)})
        if not found:
            raise UserError(f"{place} holds no prediction files ({', '.join(PATTERNS)})")
        return found
    # Path.glob takes no absolute pattern
    matches = sorted(glob.glob(str(place), recursive=True)) if glob.has_magic(str(place)) else []  # noqa: PTH207
    if not matches:
        raise UserError(f"no such file or folder: {place} (looked from {Path.cwd()})")
    return [file for match in matches for file in _files(match)]


def _cells_of_sweep(folder: Path) -> list[Path]:
    """The predictions of its cells; a results folder that was moved is looked for beside it."""
    found = []
    for state in sorted((folder / "cells").glob("*.json")):
        named = Path(read_json(state).get("folder") or ".")
        for cell in (named, folder.parent.parent / "cells" / named.name):
            if named.name and (cell / PREDICTIONS).is_file():
                found.append(cell / PREDICTIONS)
                break
    if not found:
        raise UserError(f"{folder} is a sweep without finished cells; run its command again")
    return found


def _open(file: Path, given: Names) -> Cell:
    if file.suffix == ".tsv":
        row = refadv_files.first_line(file)
        return Cell(_theirs(file, row, given), file, lambda: refadv_files.read_tsv(file))
    first = next(read_jsonl(file), None)
    if first is None:
        raise UserError(f"{file} holds no predictions")
    if refadv_files.is_theirs(first):
        return Cell(_theirs(file, first, given), file, lambda: refadv_files.read_jsonl(file))
    if "example_id" not in first:
        raise UserError(
            f"{file}:1: neither a prediction of this harness (example_id, target, …) nor one of the "
            f"Ref-Adv authors ({', '.join(refadv_files.REQUIRED)}); its fields are {', '.join(first)}"
        )
    return _ours(file, given)


def _theirs(file: Path, row: Mapping[str, Json], given: Names) -> Names:
    model, prompt = refadv_files.labels(row)
    checkpoint = model or given.checkpoint
    return Names(
        model=given.model or (model or _model_of(file)).rpartition("/")[2],
        data=given.data or "ref_adv_s",
        prompt=given.prompt or prompt or _prompt_of(file),
        checkpoint=checkpoint,
    )


def _model_of(file: Path) -> str:
    """What a file that doesn't name its model calls it: the stem without prompt and ending."""
    return re.sub(r"_(?:direct|cot)_predictions$", "", file.stem.removesuffix(".jsonl"))


def _prompt_of(file: Path) -> str:
    """Their runs are named model_prompt_predictions."""
    return "cot" if "_cot" in file.stem else "direct" if "_direct" in file.stem else ""


def _ours(file: Path, given: Names) -> Cell:
    """A cell folder names itself in summary.json or config.yaml, a lone file by what is given."""
    folder = file.parent
    summary = _summary(folder)
    config = _config(folder)
    names = Names(
        model=given.model or summary.get("model") or _at(config, "model", "name") or folder.name,
        data=given.data or summary.get("data") or _at(config, "data", "name") or "",
        prompt=given.prompt or summary.get("prompt") or _at(config, "prompt", "style") or "",
        checkpoint=given.checkpoint or _at(config, "model", "checkpoint") or "",
    )
    cell = Cell(names, file, lambda: _read_ours(file), planned=summary.get("planned") or 0, config=config)
    cell.warnings.extend(summary.get("warnings") or ())
    known = summary.get("details") or {}
    cell.details = {key: known[key] for key in KEPT if key in known}
    return cell


def _read_ours(file: Path) -> Iterator[Row]:
    def make(line: dict[str, Json]) -> Row:
        record = record_from_json(line)
        return scored(record, record.iou)

    return read_each(file, make)


def _summary(folder: Path) -> Mapping[str, Any]:
    path = folder / "summary.json"
    return read_json(path) if path.is_file() else {}


def _config(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.yaml"
    if not path.is_file():
        return {}
    import yaml  # type: ignore[import-untyped]  # published without type information

    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UserError(f"{path} is no valid YAML: {error}") from error
    return tree if isinstance(tree, dict) else {}


def _at(tree: Mapping[str, Any], *keys: str) -> str:
    value: Any = tree
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def _disagreement_warning(shown: Sequence[str], number: int) -> Iterable[str]:
    if shown:
        more = f" and {number - SHOWN} more" if number > SHOWN else ""
        yield f"{number} stored IoU disagree with the boxes (the boxes count): {'; '.join(shown)}{more}"
