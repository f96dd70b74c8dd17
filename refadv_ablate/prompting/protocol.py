"""Whose way of asking and reading a run follows: each model's own authors', or a published evaluator's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from refadv_ablate import assets
from refadv_ablate.boxes import Quad
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.frames import OriginalPixels, Relative, ResizedPixels
from refadv_ablate.prompting.prompts import Style
from refadv_ablate.types import ModelSpec, NoBox


class Reading(Protocol):
    """A protocol: changes how a model is asked and read."""

    def apply(self, spec: ModelSpec, style: Style) -> tuple[ModelSpec, Style, tuple[str, ...]]:
        """The changed model and style, and what a result must say about it. Raises UserError."""


@dataclass(frozen=True, slots=True)
class RefAdv:
    """The evaluator of the Ref-Adv authors: run.py and configs/qwen.yaml of dddraxxx/Ref-Adv."""

    seed: int = 7
    max_new_tokens: int = 1024
    jpeg_quality: int = 95

    def apply(self, spec: ModelSpec, style: Style) -> tuple[ModelSpec, Style, tuple[str, ...]]:
        """Their prompts exist for the styles direct and cot; a text of one's own is not theirs."""
        if style.style not in ("direct", "cot") or style.file:
            raise UserError(
                f"protocol=ref_adv has the authors' two prompts, direct and cot, and not {style.name}; "
                "use prompt=direct or prompt=cot, or protocol=none"
            )
        theirs = replace(
            spec,
            prompts={name: f"ref_adv/{name}.txt" for name in ("direct", "cot")},
            system=None,
            image_first=False,
            lowercase=False,
            resize_before_sending=False,
            sampling=replace(
                spec.sampling, temperature=0.0, top_p=1.0, seed=self.seed, max_new_tokens=self.max_new_tokens
            ),
            dialect=RefAdvJson(),
            frame=OriginalPixels() if isinstance(spec.frame, ResizedPixels) else spec.frame,
            image_options={"image_format": "jpeg", "image_quality": self.jpeg_quality},
        )
        asked = replace(style, follow_up="ref_adv/follow_up.txt", max_new_tokens=None, suffix="ref_adv")
        return theirs, asked, self._differences(spec)

    def _differences(self, spec: ModelSpec) -> tuple[str, ...]:
        told = [
            "their prompt with a literal <image>, text before image, JPEG quality "
            f"{self.jpeg_quality}, {self.max_new_tokens} new tokens, one further turn after a parse failure",
            "their parser: the last ```json fence, or JSON that ends the reply; truth values pass as numbers,"
            " prose after bare JSON is a failure, a cut answer that parses is scored",
        ]
        if isinstance(spec.frame, ResizedPixels):
            told.append(
                "boxes taken as pixels of the original image, where the model answers in pixels of the"
                " resized one"
            )
        elif not (isinstance(spec.frame, Relative) and spec.frame == Relative(1000)):
            told.append(f"{spec.name} is not in their evaluator; its own frame is kept")
        return tuple(f"protocol ref_adv, other than our own reading: {text}" for text in told)


def parts(
    config: Mapping[str, Any], spec: ModelSpec, style: Style
) -> tuple[ModelSpec, Style, tuple[str, ...]]:
    """Model, style and notes under the protocol that a config node describes; an empty one is none."""
    if not config:
        return spec, style, ()
    protocol: Reading = assets.build(config, "protocol")
    return protocol.apply(spec, style)


# ── their parser ────────────────────────────────────────────────────────────────────────────────

_KEYS = ("bboxes", "boxes", "bbox", "bbox_2d", "predictions", "results", "objects", "coordinates")
_MOST_STARTS = 2000
"""Brackets tried as the start of a JSON value that ends the reply; keeps long replies from hanging."""


@dataclass(frozen=True, slots=True)
class RefAdvJson:
    """Their reading of an answer, leniencies included: Python's json lets NaN and truth values through."""

    def read(self, text: str) -> tuple[Quad, ...] | NoBox:
        """All boxes without repetitions, in the order of their walk."""
        for value in _values(text):
            quads = tuple(dict.fromkeys(_walk(value)))
            if quads:
                return quads
        return NoBox("unparsable", "no JSON box in the way the Ref-Adv evaluator reads answers")


def _values(text: str) -> Iterator[Any]:
    """The ```json fences from the last to the first, then the JSON value that ends the reply."""
    pieces = text.split("```json")
    for piece in reversed(pieces[1:]):
        body, closed, _ = piece.partition("```")
        if closed:
            yield from _loaded(body.strip())
    ending = text.strip()
    starts = [i for i, sign in enumerate(ending) if sign in "[{"][:_MOST_STARTS]
    for start in starts:
        for value in _loaded(ending[start:]):
            yield value
            return


def _loaded(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return []


def _walk(value: Any) -> Iterator[Quad]:
    if isinstance(value, list):
        if len(value) == 4 and all(isinstance(v, int | float) for v in value):
            yield _quad(value)
            return
        for item in value:
            yield from _walk(item)
    elif isinstance(value, dict):
        for key in (*(k for k in _KEYS if k in value), *(k for k in value if k not in _KEYS)):
            yield from _walk(value[key])


def _quad(values: list[Any]) -> Quad:
    try:
        a, b, c, d = map(float, values)
    except OverflowError:  # an integer of more than 308 digits
        return (float("nan"),) * 4
    return (a, b, c, d)
