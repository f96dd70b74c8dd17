"""Edits of an image: exact where they say so, the same bytes each time, with keys of their own."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from refadv_ablate import edits
from refadv_ablate.boxes import Box, BoxMap
from refadv_ablate.data.images import BytesImage, encode
from refadv_ablate.edits import Blank, Blur, Edited, Fill, Grayscale, Jpeg, Mirror, Noise, Pad, Scale, edited

RNG = np.random.default_rng(3)
PICTURE = Image.fromarray(RNG.integers(0, 256, (31, 47, 3), np.uint8))
SOURCE = BytesImage(encode(PICTURE), "photo")
EVERY = (
    Mirror(),
    Blank(),
    Blank("noise", 5),
    Fill(((3.2, 4.0, 12.5, 20.0),)),
    Fill(((3, 4, 12, 20), (20, 1, 30, 9)), "noise", 7),
    Grayscale(),
    Jpeg(20),
    Blur(0.05),
    Noise(12.0, 9),
    Scale(0.6),
    Pad(3, 0, 4, 5),
)
numbers = st.floats(0, 40, allow_nan=False)
sides = st.floats(0.1, 30)


def pixels(edit: edits.Edit, picture: Image.Image = PICTURE) -> np.ndarray:
    return np.asarray(edit.apply(picture))


@pytest.mark.parametrize("edit", EVERY, ids=str)
def test_same_edit_same_bytes_and_the_source_is_left_alone(edit: edits.Edit) -> None:
    before = PICTURE.tobytes()
    first, again = edited(SOURCE, edit), pickle.loads(pickle.dumps(edited(SOURCE, edit)))
    assert first.load().tobytes() == again.load().tobytes()
    assert first.load().mode == "RGB"
    assert first.digest() == again.digest() != SOURCE.digest()
    assert first.key == SOURCE.key, "the same image for the inference"
    assert first.size() == first.load().size
    assert PICTURE.tobytes() == before


@pytest.mark.parametrize("edit", EVERY, ids=str)
def test_an_edit_survives_json(edit: edits.Edit) -> None:
    rows = json.loads(json.dumps(edits.to_json([edit])))
    assert edits.from_json(rows) == (edit,)
    assert Edited(SOURCE, edits.from_json(rows)).digest() == edited(SOURCE, edit).digest()


def test_no_two_edits_share_a_digest() -> None:
    digests = [edited(SOURCE, edit).digest() for edit in EVERY]
    assert len(set(digests)) == len(EVERY)
    both = edited(SOURCE, Mirror(), Grayscale())
    assert both == edited(edited(SOURCE, Mirror()), Grayscale()), "edits of an edited image are one list"
    assert edited(SOURCE) is SOURCE


def test_what_shows_nothing_of_its_source_is_one_image_for_one_size() -> None:
    other = BytesImage(encode(Image.new("RGB", PICTURE.size, "red")), "other")
    assert edited(SOURCE, Blank()).digest() == edited(other, Blank()).digest()
    assert edited(SOURCE, Grayscale()).digest() != edited(other, Grayscale()).digest()


def test_a_mirror_is_its_own_inverse_in_pixels_and_boxes() -> None:
    assert Mirror().apply(Mirror().apply(PICTURE)).tobytes() == PICTURE.tobytes()
    assert edited(SOURCE, Mirror(), Mirror()).frame() == BoxMap()
    box = Box(1, 2, 10, 7)
    assert edited(SOURCE, Mirror()).frame()(box) == Box(37, 2, 46, 7)


@settings(max_examples=60, deadline=None)
@given(numbers, numbers, sides, sides, st.sampled_from(["surround", "gray", "noise"]))
def test_pixels_outside_a_fill_are_unchanged(x: float, y: float, w: float, h: float, ink: edits.Ink) -> None:
    box = Box(x, y, x + w, y + h)
    filled = pixels(Fill((tuple(box.as_list()),), ink, 1))
    rows, columns = edits.touched(box.as_list(), PICTURE.size)
    inside = np.zeros(filled.shape[:2], bool)
    inside[rows, columns] = True
    assert np.array_equal(filled[~inside], np.asarray(PICTURE)[~inside])
    ys, xs = np.mgrid[0 : PICTURE.height, 0 : PICTURE.width]
    meets = (xs + 1 > box.x1) & (xs < box.x2) & (ys + 1 > box.y1) & (ys < box.y2)
    assert np.array_equal(inside, meets), "covered is what the box touches, no more and no less"


def test_a_fill_with_what_is_around_leaves_no_trace_on_an_even_ground() -> None:
    ground = Image.new("RGB", (40, 30), (200, 180, 160))
    drawn = ground.copy()
    drawn.paste((255, 0, 0), (10, 8, 20, 18))
    assert Fill(((10, 8, 20, 18),)).apply(drawn).tobytes() == ground.tobytes()
    everything = Fill(((0, 0, 40, 30),)).apply(drawn)
    assert everything.getcolors() == [(1200, (128, 128, 128))], "nothing lies around the whole picture"


def test_padding_keeps_the_picture_pixel_for_pixel_and_scaling_says_its_frame() -> None:
    padded = pixels(Pad(3, 2, 4, 5))
    assert padded.shape == (31 + 7, 47 + 7, 3)
    assert np.array_equal(padded[2:33, 3:50], np.asarray(PICTURE))
    assert Pad(3, 2, 4, 5).frame(PICTURE.size)(Box(0, 0, 47, 31)) == Box(3, 2, 50, 33)
    scaled = edited(SOURCE, Scale(0.6))
    assert scaled.size() == (28, 19)
    assert scaled.frame()(Box(0, 0, 47, 31)).as_list() == pytest.approx([0, 0, 28, 19])
    assert scaled.frame().inverse()(scaled.frame()(Box(5, 6, 7, 8))).as_list() == pytest.approx([5, 6, 7, 8])


def test_gray_has_no_colour_and_is_gray_already_when_gray_again() -> None:
    gray = pixels(Grayscale())
    assert np.array_equal(gray[..., 0], gray[..., 1]) and np.array_equal(gray[..., 1], gray[..., 2])
    assert np.array_equal(pixels(Grayscale(), Image.fromarray(gray)), gray)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"edit": "melt"}], "no edit of an image"),
        ([{"edit": "jpeg"}], "can't be read"),
        ([{"edit": "mirror", "axis": "y"}], "has no axis"),
        ([{"edit": "fill", "boxes": [[1, 2, 1, 4]]}], "no area"),
        (["mirror"], "no edit of an image"),
    ],
)
def test_what_is_no_edit_is_refused_in_a_sentence(rows: list, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        edits.from_json(rows)
