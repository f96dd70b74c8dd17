"""Expressions with all descriptors and deletions that a reader accepts, and how a rewriter stands to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from perturbations import DescriptorDeletion
from refadv_ablate.seeding import generator
from refadv_ablate.types import Perturbed
from tests.scripted import example

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "deletion_judged.jsonl"
"""One expression a line: row (of Ref-Adv-s), style, expression, head, perturbable, and descriptors, each
with its place, kind and the texts without it; an alternative one is accepted and not asked for."""

HELD = GOLDEN.with_name("deletion_judged_held.jsonl")
"""The half of the judged expressions that no rule was tuned on."""

SHORT = GOLDEN.with_name("deletion_short.jsonl")
"""Captions in a hurry ("giraffe on right looking left"), most of them with two descriptors after the noun."""

SHORT_HELD = GOLDEN.with_name("deletion_short_held.jsonl")
"""As many more, written before the rules for them and read only after."""


@dataclass(frozen=True)
class Scores:
    """Counts over expressions: deletions of all tried ones, descriptors found of those listed (each once a
    line), listed ones of those found, and perturbable lines that were refused."""

    good: int
    deleted: int
    right: int
    found: int
    hit: int
    listed: int
    refused: int
    perturbable: int
    bad: tuple[str, ...] = ()


def lines(style: str, path: Path = GOLDEN) -> list[Mapping[str, Any]]:
    """The judged expressions of one style: ref_adv_s or refcoco."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [r for r in rows if r["style"] == style]


@cache
def scores(style: str, seeds: tuple[int, ...] = (0,), path: Path = GOLDEN) -> Scores:
    """How the default rewriter does, a deletion counted for each seed, descriptors once."""
    rows = lines(style, path)
    runs = [_run(rows, seed) for seed in seeds]
    told = [(r, p) for run in runs for r, p in zip(rows, run, strict=True) if p.status == "changed"]
    bad = [
        f"{r['expression']} → {p.example.expression}"
        for r, p in told
        if not _accepted(r, p.example.expression)
    ]
    able = [(r, p) for r, p in zip(rows, runs[0], strict=True) if r["perturbable"]]
    found = [(r, set(map(plain, p.trace["descriptors"]))) for r, p in able]
    return Scores(
        good=len(told) - len(bad),
        deleted=len(told),
        right=sum(len(texts & _listed(r)) for r, texts in found),
        found=sum(len(texts) for _, texts in found),
        hit=sum(len(texts & _listed(r, primary=True)) for r, texts in found),
        listed=sum(len(_listed(r, primary=True)) for r, _ in found),
        refused=sum(p.status != "changed" for _, p in able),
        perturbable=len(able),
        bad=tuple(bad),
    )


def _run(rows: Sequence[Mapping[str, Any]], seed: int) -> list[Perturbed]:
    data = [example(i).saying(r["expression"]) for i, r in enumerate(rows)]
    return list(DescriptorDeletion().perturb_many((e, generator(seed, e.id)) for e in data))


def plain(text: str) -> str:
    """Words alone: white space, commas and the gap of a divided descriptor don't count."""
    return re.sub(r"[\s,.…]+", " ", text.lower()).strip()


def _accepted(row: Mapping[str, Any], text: str) -> bool:
    return plain(text) in {plain(x) for d in row["descriptors"] for x in d["deletions"]}


def _listed(row: Mapping[str, Any], primary: bool = False) -> set[str]:
    return {plain(d["text"]) for d in row["descriptors"] if not (primary and d.get("alternative"))}
