"""The symbolic listener: it sees what was drawn, hears word order, and never needs a description."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from PIL import Image

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.data.shapes.scene import Scene
from refadv_ablate.errors import ImageUnreadable, UserError
from refadv_ablate.models.listeners.listener import NOTHING, Listener
from refadv_ablate.models.listeners.meaning import bag_resolve, listen, resolve, words_of
from refadv_ablate.models.listeners.shapes_seen import Sighting, look
from refadv_ablate.parsing.dialects import PlainBoxes, read
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.types import Example, ImageRef, ModelSpec, NoBox, Perturbed, Reply, Request, Sampling, Seen

SPEC = ModelSpec(
    "listener", "builtin:listener", PlainBoxes(), OriginalPixels(), {"direct": "control/expression.txt"}
)
EXAMPLES = list(Shapes(n=180, seed=101))


@dataclass(frozen=True)
class Picture:
    picture: Any
    key: str = "picture"

    def size(self) -> Size:
        return self.picture.size

    def load(self) -> Image.Image:
        return self.picture

    def digest(self) -> str:
        return str(hash(self.picture.tobytes()))


def ask(
    listener: Listener, example: Example, text: str | None = None, image: ImageRef | None = None
) -> Reply:
    said = example if text is None else example.saying(text)
    request = Request(Perturbed(said, example, "changed"), "test", 0, (), image or example.image, Sampling())
    ((_, reply),) = listener.answer([request])
    return reply


def hits(listener: Listener, texts: Sequence[str]) -> list[bool]:
    found = []
    for example, text in zip(EXAMPLES, texts, strict=True):
        size = example.image.size()
        answer = read(ask(listener, example, text), SPEC.dialect, SPEC.frame, Seen(size, size)).answer
        found.append(isinstance(answer, Box) and iou(answer, example.target) >= 0.5)
    return found


def shuffled(text: str, seed: int) -> str:
    words = text.split()
    random.Random(seed).shuffle(words)
    return " ".join(words)


ORIGINAL = [example.expression for example in EXAMPLES]
BAGS = [shuffled(text, k) for k, text in enumerate(ORIGINAL)]


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    """One that has a better memory than usual, so that each picture is looked at once here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("refadv_ablate.models.listeners.listener.REMEMBERED", 1000)
        yield Listener(SPEC)


def test_understands_what_is_said(listener: Listener) -> None:
    assert np.mean(hits(listener, ORIGINAL)) >= 0.97


def test_a_bag_of_words_misleads_it_where_order_matters(listener: Listener) -> None:
    bags = hits(listener, BAGS)
    assert np.mean(bags) < 0.75
    kinds = np.array([example.attributes["kind"] for example in EXAMPLES])
    assert np.mean(np.array(bags)[kinds == "attribute"]) > 0.97, "one noun phrase says the same in any order"
    assert np.mean(np.array(bags)[kinds == "relation"]) < 0.7


def test_a_fixed_prompt_leaves_it_at_chance(listener: Listener) -> None:
    rate = np.mean(hits(listener, ["the one"] * len(EXAMPLES)))
    assert rate < 0.3


def test_the_control_is_deaf_to_order(listener: Listener) -> None:
    control = Listener(SPEC, order_sensitive=False)
    control._seen.update(listener._seen)
    replies = [
        [ask(control, example, t).text for example, t in zip(EXAMPLES, texts, strict=True)]
        for texts in (ORIGINAL, BAGS)
    ]
    assert replies[0] == replies[1]
    assert control.identity() != Listener(SPEC).identity()


def test_sees_what_was_drawn() -> None:
    for example in EXAMPLES[::10]:
        seen = look(example.image.load())
        assert len(seen) == len(example.candidates)
        for candidate in example.candidates:
            best = max(seen, key=lambda s: iou(s.box, candidate.box))
            assert iou(best.box, candidate.box) > 0.85
            told = {"shape": best.shape, "colour": best.colour, "size": best.size, "fill": best.fill}
            assert told == dict(candidate.attributes)


def test_reads_pixels_not_the_description() -> None:
    example = EXAMPLES[0]
    other = Picture(example.image.load().transpose(Image.Transpose.FLIP_LEFT_RIGHT))
    width = other.size()[0]
    reply = ask(Listener(SPEC), example, "the leftmost " + (example.category or ""), other)
    mirrored = ask(Listener(SPEC), example, "the rightmost " + (example.category or ""))
    a, b = (PlainBoxes().read(r.text) for r in (reply, mirrored))
    assert not isinstance(a, NoBox)
    assert not isinstance(b, NoBox)
    assert [width - a[0][2], a[0][1], width - a[0][0], a[0][3]] == pytest.approx(b[0], abs=2.5)


