"""Counts over the expressions of a data set, as the paper's Table 1 has them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from refadv_ablate.parsing.scoring import length_in_words
from refadv_ablate.types import ORIGINAL, Record


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Lengths in words; sizes as square root of the area in pixels; negation as a fraction."""

    images: int
    instances: int
    expressions: int
    mean_words: float
    mean_distractors: float | None
    negation: float | None
    smallest: float
    largest: float
    vocabulary: int


def lexicon(records: Iterable[Record]) -> Lexicon:
    """Over the original condition; each example once. An instance is a box on an image."""
    seen: dict[str, Record] = {}
    for record in records:
        if record.condition == ORIGINAL:
            seen.setdefault(record.example_id, record)
    cases = list(seen.values())
    sizes = [math.sqrt(case.target.area) for case in cases]
    distractors = [case.distractors for case in cases if case.distractors is not None]
    negations = [case.negation for case in cases if case.negation is not None]
    words = {word for case in cases for word in _words(case.original_expression)}
    return Lexicon(
        images=len({case.image for case in cases}),
        instances=len({(case.image, case.target) for case in cases}),
        expressions=len(cases),
        mean_words=_mean([length_in_words(case.original_expression) for case in cases]) or 0.0,
        mean_distractors=_mean(distractors),
        negation=_mean(negations),
        smallest=min(sizes, default=0.0),
        largest=max(sizes, default=0.0),
        vocabulary=len(words),
    )


def _words(expression: str) -> list[str]:
    return re.findall(r"[\w'’-]*\w", expression.lower())


def _mean(values: list[int] | list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
