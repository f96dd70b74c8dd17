"""Coordinate frames, each with boxes worked out by hand, resize rules against the processors', warnings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refadv_ablate.boxes import Box
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.parsing.frames import (
    LongestSide,
    OriginalPixels,
    PaddedSquare,
    Relative,
    ResizedPixels,
    SmartResize,
    Within,
)
from refadv_ablate.types import NoBox, Seen

VGA = Seen((640, 480), (640, 480))
TALL = Seen((480, 640), (480, 640))
QWEN = SmartResize(28, 56 * 56, 12_845_056)

SIZES = [(640, 480), (1024, 768), (368, 434), (1, 1), (30, 20), (28, 28), (51, 31), (4000, 3000), (500, 333),
         (10, 1900), (13817, 8511), (1080, 1920), (407, 663), (14, 2000), (42, 42), (70, 98)]  # fmt: skip
BOUNDS = [(28, 3136, 12_845_056), (28, 3136, 1_003_520), (32, 65_536, 16_777_216), (28, 200_704, 401_408)]


@pytest.mark.parametrize(("factor", "least", "most"), BOUNDS)
def test_smart_resize_agrees_with_the_processor(factor, least, most):
    theirs = pytest.importorskip("transformers.models.qwen2_vl.image_processing_qwen2_vl").smart_resize
    for width, height in SIZES:
        # theirs takes and returns height before width
        h, w = theirs(height, width, factor=factor, min_pixels=least, max_pixels=most)
        assert SmartResize(factor, least, most)((width, height)) == (w, h), (width, height)


def test_smart_resize_of_known_sizes():
    assert QWEN((640, 480)) == (644, 476)
    assert QWEN((1024, 768)) == (1036, 756)
    assert QWEN((368, 434)) == (364, 448)  # 434 / 28 = 15.5, rounded to even


@given(st.tuples(st.integers(30, 3000), st.integers(30, 3000)))
def test_smart_resize_of_its_own_result_is_the_same(size):
    """So an image resized before sending is not resized again."""
    rule = SmartResize(28, 3136, 1_003_520)
    assert rule(rule(size)) == rule(size)


@pytest.mark.parametrize("size", [(10_000, 40), (1, 300), (0, 5)])
def test_extreme_images_are_refused_in_one_sentence(size):
    with pytest.raises(ImageUnreadable, match="too long"):
        QWEN(size)


def test_longest_side_never_enlarges():
    assert LongestSide(1568)((3136, 1000)) == (1568, 500)
    assert LongestSide(1568)((640, 480)) == (640, 480)


def test_longest_side_keeps_one_pixel_of_a_thread():
    assert LongestSide(100)((1000, 1)) == (100, 1)
    assert LongestSide(100)((1, 1000)) == (1, 100)


def test_a_side_below_the_least_is_enlarged_and_a_thread_refused():
    rule = Within(28, 200)
    assert rule((28, 28)) == (28, 28)
    assert rule((640, 480)) == (640, 480)
    assert rule((14, 20)) == (28, 40)
    assert rule((20, 14)) == (40, 28)
    assert rule((10, 33)) == (28, 93), "92.4, rounded up"
    assert rule((1, 200)) == (28, 5600), "exactly as long as is allowed"
    for size in [(1, 201), (201, 1), (0, 5)]:
        with pytest.raises(ImageUnreadable, match=f"{size[0]}×{size[1]} is too long"):
            rule(size)


def test_smart_resize_takes_sizes_exactly_at_its_bounds():
    assert SmartResize(28, 28 * 28, 560 * 560)((560, 560)) == (560, 560)
    assert SmartResize(28, 560 * 560, 1120 * 1120)((560, 560)) == (560, 560)
    assert SmartResize(28, 3136, 12_845_056)((28, 5600)) == (28, 5600), "200:1 is allowed"


def test_a_frame_says_what_it_is():
    assert str(Relative(1000)) == "0–1000 of the image, x first"
    assert str(Relative(1, "yxyx")) == "0–1 of the image, y first"
    assert str(ResizedPixels()) == "pixels of the resized image"
    assert str(OriginalPixels()) == "pixels of the original image"


CASES = [
    # an asymmetric box: every mix-up of order or axis gives another one
    (Relative(1000), (100, 200, 300, 400), VGA, (64, 96, 192, 192), ()),
    (Relative(1000, "yxyx"), (200, 100, 400, 300), VGA, (64, 96, 192, 192), ()),
    (Relative(999), (0, 0, 999, 999), VGA, (0, 0, 640, 480), ()),
    (Relative(1), (0.1, 0.2, 0.3, 0.4), VGA, (64, 96, 192, 192), ()),
    # relative answers don't depend on what was sent or processed
    (Relative(1000), (100, 200, 300, 400), Seen((640, 480), (320, 240), (336, 252)), (64, 96, 192, 192), ()),
    # a 4000×3000 image that a server made 2044×1540
    (ResizedPixels(), (511, 385, 1022, 770), Seen((4000, 3000), (4000, 3000), (2044, 1540)),
     (1000, 750, 2000, 1500), ()),
    (ResizedPixels(QWEN), (64.4, 95.2, 193.2, 190.4), VGA, (64, 96, 192, 192), ()),
    (ResizedPixels(QWEN), (64, 96, 192, 192), Seen((640, 480), (640, 480), (640, 480)), (64, 96, 192, 192),
     ("resize_mismatch",)),
    (ResizedPixels(QWEN), (64.4, 95.2, 193.2, 190.4), Seen((1280, 960), (644, 476), (644, 476)),
     (128, 192, 384, 384), ()),
    (ResizedPixels(), (10, 20, 30, 40), Seen((640, 480), (320, 240)), (20, 40, 60, 80), ()),
    (OriginalPixels(), (10, 20, 30, 40), VGA, (10, 20, 30, 40), ()),
    # 640×480 padded to 640×640: 80 pixels above and below
    (PaddedSquare(1), (0.5, 0.5, 0.75, 0.625), VGA, (320, 240, 480, 320), ()),
    (PaddedSquare(1000, centered=False), (500, 500, 750, 625), VGA, (320, 320, 480, 400), ()),
    # 480×640 padded to 640×640: 80 pixels left and right
    (PaddedSquare(1), (0.5, 0.5, 0.75, 0.625), TALL, (240, 320, 400, 400), ()),
    (PaddedSquare(1), (0.5, 0.5, 0.75, 1.0), VGA, (320, 240, 480, 480), ("clipped",)),
    (PaddedSquare(1), (0.5, 0.5, 0.75, 1.5), VGA, (320, 240, 480, 480), ("clipped", "scale_contradiction")),
    (PaddedSquare(1000, centered=False), (0.5, 0.3, 1.0, 0.9), TALL, (0.32, 0.192, 0.64, 0.576),
     ("scale_contradiction",)),
    (PaddedSquare(1000, centered=False), (0.5, 0.3, 2.0, 0.9), TALL, (0.32, 0.192, 1.28, 0.576), ()),
    # corners in the wrong order, outside the image
    (OriginalPixels(), (30, 40, 10, 20), VGA, (10, 20, 30, 40), ("swapped",)),
    (OriginalPixels(), (-5, 20, 645, 40), VGA, (0, 20, 640, 40), ("clipped",)),
    (ResizedPixels(QWEN), (0, 0, 360, 480), VGA, (0, 0, 360 * 640 / 644, 480), ("clipped",)),
    # the scale contradicts the frame: noted, never rescaled
    (Relative(1000), (100, 200, 300, 1200), VGA, (64, 96, 192, 480), ("clipped", "scale_contradiction")),
    (Relative(1000), (0.1, 0.2, 0.3, 0.4), VGA, (0.064, 0.096, 0.192, 0.192), ("scale_contradiction",)),
    (Relative(1), (100, 100, 0.5, 0.5), VGA, (320, 240, 640, 480),
     ("swapped", "clipped", "scale_contradiction")),
    (OriginalPixels(), (0.1, 0.2, 0.3, 0.4), VGA, (0.1, 0.2, 0.3, 0.4), ("scale_contradiction",)),
    (OriginalPixels(), (10, 20, 900, 40), VGA, (10, 20, 640, 40), ("clipped", "scale_contradiction")),
    # where a note begins: at the limit of the scale, 5% outside, half a hundredth of a pixel
    (Relative(1000), (0.1, 0.2, 0.5, 1.0), VGA, (0.064, 0.096, 0.32, 0.48), ("scale_contradiction",)),
    (Relative(1000), (0.1, 0.2, 0.5, 1.5), VGA, (0.064, 0.096, 0.32, 0.72), ()),
    (OriginalPixels(), (0.1, 0.2, 1.0, 1.0), VGA, (0.1, 0.2, 1.0, 1.0), ("scale_contradiction",)),
    (OriginalPixels(), (0.1, 0.2, 1.0, 1.5), VGA, (0.1, 0.2, 1.0, 1.5), ()),
    (OriginalPixels(), (10, 20, 672, 504), VGA, (10, 20, 640, 480), ("clipped",)),
    (OriginalPixels(), (700, 20, 100, 40), VGA, (100, 20, 640, 40),
     ("swapped", "clipped", "scale_contradiction")),
    (OriginalPixels(), (10, 20, 30, 700), VGA, (10, 20, 30, 480), ("clipped", "scale_contradiction")),
    (ResizedPixels(), (10, 20, 900, 40), VGA, (10, 20, 640, 40), ("clipped", "scale_contradiction")),
    *((OriginalPixels(), quad, VGA, box, ("clipped",)) for quad, box in [
        ((-0.5, 20, 30, 40), (0, 20, 30, 40)), ((10, -0.5, 30, 40), (10, 0, 30, 40)),
        ((10, 20, 640.5, 40), (10, 20, 640, 40)), ((10, 20, 30, 480.5), (10, 20, 30, 480))]),
    (OriginalPixels(), (-0.004, -0.004, 640.004, 480.004), VGA, (0, 0, 640, 480), ()),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "quad", "seen", "box", "notes"), CASES)
def test_numbers_become_pixels(frame, quad, seen, box, notes):
    found, noted = frame.to_pixels(quad, seen)
    assert isinstance(found, Box)
    assert found.as_list() == pytest.approx(list(box), abs=1e-9)
    assert noted == notes


@pytest.mark.parametrize(
    "quad", [(10, 20, 10, 40), (700, 20, 800, 40), (5, 5, 5, 5), (float("nan"), 0, 1, 1)]
)
def test_a_box_without_area_is_no_box(quad):
    found, notes = OriginalPixels().to_pixels(quad, VGA)
    assert isinstance(found, NoBox)
    assert found.kind == "unparsable"
    assert "degenerate" in notes


NUMBERS = st.floats(-1e6, 1e6)


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), st.integers(1, 3000), st.integers(1, 3000))
def test_a_box_always_lies_within_the_image(quad, width, height):
    seen = Seen((width, height), (width, height), (max(1, width // 2), max(1, height // 3)))
    for frame in (Relative(), Relative(1, "yxyx"), ResizedPixels(), OriginalPixels(), PaddedSquare(1000)):
        found, _ = frame.to_pixels(quad, seen)
        assert isinstance(found, NoBox) or found.inside(seen.original)
