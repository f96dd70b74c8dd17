"""Models with known answers: what the harness must measure is known before it runs.

They look at the example instead of asking anything, so they run on any data, with or without images.
Their randomness depends on seed and example alone, never on the condition: a model that ignores the
text has a Δ of exactly 0 under every operator. Answers are "[x1, y1, x2, y2]", pixels of the original
image. Nothing of theirs is stored: two examples may ask the same words of the same image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from refadv_ablate.boxes import Box, iou, iou_matrix
from refadv_ablate.errors import UserError
from refadv_ablate.models.chance import random_box_chance
from refadv_ablate.parsing.scoring import metric
from refadv_ablate.seeding import generator
from refadv_ablate.types import ORIGINAL, Candidate, Example, Json, Model, ModelSpec, Reply, Request


@dataclass(frozen=True, kw_only=True)
class Control:
    """What controls share; one says which box it answers with."""

    durable: ClassVar[bool] = False
    spec: ModelSpec | None = None

    def identity(self) -> Mapping[str, Json]:
        """Class and options."""
        options = {name: value for name, value in vars(self).items() if name != "spec"}
        return {"engine": "control", "control": type(self).__name__, **options}

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """In the order asked. Raises UserError where the control needs what the data lacks."""
        for request in requests:
            yield request, Reply(self.say(request))

    def close(self) -> None:
        """Holds nothing."""

    def say(self, request: Request) -> str:
        """Its answer: always a box, unless it knows better."""
        return pointed(self.box(request.perturbed.example), request)

    def box(self, example: Example) -> Box:
        """The box of its answer to the example's expression."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Oracle(Control):
    """The referent's own box: 100% at every threshold, Δ = 0 under every operator.

    Where nothing matches, and the prompt allows it, the answer "none": Youden's J is 1.
    """

    def say(self, request: Request) -> str:
        """The target's box, or "none"."""
        nothing = request.perturbed.expectation == "reject" and request.options.get("or_none")
        return "none" if nothing else pointed(self.box(request.perturbed.example), request)

    def box(self, example: Example) -> Box:
        """The target."""
        return example.target


@dataclass(frozen=True, kw_only=True)
class RandomCandidate(Control):
    """Any of the image's instances with equal chance: the chance level, Δ = 0 under every operator."""

    seed: int = 0

    def box(self, example: Example) -> Box:
        """The same for every expression of the example."""
        return _any(_candidates(example, self), generator(self.seed, "random_candidate", example.id).random())

    def chance(self, example: Example, metric_name: str = "acc50") -> float:
        """Its expected value on this example: the mean over the candidates."""
        return candidate_chance(example, metric_name)


@dataclass(frozen=True, kw_only=True)
class RandomBox(Control):
    """A box with corners anywhere in the image, uniform: close to 0, Δ = 0 under every operator."""

    seed: int = 0

    def box(self, example: Example) -> Box:
        """The same for every expression of the example."""
        rng = generator(self.seed, "random_box", example.id)
        return random_box(rng.random(), rng.random(), rng.random(), rng.random(), example)

    def chance(self, example: Example, metric_name: str = "acc50") -> float:
        """Its expected value on this example, by integration."""
        return random_box_chance(example.target, example.image.size(), metric_name)


@dataclass(frozen=True, kw_only=True)
class CenterPrior(Control):
    """The middle of the image, `share` of each side: Δ = 0 under every operator."""

    share: float = 0.5

    def box(self, example: Example) -> Box:
        """Depends on the image's size alone."""
        width, height = example.image.size()
        dx, dy = width * self.share / 2, height * self.share / 2
        return Box(width / 2 - dx, height / 2 - dy, width / 2 + dx, height / 2 + dy)


@dataclass(frozen=True, kw_only=True)
class LargestCandidate(Control):
    """The instance with the largest box: a prior of photographs, Δ = 0 under every operator."""

    def box(self, example: Example) -> Box:
        """Of several equally large ones the topmost left."""
        return min((c.box for c in _candidates(example, self)), key=lambda box: (-box.area, *box.as_list()))


@dataclass(frozen=True, kw_only=True)
class HeadNoun(Control):
    """An instance of the category that the expression names first; everything else is not read.

    Right once in (distractors + 1). Deleting a descriptor keeps the head noun: Δ = 0. An expression
    without a noun leaves any instance: Δ < 0. In another word order the first noun may be another
    object's: Δ ≤ 0, and 0 where all nouns are of one category.
    """

    seed: int = 0

    def box(self, example: Example) -> Box:
        """Chosen by example and category alone; any instance where no category is named."""
        candidates = _candidates(example, self)
        category = first_category(example.expression, {c.category for c in candidates if c.category})
        named = [c for c in candidates if c.category == category] if category else candidates
        return _any(named, generator(self.seed, "head_noun", example.id).random())


@dataclass(frozen=True, kw_only=True)
class HashOfText(Control):
    """An instance chosen by the letters of the expression: any other wording, any other answer.

    It must fail every test of consistency under another wording, and pass those that leave the text alone.
    """

    seed: int = 0

    def box(self, example: Example) -> Box:
        """The same for the same text of the same example."""
        rng = generator(self.seed, "hash_of_text", example.id, example.expression)
        candidates = _candidates(example, self)
        return candidates[rng.randrange(len(candidates))].box


