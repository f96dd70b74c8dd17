"""Images that a processor would refuse: enlarged and mapped back, or missing before anything is sent."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from typing import Any

import pytest
from PIL import Image

from refadv_ablate.assets import build, compose, plain
from refadv_ablate.boxes import Box, Size
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.models.openai import OpenAI
from refadv_ablate.parsing.frames import Within
from refadv_ablate.prompting import prompts
from refadv_ablate.prompting.prompts import Style
from refadv_ablate.running.plan import Plan
from refadv_ablate.running.reading import Reader
from refadv_ablate.running.run import run
from refadv_ablate.storage.answers import MemoryStore
from refadv_ablate.storage.records import perturbed_to_json
from refadv_ablate.types import ORIGINAL, Example, ModelSpec, Perturbed, Record
from tests.models.server import Fail, Say, Server
from tests.scripted import Plain

SIZES: dict[Size, bool] = {
    (640, 480): True,
    (26, 28): True,
    (332, 27): True,
    (690, 15420): True,
    (5, 900): True,
    (2000, 8): False,
    (4540, 20): False,
    (1, 1): True,
}
"""Width and height → whether it can be sent."""


def spec_of(family: str, *more: str) -> ModelSpec:
    model = dict(plain(compose([f"model={family}", *more]).model))
    for key in ("engine", "size"):
        model.pop(key, None)
    made: ModelSpec = build(model, "model")
    return made


def example(index: int, size: Size) -> Example:
    box = Box(size[0] * 0.25, size[1] * 0.25, size[0] * 0.75, size[1] * 0.75)
    return Example(f"e{index}", Plain(f"{index}.png", *size), "the cup", box)


@dataclass(frozen=True)
class Odd:
    sizes: tuple[Size, ...]
    name: str = "odd"

    def __iter__(self) -> Any:
        return (example(index, size) for index, size in enumerate(self.sizes))

    def fingerprint(self) -> dict[str, Any]:
        return {"odd": len(self.sizes)}


@dataclass
class Silent:
    warned: list[str] = field(default_factory=list)

    def reply(self, *_: Any) -> None:
        pass

    def warn(self, text: str) -> None:
        self.warned.append(text)


def middle(spec: ModelSpec, body: dict[str, Any]) -> tuple[Size, str]:
    """The size of the image in a call, and the answer of a model that points at its middle half."""
    parts = body["messages"][-1]["content"]
    url = next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    size = Image.open(io.BytesIO(base64.b64decode(url.split(",", 1)[1]))).size
    frame = spec.resize(size) if spec.resize else (1000, 1000)
    numbers = [side * share for share in (0.25, 0.75) for side in frame]
    return size, str({"bbox_2d": numbers}).replace("'", '"')


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl", "qwen3_vl_thinking", "glm4_5v", "qwen3_5"])
def test_every_picture_is_answered_and_mapped_back_or_missing_with_its_reason(family: str) -> None:
    spec = spec_of(family)
    smallest = spec.limits.min_side  # type: ignore[union-attr]

    def script(n: int, body: dict[str, Any]) -> Any:
        size, answer = middle(spec, body)
        refused = min(size) < smallest or max(size) / min(size) > 200
        thought = "</think>" if "thinking" in family else ""
        return Fail(500, "the processor raised") if refused else Say(thought + answer)

    with Server(script) as server:
        engine = OpenAI(spec=spec, base_url=server.url, attempts=2, backoff_base=0.01)
        data = Odd(tuple(SIZES))
        same = [perturbed_to_json(Perturbed(case, case, "unchanged")) for case in data]
        plan = Plan(
            data=data,
            spec=spec,
            model=engine,
            style=Style("direct"),
            texts={"identity": lambda: iter(same)},
            draws={"identity": 1},
        )
        found = run(plan, MemoryStore(), Reader(plan, Silent()))
        records: list[Record] = [record for record in found if record.condition == ORIGINAL]
    assert server.calls == sum(SIZES.values())
    for (size, sent), record in zip(SIZES.items(), records, strict=True):
        if sent:
            assert (record.outcome, record.size) == ("box", size), record.reason
            assert record.iou is not None and record.iou > 0.9
        else:
            assert (record.outcome, record.iou, record.size) == ("missing", None, size)
            assert f"{size[0]}×{size[1]} is too long for this model (at most 200:1)" in record.reason


def test_an_image_within_the_limits_is_sent_as_it_is() -> None:
    spec, case = spec_of("qwen2_5_vl"), example(0, (640, 480))
    request = prompts.build(spec, Style("direct"), Perturbed(case, case, "unchanged"), "original", 0)
    assert request.image is case.image


@pytest.mark.parametrize(
    ("size", "sent"),
    [((28, 28), (28, 28)), ((27, 332), (28, 345)), ((10, 10), (28, 28)), ((1, 200), (28, 5600))],
)
def test_the_shorter_side_is_enlarged_with_its_aspect(size: Size, sent: Size) -> None:
    assert Within(28)(size) == sent


@pytest.mark.parametrize("size", [(201, 1), (0, 5)])
def test_what_no_resize_mends_is_refused(size: Size) -> None:
    with pytest.raises(ImageUnreadable, match="too long"):
        Within(28)(size)
