"""Whether answers fit the declared frame: every family, image size and wrong frame; and answers all alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from refadv_ablate import assets
from refadv_ablate.boxes import Box, Quad, Size, iou
from refadv_ablate.parsing.frame_check import FrameCheck
from refadv_ablate.parsing.frames import OriginalPixels, PaddedSquare, Relative, ResizedPixels, SmartResize
from refadv_ablate.types import Frame, NoBox, Reading, Seen

QWEN = SmartResize(28, 56 * 56, 12_845_056)
VGA = Seen((640, 480), (640, 480))


def watched(frame, quads, size=(640, 480), label=""):
    check, seen = FrameCheck(frame, label), Seen(size, size)
    for number, quad in enumerate(quads):
        box, notes = frame.to_pixels(quad, seen)
        check.add(Reading(box, 1, quad, notes), seen, f"ex-{number}")
    return check.warnings()


class TestFrameCheck:
    def test_answers_in_the_frame_say_nothing(self):
        assert watched(Relative(), [(100 + i, 200, 700 + i, 900) for i in range(30)]) == ()

    def test_a_contradiction_is_reported_at_once_with_its_example(self):
        good = [(100, 200, 700, 900)] * 3
        (warning,) = watched(Relative(), [*good, (0.1, 0.2, 0.3, 0.4)])
        assert "1 of 4" in warning
        assert "ex-3" in warning
        assert "not rescaled" in warning

    def test_one_example_asked_in_several_ways_may_have_several_targets(self):
        """The same answer to the same example, the target on another object."""
        seen, quad = Seen((640, 480), (640, 480)), (100.0, 200.0, 300.0, 400.0)
        boxes = [Box(64, 96, 192, 192), Box(300, 10, 400, 90), Box(64, 96, 192, 192)]
        summaries = []
        for order in (boxes, boxes[::-1]):
            check = FrameCheck(Relative(), "original")
            for target in order:
                check.add(Reading(Relative().to_pixels(quad, seen)[0], 1, quad), seen, "ex", target)
            assert check.warnings() == ()
            summaries.append(sorted(check.kept))
        assert summaries[0] == summaries[1]

    def test_whole_image_answers_warn_after_twenty(self):
        whole = [(0, 0, 1000, 1000)]
        assert watched(Relative(), whole * 19) == ()
        assert watched(Relative(), [*whole * 3, *((i, 2, 30 + i, 40) for i in range(17))]) == ()
        (warning,) = watched(Relative(), [*whole * 4, *((i, 2, 30 + i, 40) for i in range(16))])
        assert "4 of 20" in warning
        assert "95% of the image" in warning

    def test_equal_answers_are_expected_on_empty_pictures_and_of_one_example(self):
        same = Reading(Relative().to_pixels((10, 10, 200, 200), VGA)[0], 1, (10, 10, 200, 200))
        empty, parts, blind = (FrameCheck(Relative()) for _ in range(3))
        for number in range(40):
            empty.add(same, VGA, f"ex-{number}", empty=True)
            quad = (number // 8 + 10, 10, 200, 200)
            parts.add(replace(same, raw=quad), VGA, f"ex-{number // 8}", part=f"way-{number % 8}")
            blind.add(same, VGA, f"ex-{number // 2}", part=f"way-{number % 2}")
        assert not empty.warnings() and not parts.warnings()
        assert "20 of 20 boxes are the same" in blind.warnings()[0]

    def test_a_rule_that_differs_from_the_processor_is_reported(self):
        frame, seen, check = ResizedPixels(QWEN), Seen((640, 480), (640, 480), (336, 252)), FrameCheck()
        quad = (10.0, 20.0, 30.0, 40.0)
        check.add(Reading(*frame.to_pixels(quad, seen)[:1], 1, quad, ("resize_mismatch",)), seen, "ex-0")
        assert "model.resize" in check.warnings()[0]

    def test_answers_without_numbers_are_not_counted(self):
        check = FrameCheck(Relative())
        check.add(Reading(NoBox("empty")), VGA, "ex-0")
        assert check.boxes == 0
        assert check.warnings() == ()


# ── every family × image size × wrong frame: said, or the accuracy is right ─────────────────────

SIZES: list[Size] = [
    (640, 480), (480, 640), (910, 512), (960, 540), (1000, 667), (1024, 768), (1280, 720), (1600, 900),
    (1920, 1080), (2560, 1440), (3840, 2160), (500, 375),
]  # fmt: skip
N = 40


def told(as_answered: Callable[[Box, Size], Quad], frame: Frame, sizes: list[Size], noise: float = 0.0,
         right: float = 1.0) -> tuple[float, tuple[str, ...]]:  # fmt: skip
    """Acc@0.5 and the warnings of N answers on random boxes; `right`: share that is about the gold box."""
    rng, check, hits = random.Random(7), FrameCheck(frame, "original"), 0
    for number in range(N):
        size = sizes[number % len(sizes)]
        gold = drawn(rng, size)
        meant = gold if rng.random() < right else drawn(rng, size)
        wobble = [1 + rng.uniform(-noise, noise) for _ in range(4)]
        answered = as_answered(meant, size)
        most = frame.scale if isinstance(frame, Relative) else float("inf")  # nobody answers 1004 of 1000
        quad = tuple(min(round(v * w, 3), max(most, v)) for v, w in zip(answered, wobble, strict=True))
        seen = Seen(size, size)
        box, notes = frame.to_pixels(quad, seen)
        hits += isinstance(box, Box) and iou(box, gold) >= 0.5
        check.add(Reading(box, 1, quad, notes), seen, f"e{number}", gold)
    return hits / N, check.warnings()


def drawn(rng: random.Random, size: Size) -> Box:
    width, height = (side * rng.uniform(0.08, 0.35) for side in size)
    x, y = rng.uniform(0, size[0] - width), rng.uniform(0, size[1] - height)
    return Box(x, y, x + width, y + height)


def pixels_of(resize: Callable[[Size], Size]) -> Callable[[Box, Size], Quad]:
    def answer(box: Box, size: Size) -> Quad:
        x, y = (made / side for made, side in zip(resize(size), size, strict=True))
        return (box.x1 * x, box.y1 * y, box.x2 * x, box.y2 * y)

    return answer


def relative(scale: float) -> Callable[[Box, Size], Quad]:
    return pixels_of(lambda size: (scale, scale))


def in_frame(frame: Frame) -> Callable[[Box, Size], Quad]:
    """As a model answers that keeps to the declared frame."""
    if isinstance(frame, Relative):
        first = relative(frame.scale)
        return first if frame.order == "xyxy" else y_first(first)
    if isinstance(frame, ResizedPixels):
        return pixels_of(lambda size: frame.size(Seen(size, size)))
    return pixels_of(lambda size: size)


def y_first(answer: Callable[[Box, Size], Quad]) -> Callable[[Box, Size], Quad]:
    def swapped(box: Box, size: Size) -> Quad:
        x1, y1, x2, y2 = answer(box, size)
        return (y1, x1, y2, x2)

    return swapped


def as_xywh(answer: Callable[[Box, Size], Quad]) -> Callable[[Box, Size], Quad]:
    def sides(box: Box, size: Size) -> Quad:
        x1, y1, x2, y2 = answer(box, size)
        return (x1, y1, x2 - x1, y2 - y1)

    return sides


def families() -> list[str]:
    return [name for name in assets.options("model") if not name.startswith("control/")]


@cache
def frame_of(name: str) -> Frame | None:
    if name == "replay":
        return None
    model = assets.plain(assets.compose([f"model={name}"]).model)
    if "frame" not in model:
        return None
    return assets.build(model["frame"], "model.frame")


def wrong_answers(frame: Frame) -> dict[str, Callable[[Box, Size], Quad]]:
    """What answers of another convention than the declared one look like."""
    own = in_frame(frame)
    return {
        "0–1000": relative(1000),
        "0–1": relative(1),
        "original pixels": pixels_of(lambda size: size),
        "resized to a million pixels": pixels_of(SmartResize(28, 3136, 1_003_520)),
        "resized to 400,000 pixels": pixels_of(SmartResize(28, 3136, 401_408)),
        "y first": y_first(own),
        "x y w h": as_xywh(own),
    }


@pytest.mark.parametrize("name", families())
def test_every_wrong_frame_is_said_or_does_no_harm(name):
    frame = frame_of(name)
    if frame is None:
        pytest.skip("this model has no frame of its own")
    for kind, answer in wrong_answers(frame).items():
        for sizes in [*([size] for size in SIZES), SIZES]:
            accuracy, warnings = told(answer, frame, sizes, noise=0.02)
            assert warnings or accuracy >= 0.8, (kind, sizes, accuracy)


@pytest.mark.parametrize("name", families())
@pytest.mark.parametrize("right", [1.0, 0.5, 0.2, 0.0])
def test_answers_in_the_declared_frame_raise_no_word_however_often_they_are_wrong(name, right):
    frame = frame_of(name)
    if frame is None:
        pytest.skip("this model has no frame of its own")
    for sizes in [*([size] for size in SIZES), SIZES]:
        accuracy, warnings = told(in_frame(frame), frame, sizes, 0.02, right)
        assert warnings == (), (sizes, accuracy)


@pytest.mark.parametrize("right", [0.5, 0.3])
def test_a_wrong_frame_is_said_of_a_model_that_is_often_wrong(right):
    for sizes in ([(960, 540)], [(1600, 900)], SIZES):
        assert told(pixels_of(lambda size: size), Relative(), sizes, 0.0, right)[1], sizes
        small = pixels_of(SmartResize(28, 3136, 401_408))
        assert told(small, ResizedPixels(SmartResize(28, 3136, 12_845_056)), sizes, 0.0, right)[1], sizes


def test_the_scale_is_named():
    (warning,) = told(pixels_of(SmartResize(28, 3136, 1_003_520)), OriginalPixels(), [(1920, 1080)])[1]
    assert "resized to" in warning or "0.68" in warning
    assert "nothing was rescaled" in warning


def test_a_padded_square_is_recognised():
    def padded(box: Box, size: Size) -> Quad:
        side = max(size)
        dx, dy = (side - size[0]) / 2, (side - size[1]) / 2
        return tuple((v + d) / side * 1000 for v, d in zip(box.as_list(), (dx, dy, dx, dy), strict=True))

    assert "padded to a square" in told(padded, Relative(), [(960, 540)])[1][0]
    assert told(padded, PaddedSquare(1000), SIZES) == (1.0, ())


def test_the_order_of_arrival_changes_no_word():
    rng, frame = random.Random(1), Relative()
    items = []
    for number in range(60):
        gold = drawn(rng, (960, 540))
        quad = tuple(gold.as_list())
        items.append(
            (Reading(*frame.to_pixels(quad, Seen((960, 540), (960, 540)))[:1], 1, quad), f"e{number}", gold)
        )
    said = set()
    for seed in range(4):
        random.Random(seed).shuffle(items)
        check = FrameCheck(frame)
        for reading, example, gold in items:
            check.add(reading, Seen((960, 540), (960, 540)), example, gold)
        said.add(check.warnings())
    assert len(said) == 1


def test_one_box_for_every_image_is_said():
    quads = [(100, 200, 300, 400)] * 5 + [(10 + i, 20, 300, 400 + i) for i in range(15)]
    (warning,) = watched(Relative(), quads)
    assert "5 of 20 boxes are the same, [100, 200, 300, 400]" in warning


def test_whole_pictures_that_are_the_referent_are_no_sign():
    frame, seen, check = Relative(), VGA, FrameCheck(Relative())
    for number in range(30):
        box = frame.to_pixels((0, 0, 1000, 1000), seen)[0]
        check.add(Reading(box, 1, (0, 0, 1000, 1000 - number / 100)), seen, str(number), Box(0, 0, 640, 480))
    assert check.warnings() == ()


def test_draws_of_one_example_may_answer_alike():
    check, box = FrameCheck(Relative()), Box(64, 48, 320, 240)
    for _ in range(3):
        check.add(Reading(box, 1, (100, 100, 500, 500)), VGA, "one", Box(64, 48, 320, 240))
    assert len(check.samples().raw) == 3


@pytest.mark.parametrize("golds", [1, 40])
def test_one_box_for_all_is_no_sign_of_another_scale(golds):
    """A scale that takes the one answer to the one referent can always be found."""
    rng, frame, seen = random.Random(3), OriginalPixels(), Seen((320, 240), (320, 240))
    boxes = [drawn(rng, (320, 240)) for _ in range(golds)]
    check = FrameCheck(frame, "original")
    for number in range(40):
        box = frame.to_pixels((80, 60, 240, 180), seen)[0]
        check.add(Reading(box, 1, (80, 60, 240, 180)), seen, f"e{number}", boxes[number % golds])
    assert not any("frame:" in warning for warning in check.warnings())