def test_answers_in_pixels_of_the_stored_image() -> None:
    example = EXAMPLES[3]
    small = Picture(example.image.load().resize((160, 120)))
    answer = PlainBoxes().read(ask(Listener(SPEC), example, None, small).text)
    assert not isinstance(answer, NoBox)
    assert iou(Box(*answer[0]), example.target) > 0.6


def sighting(shape: str, colour: str, x: float, size: str = "small", fill: str = "solid") -> Sighting:
    return Sighting(Box(x * 100, 40, x * 100 + 10, 50), (x, 0.5), shape, colour, size, fill)


ROW = [
    sighting("circle", "red", 0.1), sighting("circle", "red", 0.5, "large"), sighting("square", "blue", 0.3),
    sighting("circle", "blue", 0.7), sighting("square", "red", 0.9, "small", "hollow"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("the red circle left of the blue square", 0),
        ("the red circle to the right of the blue square", 1),
        ("the blue circle left of the red square", 3),
        ("the square right of the blue circle", 4),
        ("the circle that is not red", 3),
        ("the red circle that isn't small", 1),
        ("the red circle that isn’t small", 1),
        ("the second circle from the left", 1),
        ("the second red circle from the right", 0),
        ("The RIGHTMOST circle.", 3),
        ("hollow square", 4),
        ("", 0),
        ("the thing over there, 左の円", 0),
        ("left left left", 0),
        ("the green circle", 0),
        ("the fourth circle from the left", 3),
    ],
)
def test_what_is_meant(text: str, index: int) -> None:
    assert resolve(listen(text), ROW) is ROW[index]


def test_words_are_those_that_bag_of_words_moves() -> None:
    assert words_of("The large circle, that isn't RED!") == ["the", "large", "circle", "that", "isn't", "red"]


def test_nothing_seen_is_said() -> None:
    blank = Picture(Image.new("RGB", (64, 48), "white"))
    reply = ask(Listener(SPEC), EXAMPLES[0], None, blank)
    assert reply.text == NOTHING
    assert isinstance(PlainBoxes().read(reply.text), NoBox)
    assert bag_resolve("the circle", []) is None


def test_a_photograph_is_answered_or_declined() -> None:
    rows, columns = np.mgrid[0:480, 0:640]
    noise = np.random.default_rng(0).integers(0, 60, (480, 640, 3))
    waves = 120 + 60 * np.sin(rows / 17)[..., None] * np.cos(columns / 23)[..., None]
    photo = Picture(Image.fromarray((waves + noise).clip(0, 255).astype(np.uint8)))
    reply = ask(Listener(SPEC), EXAMPLES[0], "the man in the red shirt", photo)
    assert reply.finish == "stop"
    assert reply.text == NOTHING or reply.text.startswith("[")


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1"])
def test_other_image_modes(mode: str) -> None:
    assert look(EXAMPLES[0].image.load().convert(mode)) is not None


def test_an_unreadable_image_is_no_wrong_answer() -> None:
    @dataclass(frozen=True)
    class Broken(Picture):
        def load(self) -> Image.Image:
            raise ImageUnreadable("broken.png can't be decoded; replace it")

    reply = ask(Listener(SPEC), EXAMPLES[0], None, Broken(Image.new("RGB", (9, 9))))
    assert (reply.finish, reply.error) == ("error", "broken.png can't be decoded; replace it")


def test_remembers_few_pictures_and_can_be_closed_twice() -> None:
    listener = Listener(SPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("refadv_ablate.models.listeners.listener.REMEMBERED", 4)
        for example in EXAMPLES[:14]:
            ask(listener, example)
    assert len(listener._seen) == 4
    listener.close()
    listener.close()
    assert not listener._seen


def test_an_empty_scene_is_looked_at() -> None:
    from refadv_ablate.data.shapes.drawing import render

    assert look(render(Scene((100, 80), (255, 255, 255), (), "circle"))) == []


def test_ties_are_drawn_with_equal_chance_and_the_same_each_time() -> None:
    drawn, first = Listener(SPEC, ties="drawn"), Listener(SPEC)
    told = [(e, f"the {e.category}") for e in EXAMPLES]
    answers = [ask(drawn, e, text).text for e, text in told]
    assert answers == [ask(Listener(SPEC, ties="drawn"), e, text).text for e, text in told]
    assert answers != [ask(first, e, text).text for e, text in told]
    assert [ask(drawn, e).text for e in EXAMPLES[:30]] == [ask(first, e).text for e in EXAMPLES[:30]]
    with pytest.raises(UserError, match="ties"):
        Listener(SPEC, ties="last")  # type: ignore[arg-type]
