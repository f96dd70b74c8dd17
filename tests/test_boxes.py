"""Boxes: the frame, no +1, and IoU against an independent implementation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as coco

from refadv_ablate.boxes import Box, BoxMap, iou, iou_matrix, iou_pairs

numbers = st.floats(-50, 1500, allow_nan=False).map(lambda v: round(v, 2))
boxes = st.tuples(numbers, numbers, st.floats(0.5, 700), st.floats(0.5, 700)).map(lambda v: Box.from_xywh(*v))


def test_iou_by_hand():
    assert iou(Box(0, 0, 10, 10), Box(5, 0, 15, 10)) == pytest.approx(50 / 150)
    assert iou(Box(0, 0, 10, 10), Box(10, 0, 20, 10)) == 0.0, "touching boxes share no area: there is no +1"
    assert iou(Box(2, 3, 4, 9), Box(2, 3, 4, 9)) == 1.0


@given(boxes, boxes)
def test_iou_agrees_with_pycocotools(a, b):
    theirs = coco.iou([[a.x1, a.y1, a.width, a.height]], [[b.x1, b.y1, b.width, b.height]], [0])[0][0]
    assert iou(a, b) == pytest.approx(theirs, abs=1e-9)
    assert 0 <= iou(a, b) <= 1
    assert iou(a, b) == iou(b, a)
    assert iou_pairs(np.array([a.as_list()]), np.array([b.as_list()]))[0] == pytest.approx(
        iou(a, b), abs=1e-12
    )


def test_a_row_without_area_or_with_nan_scores_zero():
    a = np.array([[0, 0, 10, 10], [5, 5, 5, 9], [math.nan, 0, 1, 1], [9, 9, 1, 1]], float)
    b = np.array([[0, 0, 10, 10]] * 4, float)
    assert iou_pairs(a, b).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_matrix_shape_and_values():
    grid = iou_matrix(
        [Box(0, 0, 2, 2), Box(1, 0, 3, 2)], [Box(0, 0, 2, 2), Box(0, 0, 4, 2), Box(9, 9, 10, 10)]
    )
    assert grid.shape == (2, 3)
    assert grid[0].tolist() == [1.0, 0.5, 0.0]
    assert iou_matrix([], [Box(0, 0, 1, 1)]).shape == (0, 1)


@pytest.mark.parametrize(
    "values",
    [
        (0, 0, 0, 1),
        (3, 0, 1, 1),
        (0, 1, 1, 1),
        (0, 0, math.nan, 1),
        (0, 0, math.inf, 1),
        (-math.inf, 0, math.inf, 1),
        (0, -math.inf, 1, math.inf),
    ],
)
def test_a_box_has_area_and_finite_corners(values):
    with pytest.raises(ValueError, match="box"):
        Box(*values)


def test_inside_allows_a_tolerance():
    assert Box(0, 0, 640, 480).inside((640, 480))
    assert not Box(0, 0, 640.4, 480).inside((640, 480))
    assert Box(0, 0, 640.4, 480).inside((640, 480), tolerance=0.5)


offsets = st.floats(-500, 500, allow_nan=False)
factors = st.one_of(st.floats(0.2, 4), st.floats(-4, -0.2))
maps = st.builds(BoxMap, factors, factors, offsets, offsets)


@given(maps, maps, offsets, offsets, st.floats(1, 300), st.floats(1, 300))
def test_a_map_of_boxes_goes_both_ways_and_composes(
    a: BoxMap, b: BoxMap, x: float, y: float, w: float, h: float
) -> None:
    box = Box(x, y, x + w, y + h)
    assert a.inverse()(a(box)).as_list() == pytest.approx(box.as_list(), abs=1e-6)
    assert a.then(b)(box).as_list() == pytest.approx(b(a(box)).as_list(), abs=1e-6)
    other = Box(x + w / 3, y - h / 4, x + 2 * w, y + h)
    assert iou(a(box), a(other)) == pytest.approx(iou(box, other), abs=1e-9), "IoU is the same in any frame"


def test_a_map_of_boxes_refuses_what_is_none() -> None:
    for values in [(0, 1, 0, 0), (1, 1, float("nan"), 0)]:
        with pytest.raises(ValueError, match="box map"):
            BoxMap(*values)


def test_a_mirror_and_a_resize_by_hand() -> None:
    assert BoxMap.mirror(640)(Box(10, 20, 30, 50)) == Box(610, 20, 630, 50)
    assert BoxMap.between((640, 480), (320, 960))(Box(10, 20, 30, 50)) == Box(5, 40, 15, 100)


def test_whole_numbers_are_boxes_too() -> None:
    """Integer arrays, as pandas and JSON give them, score as floats do."""
    rows = np.array([[0, 0, 10, 10], [0, 0, 4, 4]])
    assert iou_pairs(rows, np.array([[5, 0, 15, 10], [2, 0, 6, 4]])).tolist() == [50 / 150, 8 / 24]
    assert iou_pairs([["0", "0", "10", "10"]], [["5", "0", "15", "10"]]).tolist() == [50 / 150]  # type: ignore[arg-type]


def test_a_row_turned_inside_out_has_no_area() -> None:
    a = np.array([[9, 9, 1, 1]], float)
    assert iou_pairs(a, np.array([[0, 0, 10, 10]], float)).tolist() == [0.0]
    assert iou_pairs(np.array([[0, 0, 10, 10]], float), a).tolist() == [0.0]


def test_identical_boxes_never_score_above_one() -> None:
    """Rounding in area − overlap must not lift the quotient over 1."""
    for k in range(1, 400):
        box = Box(k * 0.1, k * 0.3, k * 0.1 + k * 0.7, k * 0.3 + 1.1)
        assert iou(box, box) <= 1.0
        assert iou_pairs(np.array([box.as_list()]), np.array([box.as_list()]))[0] <= 1.0
