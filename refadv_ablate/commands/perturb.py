"""The perturb command: perturbed texts as a file that one can read, edit and pass back in.

A perturbation depends on data, operator and seed alone, so these are the very texts that every model
is asked; `perturb=file perturb.file.path=texts.jsonl` asks them from the file, edited or not.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError
from refadv_ablate.running import perturbed_texts
from refadv_ablate.storage.jsonl import write_jsonl
from refadv_ablate.storage.records import perturbed_to_json
from refadv_ablate.types import Data, Example, Json, Operator, Perturbed

Draw = tuple[str, int, Perturbed]
"""Operator label, number of the draw (from 0), the text."""


def materialise(data: Iterable[Example], operators: Mapping[str, Operator], seed: int) -> Iterator[Draw]:
    """Every text of every operator, operator by operator, in the order of the data."""
    for label, operator in operators.items():
        for found in perturbed_texts.perturb_each(data, label, operator, seed):
            yield from ((label, draw, perturbed) for draw, perturbed in enumerate(found))


def row(label: str, draw: int, perturbed: Perturbed) -> dict[str, Json]:
    """A line of the file; what may be edited comes first."""
    line = perturbed_to_json(perturbed)
    return {key: line.pop(key) for key in ("id", "expression", "original", "status")} | {
        "label": label,
        "draw": draw,
        **line,
    }


@dataclass(frozen=True, slots=True)
class Written:
    """What was written for one operator."""

    label: str
    path: Path
    sha256: str
    statuses: Mapping[str, int]
    reasons: Mapping[str, int]
    samples: tuple[tuple[str, str], ...]
    """Some pairs of original and perturbed text."""


def write(draws: Iterable[Draw], label: str, path: Path, show: int = 0, overwrite: bool = False) -> Written:
    """One operator's texts as JSONL, whole or not at all.

    A file that says something else, perhaps edited by hand, is replaced only with `overwrite`.
    """
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    samples: list[tuple[str, str]] = []

    def rows() -> Iterator[dict[str, Json]]:
        for name, draw, perturbed in draws:
            statuses[perturbed.status] += 1
            if perturbed.reason:
                reasons[perturbed.reason] += 1
            if len(samples) < show and perturbed.status == "changed":
                samples.append((perturbed.original.expression, perturbed.example.expression))
            yield row(name, draw, perturbed)

    fresh = path.with_name(f".{path.name}.new")
    try:
        if not write_jsonl(fresh, rows()):
            raise UserError(
                "the data have no examples, so there is nothing to perturb; check data= and limit=."
            )
        digest = hashlib.sha256(fresh.read_bytes()).hexdigest()
        if path.exists() and not overwrite and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise UserError(
                f"{path} is there already with other texts: give another name with to=, or overwrite=true."
            )
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return Written(label, path, digest, statuses, reasons, tuple(samples))


def run(cfg: Any) -> int:
    """The command: reads data, perturb, seed, limit, images, out and command.{to,show} of the config."""
    from refadv_ablate import assets
    from refadv_ablate.data.sample import sampled
    from refadv_ablate.running.plan import examples
    from refadv_ablate.running.settings import Settings

    config = assets.plain(cfg)
    settings = Settings.of(config)
    own = config["command"]
    data = assets.build(config["data"], "data")
    operators = perturbed_texts.with_data(assets.build(config["perturb"], "perturb"), data)
    data = sampled(data, settings.images, settings.seed)
    if not operators:
        raise UserError("no perturbation is chosen: add perturb=bow, or several as 'perturb=[bow,fixed]'")
    target, show, overwrite = own["to"], own["show"], own["overwrite"]
    if not isinstance(target, str) or not isinstance(show, int) or not isinstance(overwrite, bool):
        raise UserError(
            f"to={target!r} must be a file, show={show!r} a number, overwrite={overwrite!r} true or false."
        )

    def stream() -> Iterator[Example]:
        return examples(data, settings.limit)

    for label, operator in operators.items():
        cached = perturbed_texts.texts_path(
            settings.out / "texts", data.fingerprint(), label, operator, settings.seed, settings.limit
        )
        perturbed_texts.ensure(cached, stream, label, operator, settings.seed)
        path = _named(Path(target), label, len(operators))
        found = _read(cached, data, stream(), label, operator.draws)
        _print(write(found, label, path, show, overwrite))
    return 0


def _read(path: Path, data: Data, examples: Iterable[Example], label: str, draws: int) -> Iterator[Draw]:
    """The texts that a run has kept, one draw after another."""
    lines = perturbed_texts.Stream(perturbed_texts.read(path)(), label)
    images = perturbed_texts.OtherImages(data)
    for example in examples:
        for draw, perturbed in enumerate(lines.of(example, draws, images)):
            yield label, draw, perturbed


def _named(path: Path, label: str, operators: int) -> Path:
    path = path if path.suffix else path.with_suffix(".jsonl")
    return path if operators == 1 else path.with_name(f"{path.stem}-{label}{path.suffix}")


def _print(written: Written) -> None:
    counts = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in written.statuses.items())
    print(f"{written.label}: {counts} → {written.path}")
    print(f"  sha256 {written.sha256}")
    for original, text in written.samples:
        print(f"  {original}\n    → {text}")
    for reason, count in sorted(written.reasons.items(), key=lambda item: -item[1])[:5]:
        print(f"  {count} × {reason}")
    print(f"  ask these texts, edited or not: perturb=file perturb.file.path={written.path}")
