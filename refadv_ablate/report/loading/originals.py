"""Original accuracies set against each other on the same examples: CoT against direct, thinking against
instruct, larger against smaller.

What a model is, is read from its name: `Qwen3-VL-30B-A3B-Thinking` is family Qwen3-VL, 30 billion
parameters of which 3 are active, and it thinks.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.loading.study import Study
from refadv_ablate.statistics import contrasts, inference
from refadv_ablate.statistics.contrasts import Contrast, Side
from refadv_ablate.types import Estimate

_NAME = re.compile(
    r"(?P<family>.*?)[-_ ](?P<total>\d+(?:\.\d+)?)b(?:[-_ ]?a(?P<active>\d+(?:\.\d+)?)b)?(?P<rest>[-_ ].*)?",
    re.IGNORECASE,
)
STYLES = ("direct", "cot")


@dataclass(frozen=True, slots=True)
class Named:
    """What a model's name says. total, active: parameters in billions; active is None for a dense model."""

    family: str
    total: float
    active: float | None = None
    thinking: bool = False


def named(model: str) -> Named | None:
    """None for a name without a family and a size."""
    found = _NAME.fullmatch(model.rpartition("/")[2])
    if found is None or not found["family"] or not float(found["total"]):
        return None
    thinking = "thinking" in (found["rest"] or "").lower()
    active = float(found["active"]) if found["active"] else None
    return Named(found["family"], float(found["total"]), active, thinking)


@dataclass(frozen=True, slots=True)
class SizeTrend:
    """Change of accuracy for each doubling of the parameters, on examples that all sizes answered.

    sizes: billions of parameters, ascending. sparse: mixtures of experts, by their total. where: family,
    prompt and data.
    """

    where: str
    sizes: tuple[float, ...]
    sparse: bool
    slope: Estimate
    p: float | None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    cell: Cell
    arm: Arm
    named: Named | None

    @property
    def words(self) -> list[str]:
        return re.findall(r"[a-z0-9]+", self.cell.prompt.lower())

    @property
    def cot(self) -> bool:
        return "cot" in self.words

    @property
    def rest(self) -> tuple[str, ...]:
        """The prompt without its style, such as (som, sam)."""
        return tuple(word for word in self.words if word not in STYLES)


def _lines(study: Study) -> list[_Line]:
    """By family and size; those whose name tells none behind, as they came."""
    lines = [_Line(cell, arm, named(cell.model)) for cell, arm in study.originals()]

    def place(line: _Line) -> tuple[bool, str, float, bool]:
        about = line.named
        return (True, "", 0.0, False) if about is None else (False, about.family, about.total, about.thinking)

    return sorted(lines, key=place)


def cot_against_direct(study: Study, metric: str = "acc50") -> list[Contrast]:
    """For each model with both prompts on one data set: CoT − direct, paired; Holm over all of them."""
    lines = _lines(study)
    found = [
        _pair(direct, cot, f"{direct.cell.model} · {direct.cell.names.data}", metric, prompts=True)
        for direct in lines
        for cot in lines
        if not direct.cot
        and cot.cot
        and (direct.cell.model, direct.cell.names.data, direct.rest)
        == (cot.cell.model, cot.cell.names.data, cot.rest)
    ]
    return contrasts.holm(found)


def thinking_against_instruct(study: Study, metric: str = "acc50") -> list[Contrast]:
    """For each size of a family that comes in both: thinking − instruct with each prompt; Holm over all."""
    lines = [line for line in _lines(study) if line.named]
    found = [
        _pair(plain, thinks, f"{_size(plain.named)} · {plain.cell.names.data}", metric)
        for plain in lines
        for thinks in lines
        if plain.named
        and thinks.named
        and thinks.named.thinking
        and replace(thinks.named, thinking=False) == plain.named
        and (plain.cell.names.data, plain.rest) == (thinks.cell.names.data, thinks.rest)
    ]
    return contrasts.holm(found)


def _pair(a: _Line, b: _Line, where: str, metric: str, prompts: bool = False) -> Contrast:
    names = (line.cell.prompt if prompts else f"{line.cell.model}, {line.cell.prompt}" for line in (a, b))
    first, second = (
        Side.of(name, line.arm, line.arm, metric) for name, line in zip(names, (a, b), strict=True)
    )
    return contrasts.contrast(first, second, "original", paired=True, where=where)


def _size(about: Named | None) -> str:
    if about is None:
        return ""
    return f"{about.family} {about.total:g}B" + (f"-A{about.active:g}B" if about.active else "")


def size_trends(study: Study, metric: str = "acc50") -> list[SizeTrend]:
    """For each family in two sizes or more, by thinking, prompt, data, and dense or sparse; Holm over all.

    A mixture of experts has a total and an active size, so it stands in no line with dense models.
    """
    groups: dict[tuple[str, str, str, bool, bool], dict[float, _Line]] = {}
    for line in _lines(study):
        if line.named:
            about = line.named
            key = (
                about.family,
                line.cell.prompt,
                line.cell.names.data,
                about.thinking,
                about.active is not None,
            )
            groups.setdefault(key, {}).setdefault(about.total, line)
    found = [_trend(key, members, metric) for key, members in groups.items() if len(members) > 1]
    adjusted = inference.holm([each.p for each in found])
    return [replace(each, p_holm=p) for each, p in zip(found, adjusted, strict=True)]


def _trend(key: tuple[str, str, str, bool, bool], members: dict[float, _Line], metric: str) -> SizeTrend:
    family, prompt, data, thinking, sparse = key
    sizes = tuple(sorted(members))
    sides = [Side.of("", members[size].arm, members[size].arm, metric) for size in sizes]
    common = reduce(np.intersect1d, (side.example for side in sides))
    sides = [side.where(np.isin(side.example, common)) for side in sides]
    doublings = np.array([math.log2(size) for size in sizes])
    weights = (doublings - doublings.mean()) / ((doublings - doublings.mean()) ** 2).sum()
    values = sum(w * side.original for w, side in zip(weights, sides, strict=True))
    slope = replace(sides[0], original=np.asarray(values), perturbed=np.asarray(values))
    none = replace(slope, original=np.zeros(len(common)), perturbed=np.zeros(len(common)))
    made = contrasts.contrast(none, slope, "original", paired=True)
    name = f"{family}-Thinking" if thinking else family
    return SizeTrend(" · ".join([name, prompt, data]), sizes, sparse, made.difference, made.p)
