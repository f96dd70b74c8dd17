"""The picture's quality and frame: what should not change which object is meant.

The idea of graded corruptions is that of ImageNet-C (Hendrycks and Dietterich 2019); the grades here are
our own, chosen so that a person still finds the object at grade 5.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from perturbations.base import Parts, pictured, refused
from refadv_ablate import edits
from refadv_ablate.boxes import Size
from refadv_ablate.errors import ImageUnreadable, UserError
from refadv_ablate.types import Example, Expectation, Perturbed

Kind = Literal["gray", "jpeg", "blur", "noise", "scale", "pad"]
KINDS: tuple[Kind, ...] = get_args(Kind)
JPEG = (50, 35, 25, 15, 10)
"""Quality by severity 1…5."""
BLUR = (0.002, 0.003, 0.005, 0.007, 0.010)
"""Standard deviation as a fraction of the shorter side."""
NOISE = (6.0, 10.0, 16.0, 24.0, 34.0)
"""Standard deviation of 255."""
SCALE = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Factor of both sides."""
PAD = (0.04, 0.08, 0.12, 0.16, 0.20)
"""Pixels added along each side, as a fraction of it, shared at random between its two ends."""

COLOURS = re.compile(
    r"(?<![\w-])(?:(?:light|dark|bright|pale|deep|navy|off|multi)[\s-]?)?(?:red|green|blue|yellow|purple|orange"
    r"|pink|brown|black|white|gr[ae]y|beige|tan|gold|golden|silver|turquoise|teal|violet|maroon|cyan|magenta"
    r"|cream|colou?r(?:ed|ful)?|(?:red|blue|green|yellow|brown|gray|grey|pink)ish)(?![\w-])",
    re.IGNORECASE,
)
"""Words of colour; black, white and gray among them, which gray pictures keep, so as to err on that side."""


@dataclass(frozen=True, slots=True)
class ImageQuality(Parts):
    """The same question about a picture of another quality or frame, for each kind and severity.

    kinds: gray, jpeg, blur, noise (worse pictures), scale, pad (the frame alone). severities: 1 to 5; gray
    has none. Nothing of the meaning changes, so answers should stay where the map puts them; only under
    gray are expressions with words of colour expected to fall.
    """

    does: ClassVar[str] = "when the picture's quality or frame changes"

    kinds: tuple[Kind, ...] = KINDS
    severities: tuple[int, ...] = (1, 3, 5)

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise UserError(f"perturb.image.kinds has {kind!r}: choose from {', '.join(KINDS)}.")
        if not self.kinds or not self.severities:
            raise UserError("perturb.image needs at least one of kinds and one of severities.")
        if not all(1 <= severity <= 5 for severity in self.severities):
            raise UserError(
                f"perturb.image.severities={list(self.severities)}: each is a number from 1 to 5."
            )

    def parts(self, example: Example, rng: random.Random) -> Sequence[Perturbed]:
        """`gray`, `jpeg-1`, `jpeg-3` …; the generator decides the grain of the noise and the ends padded."""
        try:
            size = example.image.size()
        except ImageUnreadable as error:
            return [refused(example, str(error))]
        seed, left, top = rng.getrandbits(32), rng.random(), rng.random()
        found = []
        for kind in self.kinds:
            for severity in self.severities if kind != "gray" else (0,):
                edit = _edit(kind, severity, size, seed, (left, top))
                part = f"{kind}-{severity}" if severity else kind
                coloured = kind == "gray" and COLOURS.search(example.expression) is not None
                expectation: Expectation = "drop" if coloured else "invariant"
                found.append(pictured(example, [edit], expectation=expectation, part=part))
        return found


def _edit(kind: Kind, severity: int, size: Size, seed: int, ends: tuple[float, float]) -> edits.Edit:
    at = severity - 1
    if kind == "gray":
        return edits.Grayscale()
    if kind == "jpeg":
        return edits.Jpeg(JPEG[at])
    if kind == "blur":
        return edits.Blur(BLUR[at])
    if kind == "noise":
        return edits.Noise(NOISE[at], seed)
    if kind == "scale":
        return edits.Scale(SCALE[at])
    across, down = (round(PAD[at] * side) for side in size)
    left, top = round(across * ends[0]), round(down * ends[1])
    return edits.Pad(left, top, across - left, down - top)