@dataclass(frozen=True, kw_only=True)
class BagListener(Control):
    """The instance whose category and attributes share most words with the expression.

    It reads words and not their order, so that Δ = 0 exactly under any reordering. A text that says
    nothing leaves the topmost left instance: Δ < 0; a deleted descriptor is missed: Δ ≤ 0.
    """

    def box(self, example: Example) -> Box:
        """The best match; of equal ones that with the smallest coordinates."""
        bag = set(words(example.expression))
        candidates = _candidates(example, self)
        return min(candidates, key=lambda c: (-len(bag & described(c)), *c.box.as_list())).box


# ── noise ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Noisy:
    """Another model of whose answers a fraction `p` is replaced by a random box.

    Each answer is replaced on its own account, in each condition and draw: Δ is 0 on average but not
    exactly, and accuracy falls by p · (accuracy − chance). With `perturbed_only` the original condition
    is left alone, and that fall is the Δ. For models that answer in pixels of the original image.
    """

    durable: ClassVar[bool] = False
    inner: Model
    p: float = 0.1
    seed: int = 0
    perturbed_only: bool = False
    spec: ModelSpec | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise UserError(f"p={self.p}: the fraction of replaced answers lies between 0 and 1.")

    def identity(self) -> Mapping[str, Json]:
        """The inner model and the noise."""
        noise = {"p": self.p, "seed": self.seed, "perturbed_only": self.perturbed_only}
        return {"engine": "noisy", **noise, "inner": dict(self.inner.identity())}

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """As the inner model, in its order."""
        for request, reply in self.inner.answer(requests):
            box = self._noise(request)
            yield request, reply if box is None or reply.finish == "error" else Reply(as_text(box))

    def close(self) -> None:
        """Closes the inner model."""
        self.inner.close()

    def _noise(self, request: Request) -> Box | None:
        if self.perturbed_only and request.condition == ORIGINAL:
            return None
        example = request.perturbed.example
        rng = generator(self.seed, "noisy", example.id, request.condition, request.draw, request.repeat)
        if rng.random() >= self.p:
            return None
        return random_box(rng.random(), rng.random(), rng.random(), rng.random(), example)


def noisy(
    *,
    inner_config: Mapping[str, Any],
    spec: ModelSpec | None = None,
    p: float = 0.1,
    seed: int = 0,
    perturbed_only: bool = False,
) -> Noisy:
    """A `Noisy` around the engine that `inner_config` describes as a model's YAML would."""
    from refadv_ablate.assets import build

    inner = build(inner_config, "model.engine.inner_config", spec=spec)
    return Noisy(inner=inner, p=p, seed=seed, perturbed_only=perturbed_only, spec=spec)


# ── what they are made of ───────────────────────────────────────────────────────────────────────


def pointed(box: Box, request: Request) -> str:
    """The answer as the prompt asks for it: the box, or with Set-of-Marks the number of the nearest mark."""
    marks = [Box(*quad) for quad in request.options.get("marks", ())]
    if not marks:
        return as_text(box)
    return f"[{max(range(len(marks)), key=lambda i: (iou(box, marks[i]), -i)) + 1}]"


def as_text(box: Box) -> str:
    """The answer, with all digits."""
    return str(box.as_list())


def random_box(a: float, b: float, c: float, d: float, example: Example) -> Box:
    """The box between two corners, given as fractions of the image's sides."""
    width, height = example.image.size()
    # two equal numbers of 53 random bits: not in the lifetime of this project, and a pixel's edge if so
    return Box(
        min(a, b) * width,
        min(c, d) * height,
        max(a, b) * width + (a == b),
        max(c, d) * height + (c == d),
    )


def candidate_chance(example: Example, metric_name: str = "acc50") -> float:
    """Expected value of a metric when any of the candidates is answered with equal chance."""
    if not example.candidates:
        raise UserError(f"Example {example.id} has no candidate boxes: there is no chance level among them.")
    ious = iou_matrix([c.box for c in example.candidates], [example.target])[:, 0]
    return float(np.mean(metric(metric_name)(ious)))


def words(text: str) -> list[str]:
    """Lower-case words and numbers; hyphens, apostrophes and punctuation only separate."""
    return re.findall(r"[^\W_]+", text.lower())


def described(candidate: Candidate) -> set[str]:
    """The words that say what an instance is: its category and those of its attributes that are text."""
    texts = [value for value in candidate.attributes.values() if isinstance(value, str)]
    return {word for text in (candidate.category or "", *texts) for word in words(text)}


def first_category(text: str, categories: Iterable[str]) -> str | None:
    """The category that a text names first, the longer one of two that begin alike."""
    said = words(text)
    found = [
        (place, -len(name), name) for name in categories if (place := _place(words(name), said)) is not None
    ]
    return min(found)[2] if found else None


def _place(name: Sequence[str], said: Sequence[str]) -> int | None:
    """Where the words of a name stand in a row, the last perhaps in the plural."""
    if not name:
        return None
    for start in range(len(said) - len(name) + 1):
        *firsts, last = said[start : start + len(name)]
        if firsts == list(name[:-1]) and last in (name[-1], name[-1] + "s", name[-1] + "es"):
            return start
    return None


def _candidates(example: Example, control: Control) -> tuple[Candidate, ...]:
    if not example.candidates:
        raise UserError(
            f"model=control/{_option(control)} chooses among candidate boxes and example {example.id} has "
            "none: take data with instance annotations, or model=control/random_box, center_prior or oracle."
        )
    return example.candidates


def _option(control: Control) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(control).__name__).lower()


def _any(candidates: Sequence[Candidate], fraction: float) -> Box:
    """One of the candidates, whatever the order in which they come."""
    boxes = sorted((c.box for c in candidates), key=Box.as_list)
    return boxes[int(fraction * len(boxes))]
