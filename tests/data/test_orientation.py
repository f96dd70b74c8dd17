"""Boxes of images with an EXIF orientation: never read on the wrong grid without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageOps

from refadv_ablate.boxes import Box
from refadv_ablate.data.images import EXIF_ORIENTATION
from refadv_ablate.data.loading import Annotations
from refadv_ablate.data.orientation import shown_size, to_stored
from refadv_ablate.errors import UserError
from tests.data.scenes import load

STORED = (64, 48)
TARGET = Box(8, 4, 24, 40)


def photographed(folder: Path, orientation: int, **row: object) -> Path:
    """A picture with a red box at TARGET on the stored grid, and a file with the box on the shown view."""
    image = Image.new("RGB", STORED, "white")
    ImageDraw.Draw(image).rectangle((8, 4, 23, 39), fill="red")
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = orientation
    image.save(folder / "a.png", exif=exif)
    shown = ImageOps.exif_transpose(Image.open(folder / "a.png"))
    pixels = shown.load()
    red = [(x, y) for x in range(shown.width) for y in range(shown.height) if pixels[x, y] == (255, 0, 0)]
    xs, ys = [x for x, _ in red], [y for _, y in red]
    box = [min(xs), min(ys), max(xs) + 1, max(ys) + 1]
    path = folder / "d.jsonl"
    path.write_text(json.dumps({"id": "1", "image": "a.png", "expression": "red", "box": box, **row}))
    return path


def targets(path: Path, **values: object) -> tuple[list[Box], Annotations]:
    data = load("jsonl", path=path, **values)
    return [example.target for example in data], data


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("sized", [False, True])
def test_boxes_on_the_shown_view_are_put_on_the_stored_grid(
    tmp_path: Path, orientation: int, sized: bool
) -> None:
    width, height = shown_size(STORED, orientation)
    size = {"width": width, "height": height} if sized else {}
    found, data = targets(photographed(tmp_path, orientation, **size), grid="shown")
    assert found == [TARGET]
    assert data.notes == ()
    assert data.fingerprint()["grid"] == "shown"


@pytest.mark.parametrize("orientation", range(2, 9))
def test_an_orientation_of_which_nothing_says_what_boxes_follow_is_warned_about(
    tmp_path: Path, orientation: int
) -> None:
    path = photographed(tmp_path, orientation, box=TARGET.as_list())
    found, data = targets(path)
    assert found == [TARGET]
    assert "declare data.grid=shown or data.grid=stored" in data.notes[0]
    assert targets(path, grid="stored")[1].notes == ()


@pytest.mark.parametrize("orientation", range(5, 9))
def test_annotated_sizes_tell_the_grid(tmp_path: Path, orientation: int) -> None:
    with pytest.raises(UserError, match=r"the rotated view, which data\.grid=shown declares"):
        targets(photographed(tmp_path, orientation, width=48, height=64))
    found, data = targets(photographed(tmp_path, orientation, width=64, height=48, box=TARGET.as_list()))
    assert found == [TARGET]
    assert data.notes == ()


def test_a_swapped_size_at_orientation_1_is_not_blamed_on_a_rotation(tmp_path: Path) -> None:
    for grid in ("null", "shown"):
        with pytest.raises(UserError, match="no EXIF orientation explains it") as error:
            targets(photographed(tmp_path, 1, width=48, height=64), grid=grid)
        assert "rotated" not in str(error.value)


def test_candidates_and_instances_follow_the_boxes(tmp_path: Path) -> None:
    path = photographed(tmp_path, 6)
    box = json.loads(path.read_text())["box"]
    tree = {
        "images": [{"id": 1, "file_name": "a.png", "width": 48, "height": 64}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [*box[:2], box[2] - box[0], box[3] - box[1]]}
        ],
        "categories": [{"id": 1, "name": "thing"}],
    }
    (tmp_path / "i.json").write_text(json.dumps(tree))
    (example,) = load("jsonl", path=path, grid="shown", instances=tmp_path / "i.json")
    assert (example.category, [one.box for one in example.candidates]) == ("thing", [TARGET])
    listed = photographed(tmp_path, 6, candidates=[{"box": box, "category": "thing"}])
    (example,) = load("jsonl", path=listed, grid="shown")
    assert [one.box for one in example.candidates] == [TARGET]


def test_boxes_that_leave_the_stored_grid_name_the_orientation_as_a_cause(tmp_path: Path) -> None:
    path = photographed(tmp_path, 6)
    row = json.loads(path.read_text())
    rows = [{**row, "id": str(n), "box": [2, 40, 30, 60 + n % 3]} for n in range(12)]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    with pytest.raises(UserError, match=r"12 of these images .* declare data\.grid=shown"):
        targets(path)


def test_a_wrong_grid_is_refused() -> None:
    with pytest.raises(UserError, match=r"data\.grid='viewed'"):
        load("jsonl", path="d.jsonl", grid="viewed")
    assert to_stored(Box(31.5, 129.3, 81.9, 245.9), 6, (400, 300)).as_list() == pytest.approx(
        [129.3, 218.1, 245.9, 268.5]
    )
