"""Candidates from OpenImages box CSVs, by image id, beside COCO's."""

import json

import pytest
from PIL import Image

from refadv_ablate import assets
from refadv_ablate.errors import UserError
from refadv_ablate.prompting.som import DataCandidates, recalled
from refadv_ablate.types import Perturbed, Request, Sampling

HEAD = (
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,"
    "IsDepiction,IsInside"
)
CAR, OTHER = "0000c64e1253d68f.jpg", "000000000139.jpg"
ROWS = [
    "0000c64e1253d68f,x,/m/01,1,0.1,0.3,0.25,0.75,0,0,0,0,0",
    "0000c64e1253d68f,x,/m/01,1,0.5,0.9,0.25,0.75,0,0,0,0,0",
    "0000c64e1253d68f,x,/m/02,1,0.0,1.0,0.0,1.0,0,0,1,0,0",
    "0000c64e1253d68f,x,/m/02,1,0.2,0.4,0.2,0.4,0,0,0,1,0",
    "0000c64e1253d68f,x,/m/02,1,0.2,0.4,0.2,0.4,0,0,0,0,1",
    "ffffffffffffffff,x,/m/01,1,0.2,0.4,0.2,0.4,0,0,0,0,0",
]


@pytest.fixture
def scene(tmp_path):
    """A Ref-Adv-s folder with one image of each source, and both annotation files."""
    images = tmp_path / "set" / "images"
    images.mkdir(parents=True)
    for name in ("0000c64e1253d68f.jpg", "000000000139.jpg"):
        Image.new("RGB", (200, 100), "white").save(images / name)
    shared = {"width": 200, "height": 100, "human_authored": True, "use_negation": False, "distractors": "3"}
    boxes = {CAR: [20.0, 25.0, 60.0, 75.0], OTHER: [10.0, 10.0, 60.0, 60.0]}
    lines = [
        {
            "row_idx": i,
            "image": f"images/{name}",
            "file_name": name,
            "solution": box,
            "normal_caption": f"the left car {i}",
            **shared,
        }
        for i, (name, box) in enumerate(boxes.items())
    ]
    (tmp_path / "set" / "samples.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "validation-annotations-bbox.csv").write_text("\n".join([HEAD, *ROWS]))
    (tmp_path / "class-descriptions-boxable.csv").write_text("/m/01,Car\n/m/02,Person\n")
    coco = {
        "images": [{"id": 139, "file_name": "000000000139.jpg", "width": 200, "height": 100}],
        "categories": [{"id": 1, "name": "car"}],
        "annotations": [{"id": 7, "image_id": 139, "category_id": 1, "bbox": [10, 10, 50, 50]}],
    }
    (tmp_path / "instances.json").write_text(json.dumps(coco))
    return tmp_path


def examples(scene, *files):
    given = ",".join(str(scene / name) for name in files)
    data = assets.build(
        assets.compose(["data=ref_adv_s", f"data.path={scene}/set", f"data.instances=[{given}]"]).data, "data"
    )
    return data, list(data)


def test_boxes_are_read_by_image_id_in_pixels_with_class_names(scene):
    _, (car, other) = examples(scene, "validation-annotations-bbox.csv")
    assert [c.box.as_list() for c in car.candidates] == [
        pytest.approx([20, 25, 60, 75]),
        pytest.approx([100, 25, 180, 75]),
    ]
    assert [c.category for c in car.candidates] == ["car", "car"]
    assert car.category == "car" and car.distractors == 3
    assert other.candidates == ()


def test_several_files_serve_a_set_of_two_sources(scene):
    data, found = examples(scene, "instances.json", "validation-annotations-bbox.csv")
    assert [len(each.candidates) for each in found] == [2, 1]
    assert len(data.fingerprint()["instances"]) == 2
    for each in found:
        marks = [box.as_list() for box in DataCandidates().boxes(each)]
        same = Perturbed(each, each, "unchanged")
        request = Request(same, "original", 0, (), each.image, Sampling(), options={"marks": marks})
        assert recalled(request) is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ImageID,LabelName\n", "lacks the column XMin"),
        (
            f"{HEAD}\n0000c64e1253d68f,x,/m/01,1,a,0.3,0.2,0.7,0,0,0,0,0\n",
            ":2: not a row of OpenImages boxes",
        ),
        (f"{HEAD}\n0000c64e1253d68f,x,/m/01,1,10,30,20,70,0,0,0,0,0\n", "corners are fractions"),
    ],
)
def test_a_file_of_another_form_is_one_sentence(scene, text, said):
    (scene / "bad.csv").write_text(text)
    with pytest.raises(UserError, match=said):
        examples(scene, "bad.csv")


def test_rows_of_other_images_are_not_kept(scene):
    from refadv_ablate.data.forms.instances import load_instances

    path = scene / "validation-annotations-bbox.csv"
    assert set(load_instances([path], frozenset({"0000c64e1253d68f"})).by_image) == {"0000c64e1253d68f"}
    assert len(load_instances([path]).by_image) == 2
