"""Operators on the picture: what they cover, what follows, what they refuse."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perturbations import Blank, EraseDistractors, ImageQuality, Mirror, Occlude, WrongImage, sides
from refadv_ablate.boxes import Box, iou
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.prompting.som import DataCandidates
from refadv_ablate.seeding import generator
from refadv_ablate.storage.jsonl import to_line
from refadv_ablate.storage.records import perturbed_from_json, perturbed_to_json
from refadv_ablate.types import Example, Perturbed
from tests.scripted import example

DATA = Shapes(n=12)
SCENES = tuple(DATA)
OPERATORS = (
    Mirror(),
    Mirror("keep"),
    Blank(),
    Blank("noise"),
    WrongImage().with_data(DATA),
    Occlude(n_placebos=2),
    EraseDistractors(),
    ImageQuality(severities=(2,)),
)


def asked(operator, e: Example) -> list[Perturbed]:
    rng = generator(0, e.id, "x", 0)
    return list(operator.parts(e, rng)) if hasattr(operator, "parts") else [operator.perturb(e, rng)]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_the_same_seed_gives_the_same_bytes_also_from_a_line_of_a_file(operator) -> None:
    images = {e.image.key: e.image for e in SCENES}
    for e in SCENES[:4]:
        for first, again in zip(asked(operator, e), asked(operator, e), strict=True):
            back = perturbed_from_json(json.loads(to_line(perturbed_to_json(first))), e, images.__getitem__)
            assert first == again == back
            assert pickle.loads(pickle.dumps(back.example.image)).digest() == first.example.image.digest()
        last = asked(operator, e)[-1].example.image
        assert last.load().tobytes() == asked(operator, e)[-1].example.image.load().tobytes()


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_boxes_lie_in_the_picture_that_is_asked_about_and_candidates_follow(operator) -> None:
    for e in SCENES:
        for p in asked(operator, e):
            if p.status == "not_perturbable":
                assert p.reason
                continue
            size = p.example.image.size()
            assert p.example.target.inside(size, 1e-6)
            assert all(c.box.inside(size, 1e-6) for c in p.example.candidates)
            assert len(DataCandidates().boxes(p.example)) == len({c.box for c in p.example.candidates})
            if p.expectation == "invariant":
                assert p.example.target == p.frame(e.target)
                assert any(iou(c.box, p.example.target) > 0.99 for c in p.example.candidates)


def test_a_mirror_swaps_words_and_twice_it_is_the_identity() -> None:
    e = SCENES[0].saying("the LEFT one, leftmost of the Right-hand row")
    once = Mirror().perturb(e, generator(0))
    assert once.example.expression == "the RIGHT one, rightmost of the Left-hand row"
    twice = Mirror().perturb(once.example, generator(0))
    assert twice.example.expression == e.expression
    assert twice.example.target.as_list() == pytest.approx(e.target.as_list())
    assert twice.example.image.load().tobytes() == e.image.load().tobytes()
    assert (once.expectation, Mirror("keep").perturb(e, generator(0)).expectation) == (
        "invariant",
        "directional",
    )
    plain = Mirror("keep").perturb(e.saying("the red one"), generator(0))
    assert plain.expectation == "invariant", "without a side the same object is meant"


@given(st.text(max_size=60))
def test_swapping_sides_twice_gives_any_text_back(text: str) -> None:
    assert sides.swapped(sides.swapped(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "the cup right next to the jar", "the man right behind her", "bag left behind on the bench",
        "the only slice left", "pizza that is left.", "leftovers on the plate", "his left hand",
        "the woman's right shoe", "left arm of the chair", "right-handed batter", "the sign that says STOP",
        "shirt with the number 7", 'cup reading "left"', "the bus labeled 'A1'", "the right answer",
        "the one that is right", "a right angle", "human rights poster", "bottle with a logo", "USA jacket",
    ],
)  # fmt: skip
def test_what_may_not_be_a_side_of_the_picture_is_refused_with_its_words(text: str) -> None:
    p = Mirror().perturb(SCENES[0].saying(text), generator(0))
    assert p.status == "not_perturbable"
    assert p.reason.startswith("'") or p.reason.startswith('"')


@pytest.mark.parametrize(
    "text",
    [
        "man on the left", "the right cup", "leftmost zebra", "second from right", "the cup left of the jar",
        "the chair in the right corner", "the dog on the right side", "right-hand side elephant",
        "the person left of the tree", "THE LEFT ZEBRA", "girl in pink", "the left one, near the red car",
    ],
)  # fmt: skip
def test_sides_of_the_picture_are_not_refused(text: str) -> None:
    assert sides.why_not(text) == ""


def test_a_wrong_image_lacks_the_category_and_keeps_relative_places() -> None:
    operator = WrongImage().with_data(Shapes(n=40))
    for e in SCENES:
        p = operator.perturb(e, generator(0, e.id))
        if p.status == "not_perturbable":
            continue
        assert p.example.image.key != e.image.key
        assert e.category not in {c.category for c in p.example.candidates}
        (w, h), (wide, high) = e.image.size(), p.example.image.size()
        assert p.example.target.x1 / wide == pytest.approx(e.target.x1 / w)
        assert p.example.target.y2 / high == pytest.approx(e.target.y2 / h)
        assert (p.expectation, p.example.distractors, operator.or_none) == ("reject", 0, True)
    nothing = WrongImage().with_data(Shapes(n=1)).perturb(SCENES[0], generator(0))
    assert "no other picture" in nothing.reason
    unknown = operator.perturb(replace(SCENES[0], category=None), generator(0))
    assert "no category" in unknown.reason
    with pytest.raises(UserError, match="from the data"):
        WrongImage().perturb(SCENES[0], generator(0))


def test_occlusion_covers_the_referent_and_placebos_touch_nothing_they_can_avoid() -> None:
    for e in SCENES:
        covered, *placebos = asked(Occlude(n_placebos=2), e)
        before = np.asarray(e.image.load())
        after = np.asarray(covered.example.image.load())
        rows, columns = np.nonzero((before != after).any(axis=2))
        box = e.target
        assert columns.min() >= int(box.x1) and columns.max() <= box.x2 and rows.min() >= int(box.y1)
        assert rows.max() <= box.y2, "pixels outside the fill are unchanged"
        for p in placebos:
            assert p.placebo
            if p.status == "changed":
                patch = Box(*p.trace["covered"])
                assert iou(patch, e.target) == 0
                assert patch.width == pytest.approx(e.target.width)
                assert (p.trace["hides"] == 0) == (p.part == "placebo")


def test_no_room_for_a_placebo_is_said() -> None:
    e = replace(example(1), target=Box(10, 10, 630, 470))
    found = asked(Occlude(), e)
    assert [p.part for p in found] == ["referent", "placebo"]
    assert "lies clear of it" in found[1].reason


def test_erasing_distractors_leaves_the_referent_and_other_categories() -> None:
    for e in SCENES:
        (p,) = asked(EraseDistractors(), e)
        like = [c for c in p.example.candidates if c.category == e.category]
        assert [c.box for c in like] == [e.target]
        assert p.example.distractors == 0
        assert p.trace["erased"] == e.distractors
        others = [c for c in e.candidates if c.category != e.category]
        assert [c for c in p.example.candidates if c.category != e.category] == others
    over = replace(
        example(1),
        candidates=(*example(1).candidates[:1], replace(example(1).candidates[0], box=Box(60, 60, 200, 260))),
    )
    assert "overlaps" in asked(EraseDistractors(), over)[0].reason
    assert "no instances" in asked(EraseDistractors(), replace(example(1), candidates=()))[0].reason


def test_quality_asks_every_kind_and_severity_and_expects_colours_to_go_with_gray() -> None:
    found = asked(ImageQuality(severities=(1, 5)), SCENES[0].saying("the red cup"))
    graded = [f"{kind}-{grade}" for kind in ("jpeg", "blur", "noise", "scale", "pad") for grade in (1, 5)]
    assert [p.part for p in found] == ["gray", *graded]
    assert [p.part for p in found if p.expectation != "invariant"] == ["gray"]
    plain = asked(ImageQuality(kinds=("gray",)), SCENES[0].saying("the tall cup"))
    assert plain[0].expectation == "invariant"
    pad = found[-1]
    assert pad.example.image.size()[0] == pytest.approx(SCENES[0].image.size()[0] * 1.2, abs=1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ImageQuality(kinds=("melt",)), "choose from"),
        (lambda: ImageQuality(severities=(6,)), "1 to 5"),
        (lambda: ImageQuality(severities=()), "at least one"),
        (lambda: Occlude(n_placebos=0), "at least 1"),
        (lambda: Occlude(ink="red"), "choose surround"),
        (lambda: Blank(ink="red"), "choose gray"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(make, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make()
