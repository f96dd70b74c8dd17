"""Whether the answers of a run fit the declared coordinate frame, and look like answers at all.

A wrong frame, the same box for every image or a box around the whole picture give plausible numbers that mean
nothing. What looks wrong is said once, in the run and by the doctor; nothing is rescaled.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from refadv_ablate.boxes import Box, Quad, Size, iou
from refadv_ablate.parsing.frame_evidence import Samples, frame_size, other_reading, within_other_bounds
from refadv_ablate.storage.columns import hashed
from refadv_ablate.types import Frame, Reading, Seen

ENOUGH = 20
"""Boxes after which a pattern over answers is worth a warning."""
KEPT = 1000
"""Answers that are compared with their gold boxes: those with the smallest hashes, however they came."""
SAME = 0.2
"""Share of equal or whole-picture answers from which it is said."""
LOOK = "look at them with the doctor command"

Sample = tuple[Quad, Box, Size, tuple[float, float], float]


@dataclass(slots=True)
class FrameCheck:
    """Watches the answers of one condition. least: answers that a comparison with gold boxes needs."""

    frame: Frame | None = None
    label: str = ""
    least: int = 10
    boxes: int = 0
    mute: int = 0
    """Boxes among them of which equality tells nothing: on empty pictures, or an example's in another way."""
    parts: set[tuple[Quad, str]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    answers: Counter[Quad] = field(default_factory=Counter)
    kept: list[tuple[int, str, tuple[float, ...], Sample]] = field(default_factory=list)
    images: set[str] = field(default_factory=set)

    def add(
        self,
        reading: Reading,
        seen: Seen,
        example_id: str,
        target: Box | None = None,
        *,
        empty: bool = False,
        part: str = "",
    ) -> None:
        """Takes in one answer; those without numbers say nothing. target: gold box, original pixels.

        empty: the picture shows nothing, so that equal boxes and boxes around all of it tell nothing.
        part: label where an example is asked in several ways; its equal answers to them count once.
        """
        if reading.raw is None:
            return
        mute = empty or (bool(part) and (reading.raw, example_id) in self.parts)
        self.mute += mute
        if part and not mute:
            self.parts.add((reading.raw, example_id))
        self.boxes += 1
        signs = [n for n in reading.notes if n in ("scale_contradiction", "resize_mismatch", "repeated")]
        width, height = seen.original
        whole = 0.95 * width * height
        if isinstance(reading.answer, Box) and reading.answer.area >= whole and not _covers(target, whole):
            signs += [] if mute else ["whole_image"]
        self.counts.update(signs)
        for sign in signs:
            self.first[sign] = min(self.first.get(sign, example_id), example_id)
        if not mute and (len(self.answers) < KEPT or reading.raw in self.answers):
            self.answers[reading.raw] += 1
        if self.frame is not None and target is not None:
            self._keep(reading, seen, example_id, target)

    def _keep(self, reading: Reading, seen: Seen, example_id: str, target: Box) -> None:
        assert self.frame is not None
        assert reading.raw is not None
        own = self.frame.size(seen) if hasattr(self.frame, "size") else seen.original
        unit = frame_size(self.frame, own, seen.original)
        score = iou(reading.answer, target) if isinstance(reading.answer, Box) else 0.0
        place = hashed(example_id)
        # an example that is asked in several ways has several answers: their numbers tell them apart
        order = (*reading.raw, *target.as_list(), *seen.original, *unit, score)
        item = (-place, example_id, order, (reading.raw, target, seen.original, unit, score))
        (heapq.heappush if len(self.kept) < KEPT else heapq.heappushpop)(self.kept, item)

    def warnings(self) -> tuple[str, ...]:
        """What looks wrong so far, one sentence each."""
        return (*self._contradictions(), *self._degenerate(), *self._other_frame())

    def _contradictions(self) -> list[str]:
        found, where = [], self._where()
        if odd := self.counts["scale_contradiction"]:
            found.append(
                f"frame: {odd} of {self.boxes} boxes{where} have a scale that contradicts the declared frame"
                f" {self._name()} (first: {self.first['scale_contradiction']}); they were not rescaled"
            )
        if wrong := self.counts["resize_mismatch"]:
            found.append(
                f"frame: the processor's size differed from the model's resize rule for {wrong} of"
                f" {self.boxes} boxes{where} (first: {self.first['resize_mismatch']}); the processor's was"
                " used, set model.resize to its min and max pixels"
            )
        return found

    def _degenerate(self) -> list[str]:
        """Answers that can't be about their images: all alike, around everything, or in a loop."""
        found, where = [], self._where()
        if loops := self.counts["repeated"]:
            found.append(
                f"answers: {loops} of {self.boxes}{where} repeat one box over and over (first:"
                f" {self.first['repeated']}); the model was in a loop, see its decoding"
            )
        shown = self.boxes - self.mute
        if shown < ENOUGH:
            return found
        whole = self.counts["whole_image"]
        if whole >= SAME * shown:
            found.append(
                f"answers: {whole} of {shown} boxes{where} cover 95% of the image or more (first:"
                f" {self.first['whole_image']}): the frame may be wrong, or the image arrived damaged or was"
                f" not used at all; {LOOK}"
            )
        quad, times = self.answers.most_common(1)[0]
        if times >= max(5, SAME * shown) and times > whole:
            numbers = ", ".join(f"{value:g}" for value in quad)
            found.append(
                f"answers: {times} of {shown} boxes{where} are the same, [{numbers}]: the model may not"
                f" see the images; {LOOK}"
            )
        return found

    def _other_frame(self) -> list[str]:
        if not self.kept:
            return []
        samples = self.samples()
        found = other_reading(samples, self._name(), self.least)
        if found is not None:
            return [
                f"frame: read as {found.reading} {found.hits} of {found.n} answers{self._where()} would meet"
                f" their gold boxes, read as declared ({self._name()}) {found.declared_hits}: model.frame,"
                " model.dialect or the server's resize is another than declared; nothing was rescaled,"
                f" {LOOK}"
            ]
        bounds = within_other_bounds(samples)
        if bounds is None:
            return []
        name, expected = bounds
        return [
            f"frame: none of {len(samples.raw)} answers{self._where()} leaves the bounds of {name}, where"
            f" {expected} gold boxes in {self._name()} would, so they look like {name}; nothing was rescaled,"
            f" {LOOK}"
        ]

    def samples(self) -> Samples:
        """The kept answers as arrays, in an order that doesn't depend on how they came."""
        rows = [sample for *_, sample in sorted(self.kept, key=lambda item: item[:3])]
        return Samples(
            raw=np.array([row[0] for row in rows], float),
            gold=np.array([row[1].as_list() for row in rows], float),
            original=np.array([row[2] for row in rows], float),
            frame=np.array([row[3] for row in rows], float),
            declared=np.array([row[4] for row in rows], float),
        )

    def _where(self) -> str:
        return f" of {self.label}" if self.label else ""

    def _name(self) -> str:
        return str(self.frame) if self.frame is not None else "of this model"


def _covers(target: Box | None, area: float) -> bool:
    return target is not None and target.area >= area
