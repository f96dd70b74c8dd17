"""data=shapes: drawn scenes with hard distractors by construction; no download, any size."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from refadv_ablate import seeding
from refadv_ablate.data.shapes.drawing import DrawnImage
from refadv_ablate.data.shapes.language import KINDS, Denotation, Kind, Meaning, Rank, meanings
from refadv_ablate.data.shapes.scene import Scene, draw_scene
from refadv_ablate.data.shapes.wording import say
from refadv_ablate.errors import UserError
from refadv_ablate.types import Candidate, Example, Json

__all__ = ["CYCLE", "SHARES", "DrawnImage", "Shapes"]

CYCLE = (1, 2, 3)
"""Expressions per image, image after image: two on average, two thirds of the images share."""
SHARES: dict[Kind, float] = {"attribute": 0.2, "relation": 0.4, "ordinal": 0.2, "negation": 0.2}
NTHS = (1, 1, 1, 2, 2, 3)
"""Ranks as often as they are wanted: half superlatives, a third seconds, a sixth thirds."""
VERSION = 1
"""Raised whenever the same seed gives other examples than before."""
TRIES = 400


@dataclass(frozen=True, slots=True)
class Saying:
    """An expression about a scene, with what it means and which object it means."""

    text: str
    descriptors: tuple[str, ...]
    meaning: Meaning
    target: int
    hard: int
    order_sensitive: bool


@dataclass(frozen=True)
class Shapes:
    """Scenes of coloured shapes with minimal sufficient expressions.

    n: examples; seed: which ones; size: the longer side of the pictures, pixels. Example i depends on
    seed, size and i alone, so that a longer data set begins with a shorter one.
    """

    n: int = 200
    seed: int = 0
    size: int = 420

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UserError(f"data.n is {self.n}: ask for at least one example of data=shapes")
        if not 96 <= self.size <= 4096:
            raise UserError(f"data.size is {self.size}: pictures of data=shapes take 96 to 4096 pixels")

    @property
    def name(self) -> str:
        """As tables show it."""
        return "shapes"

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Example]:
        done = image = 0
        while done < self.n:
            examples = self.on_image(image)[: self.n - done]
            yield from examples
            done, image = done + len(examples), image + 1

    def example(self, index: int) -> Example:
        """The example at a place, without making those before it."""
        if not 0 <= index < self.n:
            raise IndexError(f"example {index} of {self.n}")
        block, place = divmod(index, sum(CYCLE))
        image = block * len(CYCLE)
        for count in CYCLE:
            if place < count:
                break
            place, image = place - count, image + 1
        return self.on_image(image)[place]

    def fingerprint(self) -> Mapping[str, Json]:
        """Seed, size and the generator's version; with n they determine every example."""
        return {"data": "shapes", "version": VERSION, "n": self.n, "seed": self.seed, "size": self.size}

    def on_image(self, image: int) -> tuple[Example, ...]:
        """All examples of one scene."""
        return _on_image(self.seed, self.size, image)


@lru_cache(maxsize=4096)  # a run walks its data more than once
def _on_image(seed: int, size: int, image: int) -> tuple[Example, ...]:
    rng = seeding.generator(seed, "shapes", VERSION, image)
    scene, sayings = compose(rng, size, CYCLE[image % len(CYCLE)])
    name = f"shapes-{seed}-{image:06d}"
    picture = DrawnImage(scene, name)
    candidates = tuple(_candidate(scene, index) for index in range(len(scene.items)))
    return tuple(
        _example(f"{name}-{place}", picture, candidates, saying) for place, saying in enumerate(sayings)
    )


def compose(rng: random.Random, size: int, count: int) -> tuple[Scene, tuple[Saying, ...]]:
    """A scene and `count` different things to say about it.

    The kinds are drawn first and scenes are drawn until one offers them all, so that kinds which
    few scenes offer are not rare.
    """
    kinds = rng.choices(KINDS, weights=[SHARES[kind] for kind in KINDS], k=count)
    for _ in range(TRIES):
        scene = draw_scene(rng, size)
        sayings = _sayings(rng, scene, kinds)
        if sayings is not None:
            return scene, sayings
    raise RuntimeError(f"no scene offered {kinds} in {TRIES} tries")


def _sayings(rng: random.Random, scene: Scene, kinds: list[Kind]) -> tuple[Saying, ...] | None:
    denotation = Denotation(scene)
    chosen: list[Saying] = []
    for kind in kinds:
        found = list(meanings(scene, kind, denotation))
        rng.shuffle(found)
        taken = {saying.target for saying in chosen}
        said = {saying.text for saying in chosen}
        nth = rng.choice(NTHS)
        # a target not yet taken, the rank drawn, words whose order matters: where the scene offers them
        found.sort(
            key=lambda pair: (
                pair[1] in taken,
                isinstance(pair[0].modifier, Rank) and pair[0].modifier.n != nth,
                not denotation.order_sensitive(*pair),
            )
        )
        for meaning, target in found:
            text, descriptors = say(meaning, rng)
            if text not in said:
                hard = _hard(denotation, meaning, target)
                sensitive = denotation.order_sensitive(meaning, target)
                chosen.append(Saying(text, descriptors, meaning, target, hard, sensitive))
                break
        else:
            return None
    return tuple(chosen)


def _hard(denotation: Denotation, meaning: Meaning, target: int) -> int:
    """An object of the same category that fits all descriptors but one: the last one said."""
    for less in reversed(list(meaning.reduced())):
        others = [index for index in denotation.of(less) if index != target]
        if others:
            return others[0]
    raise RuntimeError("a minimal meaning has a distractor for every descriptor")


def _candidate(scene: Scene, index: int) -> Candidate:
    item = scene.items[index]
    attributes = {"colour": item.colour, "size": item.size, "fill": item.fill, "shape": item.shape}
    return Candidate(item.box, item.shape, attributes)


def _example(name: str, picture: DrawnImage, candidates: tuple[Candidate, ...], saying: Saying) -> Example:
    category = saying.meaning.head.shape
    return Example(
        id=name,
        image=picture,
        expression=saying.text,
        target=candidates[saying.target].box,
        category=category,
        candidates=candidates,
        distractors=sum(candidate.category == category for candidate in candidates) - 1,
        negation=saying.meaning.kind == "negation",
        source="shapes",
        attributes={
            "kind": saying.meaning.kind,
            "descriptors": list(saying.descriptors),
            "target_index": saying.target,
            "hard_distractor": saying.hard,
            "order_sensitive": saying.order_sensitive,
        },
    )
