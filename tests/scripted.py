"""Small parts for tests: drawn examples, a model that follows a script, a store that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from PIL import Image

from refadv_ablate.boxes import Box
from refadv_ablate.types import Candidate, Example, Reply, Request


@dataclass(frozen=True)
class Plain:
    """A one-colour image that is made when it is loaded."""

    key: str
    width: int = 640
    height: int = 480

    def size(self) -> tuple[int, int]:
        return self.width, self.height

    def load(self) -> Image.Image:
        return Image.new("RGB", (self.width, self.height), "white")

    def digest(self) -> str:
        return sha256(f"{self.key} {self.width} {self.height}".encode()).hexdigest()


def example(index: int, expression: str | None = None, per_image: int = 2, **more: Any) -> Example:
    """Example `index`; every `per_image` of them share an image."""
    target = Box(10 + index, 20, 110 + index, 220)
    other = Box(300, 40, 420, 260)
    return Example(
        id=f"e{index}",
        image=Plain(f"image{index // per_image}.png"),
        expression=expression or f"the small red cup number {index} left of the jar",
        target=target,
        category="cup",
        candidates=(Candidate(target, "cup"), Candidate(other, "cup")),
        distractors=2 + index % 7,
        negation=index % 5 == 0,
        **more,
    )


@dataclass(frozen=True)
class Few:
    """A data set of n drawn examples."""

    n: int = 12
    per_image: int = 2
    name: str = "few"

    def __iter__(self) -> Iterator[Example]:
        return (example(index, per_image=self.per_image) for index in range(self.n))

    def fingerprint(self) -> dict[str, Any]:
        return {"few": [self.n, self.per_image]}


@dataclass
class Scripted:
    """Answers with `script(request)`; remembers what it was asked; dies after `dies_after` answers."""

    script: Callable[[Request], Reply]
    dies_after: int | None = None
    asked: list[Request] = field(default_factory=list)
    durable: bool = True

    def identity(self) -> dict[str, Any]:
        return {"engine": "scripted"}

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        for request in requests:
            if self.dies_after is not None and len(self.asked) >= self.dies_after:
                raise KeyboardInterrupt
            self.asked.append(request)
            yield request, self.script(request)

    def close(self) -> None:
        pass


def gold(request: Request) -> Reply:
    """The referent's box as JSON in original pixels."""
    return Reply(text=str(request.perturbed.example.target.as_list()))
