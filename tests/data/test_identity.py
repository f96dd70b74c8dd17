"""An image is its content or its whole relative name: never the last component where two images share it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from refadv_ablate.data.check import report
from refadv_ablate.data.images import FileImage, encode
from refadv_ablate.data.loading import Annotations
from refadv_ablate.data.naming import full_name, names_of
from refadv_ablate.errors import UserError
from tests.data.scenes import load

ROOMS = ("kitchen", "office", "street")
COCO = "COCO_val2014_000000000009.jpg"


def drawn(path: Path, shade: int, size: tuple[int, int] = (64, 48)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, 90, 255 - shade)).save(path)
    return path


def a_set(folder: Path, images: Sequence[str], **values: object) -> Annotations:
    rows = [
        {"id": str(n), "image": name, "expression": "the red cup", "box": [4, 6, 24, 36]}
        for n, name in enumerate(images)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load("jsonl", path=path, **values)


@pytest.fixture
def rooms(tmp_path: Path) -> Annotations:
    """Six images: two file names in each of three folders, no two alike."""
    names = [f"{room}/{n}.png" for room in ROOMS for n in range(2)]
    for shade, name in enumerate(names):
        drawn(tmp_path / name, 40 * shade)
    return a_set(tmp_path, names)


def opened(data: Annotations) -> list[str]:
    return ["/".join(e.image.path.parts[-2:]) for e in data if isinstance(e.image, FileImage)]


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("./kitchen//1.png", "kitchen/1.png"),
        ("kitchen\\1.png", "kitchen/1.png"),
        ("train2014/COCO_train2014_000000000009_7.jpg", "train2014/COCO_train2014_000000000009.jpg"),
        ("a_1.jpg", "a_1.jpg"),
        ("", ""),
    ],
)
def test_a_full_name_is_tidy(name: str, full: str) -> None:
    assert full_name(name) == full


def test_a_base_name_is_a_key_only_where_it_is_unique() -> None:
    names = names_of(["kitchen/1.png", "kitchen/2.png", "office/1.png", "kitchen/1.png"])
    assert [names.key(n) for n in ("kitchen/1.png", "kitchen/2.png")] == ["kitchen/1.png", "2.png"]
    assert names.folders == 2


def test_one_file_name_in_three_folders_is_three_images(rooms: Annotations) -> None:
    found = report(rooms)
    assert (found.examples, found.images, found.findings) == (6, 6, ())
    assert len({e.image.key for e in rooms}) == 6


def test_coco_names_that_two_folders_share_are_two_images(tmp_path: Path) -> None:
    for shade, folder in enumerate(("clean", "fog")):
        drawn(tmp_path / folder / COCO, 100 * shade)
    data = a_set(tmp_path, [f"clean/{COCO}", f"fog/{COCO}"])
    assert len({e.image.key for e in data}) == 2
    assert opened(data) == [f"clean/{COCO}", f"fog/{COCO}"]
    deeper = load("jsonl", path=tmp_path / "d.jsonl", image_root=tmp_path / "fog", exclude="[missing_image]")
    assert opened(deeper) == [f"fog/{COCO}"]


@pytest.mark.parametrize("room", ROOMS)
def test_an_image_root_one_folder_too_deep_never_opens_another_picture(
    rooms: Annotations, tmp_path: Path, room: str
) -> None:
    data = load("jsonl", path=rooms.path, image_root=tmp_path / room, exclude="[missing_image]")
    assert opened(data) == [f"{room}/0.png", f"{room}/1.png"]
    assert data.excluded == {"missing_image": 4}
    with pytest.raises(UserError, match=r"is not under .*set data\.image_root"):
        list(load("jsonl", path=rooms.path, image_root=tmp_path / room))


def test_a_part_of_a_set_does_not_make_a_shared_name_safe(rooms: Annotations, tmp_path: Path) -> None:
    part = a_set(tmp_path / "part", ["office/0.png"], image_root=tmp_path / "kitchen")
    with pytest.raises(UserError, match="is not under"):  # ../office/0.png is the picture
        list(part)


def test_folders_before_the_root_and_a_renamed_folder_are_still_found(tmp_path: Path) -> None:
    drawn(tmp_path / "imgs" / "a.png", 3)
    before = a_set(tmp_path / "one", ["data/imgs/a.png"], image_root=tmp_path / "imgs")
    assert opened(before) == ["imgs/a.png"]
    assert before.notes == ()
    renamed = a_set(tmp_path / "two", ["photos/a.png"], image_root=tmp_path / "imgs")
    assert opened(renamed) == ["imgs/a.png"]
    assert "found by file name alone" in renamed.notes[0]
    several = a_set(tmp_path / "three", ["photos/a.png", "more/b.png"], image_root=tmp_path / "imgs")
    with pytest.raises(UserError, match="is not under"):
        list(several)


# ── instances ───────────────────────────────────────────────────────────────────────────────────


def instances(path: Path, *images: tuple[str, str, tuple[int, int]]) -> Path:
    """One annotated object an image: (file name, category, size)."""
    tree = {
        "images": [
            {"id": n, "file_name": name, "width": w, "height": h}
            for n, (name, _, (w, h)) in enumerate(images)
        ],
        "annotations": [
            {"id": n, "image_id": n, "category_id": n, "bbox": [4, 6, 20, 30]} for n in range(len(images))
        ],
        "categories": [{"id": n, "name": category} for n, (_, category, _) in enumerate(images)],
    }
    path.write_text(json.dumps(tree))
    return path


SIZE = (64, 48)


def categories(data: Annotations) -> list[str | None]:
    return [example.category for example in data]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["kitchen/0.png", "office/0.png"], ["A", "B"]),
        (["office/0.png", "kitchen/0.png"], ["A", "B"]),
        (["x/kitchen/0.png", "x/office/0.png", "x/street/0.png"], ["A", "B"]),
        (["kitchen/0.png"], ["A", None]),
        (["0.png"], [None, None]),  # which of the two?
    ],
)
def test_instances_are_of_the_image_in_the_same_folder_or_none(
    rooms: Annotations, tmp_path: Path, names: list[str], wanted: list[str | None]
) -> None:
    letter = {"kitchen": "A", "office": "B", "street": "C", "0.png": "D"}
    path = instances(tmp_path / "i.json", *((n, letter[n.split("/")[-2:][0]], SIZE) for n in names))
    data = a_set(tmp_path, ["kitchen/0.png", "office/0.png"], instances=path)
    assert categories(data) == wanted
    unclear = wanted.count(None)
    assert any(f"{unclear} examples have no candidates" in note for note in data.notes) == bool(unclear)


def test_instances_of_an_image_of_another_size_are_not_joined(rooms: Annotations, tmp_path: Path) -> None:
    path = instances(tmp_path / "i.json", ("kitchen/0.png", "A", (640, 480)))
    data = a_set(tmp_path, ["kitchen/0.png"], instances=path)
    assert categories(data) == [None]
    assert len(data.notes) == 1


# ── bytes ───────────────────────────────────────────────────────────────────────────────────────


def test_parquet_rows_that_all_say_image_png_are_told_apart_by_content(tmp_path: Path) -> None:
    pictures = [encode(Image.new("RGB", SIZE, (shade, 0, 0))) for shade in (0, 80, 160)]
    rows = [
        {
            "image": {"bytes": pictures[n % 3], "path": "image.png"},
            "expression": "the red cup",
            "box": [4, 6, 24, 36],
        }
        for n in range(6)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    data = load("jsonl", path=tmp_path / "d.parquet")
    assert report(data).images == 3
    assert [f.kind for f in report(data).findings] == ["duplicate_expression"] * 3


def parquet(path: Path, *images: object) -> Annotations:
    rows = [{"image": one, "expression": "the red cup", "box": [4, 6, 24, 36]} for one in images]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return load("jsonl", path=path)


def test_an_image_column_that_holds_a_list_of_one_is_read(tmp_path: Path) -> None:
    picture = encode(Image.new("RGB", SIZE))
    drawn(tmp_path / "a.png", 1)
    for image in (
        [{"bytes": picture, "path": None}],
        [picture],
        ["a.png"],
        [{"bytes": None, "path": "a.png"}],
    ):
        (example,) = parquet(tmp_path / "d.parquet", image)
        assert example.image.size() == SIZE


def test_a_list_of_more_or_fewer_is_refused_without_printing_bytes(tmp_path: Path) -> None:
    picture = {"bytes": encode(Image.new("RGB", SIZE)), "path": "a.png"}
    for images, said in (
        ([picture, picture], "holds 2 images"),
        ([], "names no file"),
        ([{}], "names no file"),
    ):
        path = tmp_path / "d.parquet"
        rows = [{"image": images, "expression": "the red cup", "box": [4, 6, 24, 36]}]
        schema = pa.schema(
            {
                "image": pa.list_(pa.struct({"bytes": pa.binary(), "path": pa.string()})),
                "expression": pa.string(),
                "box": pa.list_(pa.float64()),
            }
        )
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
        with pytest.raises(UserError, match=said) as error:
            list(load("jsonl", path=path))
        assert "PNG" not in str(error.value)


@pytest.mark.parametrize("column", ["expression", "box", "id"])
def test_bytes_in_a_column_of_text_are_told_by_their_number(tmp_path: Path, column: str) -> None:
    drawn(tmp_path / "a.png", 1)
    row = {"image": "a.png", "expression": "the red cup", "box": "1,2,3,4", "id": "1"}
    pq.write_table(pa.Table.from_pylist([{**row, column: b"\x89PNG" * 99}]), tmp_path / "d.parquet")
    with pytest.raises(UserError, match="<396 bytes>") as error:
        list(load("jsonl", path=tmp_path / "d.parquet"))
    assert "x89" not in str(error.value)


def test_the_faulty_parquet_of_the_issue(shared: Path) -> None:
    (path,) = (shared / "faults").glob("11*.parquet")
    assert len(list(load("jsonl", path=path))) > 0


# ── what came and went ──────────────────────────────────────────────────────────────────────────


def test_images_that_arrive_make_another_set_where_missing_ones_were_left_out(tmp_path: Path) -> None:
    drawn(tmp_path / "a.png", 1)
    path = a_set(tmp_path, ["a.png", "b.png"]).path

    def stated(*exclude: str) -> object:
        return load("jsonl", path=path, exclude=f"[{','.join(exclude)}]").fingerprint()

    kinds = [("missing_image",), ("broken_image", "missing_image"), ("outside_image", "missing_image"), ()]
    before = [stated(*kind) for kind in kinds]
    drawn(tmp_path / "b.png", 2)
    after = [stated(*kind) for kind in kinds]
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, True, True, False]
    (tmp_path / "b.png").write_bytes(b"broken")
    assert stated("broken_image", "missing_image") != after[1]


def test_a_finished_cell_does_not_keep_its_numbers_when_images_arrive(tmp_path: Path) -> None:
    from refadv_ablate import assets
    from refadv_ablate.running.cells import cells_of
    from refadv_ablate.running.parts import parts_of

    drawn(tmp_path / "a.png", 1)
    path = a_set(tmp_path, ["a.png", "b.png"]).path
    words = ["perturb=fixed", "model=control/oracle", "data=jsonl", f"data.path={path}"]

    def cell() -> str:
        return cells_of(parts_of(assets.compose([*words, "data.exclude=[missing_image]"])))[0].hash

    before = cell()
    assert cell() == before
    drawn(tmp_path / "b.png", 2)
    assert cell() != before
