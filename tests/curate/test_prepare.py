"""Which images become scenes, from each kind of annotation."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from refadv_ablate.boxes import Box
from refadv_ablate.curate.cli import main
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.prepare import Selection, prepare
from refadv_ablate.curate.scenes import Scene, load_scenes
from refadv_ablate.curate.sources import Coco, Instance, OpenImages, Panoptic, Picture
from refadv_ablate.data.images import FileImage
from refadv_ablate.errors import UserError

SIZE = (200, 100)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name in ("a.jpg", "b.jpg"):
        Image.new("RGB", SIZE, "white" if name == "a.jpg" else "grey").save(folder / name)
    return folder


def instances(n: int, category: str = "dog", side: float = 20, crowd: bool = False) -> list[Instance]:
    return [Instance(category, Box(30 * i, 10, 30 * i + side, 10 + side), crowd) for i in range(n)]


def scenes(found: list[Instance], images: Path, **changes: Any) -> tuple[list[Scene], Counter[str]]:
    drops: Counter[str] = Counter()
    made = Selection(**changes).scenes(Picture("a.jpg", SIZE, tuple(found)), "test", images, drops)
    return list(made), drops


def test_three_of_a_category_are_a_scene_and_two_are_not(images: Path) -> None:
    made, drops = scenes(instances(3) + instances(2, "cat"), images)
    assert [(s.category, len(s.boxes)) for s in made] == [("dog", 3)]
    assert drops == {"fewer than 3 instances": 1}
    assert scenes(instances(5), images, max_instances=4)[1] == {"more than 4 instances": 1}
    assert not scenes(instances(3), images, categories=("cat",))[0]


def test_crowds_leave_the_category_out_or_are_ignored_and_counted(images: Path) -> None:
    crowd = [*instances(3), Instance("dog", Box(100, 50, 190, 90), crowd=True)]
    assert scenes(crowd, images)[1] == {"a crowd region of the category": 1}
    (scene,), _ = scenes(crowd, images, crowd="ignore")
    assert (len(scene.boxes), scene.left_out) == (3, 1)


def test_tiny_instances_are_ignored_and_counted_or_leave_the_category_out(images: Path) -> None:
    tiny = [*instances(3), Instance("dog", Box(150, 50, 155, 55))]
    (scene,), _ = scenes(tiny, images)
    assert (len(scene.boxes), scene.left_out) == (3, 1)
    assert scenes(tiny, images, tiny="skip")[1] == {"a tiny instance of the category": 1}


def test_boxes_are_clipped_and_one_instance_annotated_twice_counts_once(images: Path) -> None:
    found = instances(3)
    found += [found[0], Instance("dog", Box(150, 50, 260, 130)), Instance("dog", Box(300, 300, 340, 340))]
    (scene,), _ = scenes(found, images)
    assert len(scene.boxes) == 4
    assert max(box.x2 for box in scene.boxes) == SIZE[0]
    assert scene.left_out == 1, "outside the image"


def test_numbers_go_by_place_and_say_nothing_of_the_stored_order(images: Path) -> None:
    found = instances(4)
    first, second = (scenes(order, images)[0][0] for order in (found, found[::-1]))
    assert first == second


def test_an_image_that_is_missing_is_counted(images: Path) -> None:
    (images / "a.jpg").unlink()
    made, drops = scenes(instances(3), images)
    assert (made, sum(drops.values())) == ([], 1)


@pytest.mark.parametrize("bad", [{"min_instances": 2}, {"min_instances": 5, "max_instances": 4}])
def test_a_selection_without_sense_is_a_mistake(bad: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="min_instances"):
        Selection(**bad)


# ── sources ─────────────────────────────────────────────────────────────────────────────────────


def coco(path: Path) -> Path:
    boxes = [[30 * i, 10, 20, 20] for i in range(4)]
    tree = {
        "images": [{"id": 7, "file_name": "a.jpg", "width": 200, "height": 100}],
        "categories": [{"id": 1, "name": "dog"}],
        "annotations": [
            {"id": i, "image_id": 7, "category_id": 1, "bbox": b, "iscrowd": 0, "area": 400}
            for i, b in enumerate(boxes)
        ],
    }
    path.write_text(json.dumps(tree))
    return path


def test_coco_instances(tmp_path: Path, images: Path) -> None:
    (picture,) = Coco(coco(tmp_path / "i.json"), images).pictures(tmp_path)
    assert (picture.name, picture.size) == ("a.jpg", SIZE)
    assert picture.instances[1] == Instance("dog", Box(30, 10, 50, 30))


def test_coco_panoptic_takes_things_only(tmp_path: Path, images: Path) -> None:
    segments = [{"id": i, "category_id": 1, "bbox": [30 * i, 10, 20, 20], "iscrowd": i % 2} for i in range(3)]
    segments += [
        {"id": 9, "category_id": 2, "bbox": [0, 0, 200, 50], "iscrowd": 0},
        {"id": 10, "category_id": 1, "bbox": [0, 0, 0, 5]},
    ]
    tree = {
        "images": [{"id": 7, "file_name": "a.jpg", "width": 200, "height": 100}],
        "categories": [{"id": 1, "name": "dog", "isthing": 1}, {"id": 2, "name": "sky", "isthing": 0}],
        "annotations": [{"image_id": 7, "file_name": "a.png", "segments_info": segments}],
    }
    (tmp_path / "p.json").write_text(json.dumps(tree))
    (picture,) = Panoptic(tmp_path / "p.json", images).pictures(tmp_path)
    assert picture.name == "a.jpg"
    assert [(i.category, i.crowd) for i in picture.instances] == [
        ("dog", False),
        ("dog", True),
        ("dog", False),
    ]
    with pytest.raises(UserError, match="no COCO panoptic file"):
        list(Panoptic(coco(tmp_path / "i.json"), images).pictures(tmp_path))


def test_openimages_fractions_groups_and_depictions(tmp_path: Path, images: Path) -> None:
    (tmp_path / "c.csv").write_text("/m/1,Dog\n")
    head = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,"
    head += "IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside\n"
    rows = [
        "a,x,/m/1,1,0.1,0.3,0.2,0.6,0,0,0,0,0",
        "a,x,/m/1,1,0.5,0.7,0.2,0.6,0,0,1,0,0",
        "a,x,/m/1,1,0.5,0.7,0.2,0.6,0,0,0,1,0",
    ]
    rows += ["gone,x,/m/1,1,0.1,0.3,0.2,0.6,0,0,0,0,0"]
    (tmp_path / "b.csv").write_text(head + "\n".join(rows) + "\n")
    (picture,) = OpenImages(tmp_path / "b.csv", tmp_path / "c.csv", images).pictures(tmp_path)
    assert picture.instances == (
        Instance("dog", Box(20, 20, 60, 60)),
        Instance("dog", Box(100, 20, 140, 60), crowd=True),
    )
    with pytest.raises(UserError, match="lacks the column ImageID"):
        list(OpenImages(tmp_path / "c.csv", tmp_path / "c.csv", images).pictures(tmp_path))


def test_a_name_that_leads_out_of_the_image_root_is_no_scene(tmp_path: Path, images: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes((images / "a.jpg").read_bytes())
    drops: Counter[str] = Counter()
    picture = Picture("../secret.jpg", SIZE, tuple(instances(3)))
    assert not list(Selection().scenes(picture, "test", images, drops))
    assert sum(drops.values()) == 1


# ── the stage ───────────────────────────────────────────────────────────────────────────────────


def test_the_stage_can_be_run_again_and_adds_nothing(tmp_path: Path, images: Path) -> None:
    source, out = Coco(coco(tmp_path / "i.json"), images), tmp_path / "out"
    first = prepare(source, Selection(), out, None, lambda n: None)
    again = prepare(source, Selection(), out, None, lambda n: None)
    assert (first.new, again.new, again.scenes) == (1, 0, 1)
    scene = next(iter(load_scenes(out).values()))
    assert Scene.from_json(scene.to_json()) == scene
    tagged, plain = scene.marked(), scene.ref()
    assert tagged.key == plain.key
    assert (out / "tagged" / f"{scene.id}.jpg").exists()
    assert FileImage(out / "tagged" / f"{scene.id}.jpg", "t").size() == tagged.size()
    assert tagged.load().tobytes() != plain.load().resize(tagged.size()).tobytes()


def test_a_line_cut_short_by_a_crash_is_no_scene_and_is_mended(tmp_path: Path, images: Path) -> None:
    source, out = Coco(coco(tmp_path / "i.json"), images), tmp_path / "out"
    prepare(source, Selection(), out, None, lambda n: None)
    path = out / "scenes.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert Ledger(path).rows() == []
    prepare(source, Selection(), out, None, lambda n: None)
    assert path.read_bytes() == whole


def test_two_writers_of_one_stage_are_a_mistake(tmp_path: Path) -> None:
    with (
        Ledger(tmp_path / "x.jsonl").writing(),
        pytest.raises(UserError, match="another process"),
        Ledger(tmp_path / "x.jsonl").writing(),
    ):
        pass


def test_a_broken_line_in_the_middle_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a":1}\nbroken\n{"a":2}\n')
    with pytest.raises(UserError, match=r"x\.jsonl:2"):
        Ledger(tmp_path / "x.jsonl").rows()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["prepar"], "did you mean 'prepare'"),
        (["prepare", "source=cocoo"], "did you mean 'coco'"),
        (["prepare", "source=coco"], "source.instances must be given"),
        (["prepare", "source=coco", "source.instances=no.json", "source.images=."], "no.json is not there"),
        (["prepare", "source=drawn", "prepare.min_sides=3"], "did you mean 'min_side'"),
        (["prepare", "source=drawn", "prepare.crowd=maybe"], "prepare.crowd"),
        (["prepare", "source=drawn", "limit=0"], "limit=0"),
        (["judge"], "run the stage prepare first"),
        (["verify"], "verify.annotators"),
        (["verify", "verify.annotators=[a,a]"], "twice"),
        (["export", "export.splits={test: 0.5}"], "sum to 1"),
        (["audit"], "run the stage export"),
        (["prepare", "--fast"], "unknown option"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err.strip()
    assert says in error
    assert "\n" not in error


def test_help_lists_stages_groups_and_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for word in ("prepare", "label_studio", "openimages", "one_step", "min_instances", "keep_rate"):
        assert word in said


def test_a_line_that_a_full_disk_cut_short_spoils_no_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "rows.jsonl")
    ledger.append({"a": 1})

    def full(descriptor: int) -> None:
        with ledger.path.open("r+b") as file:
            file.truncate(12)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            ledger.append({"b": 2})
    ledger.append({"c": 3})
    assert ledger.rows() == [{"a": 1}, {"c": 3}]
