"""Expressions without a referent: never scored as if they had one, and asked where "none" may be answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perturbations import Absent
from refadv_ablate.data.loading import Annotations
from refadv_ablate.running import perturbed_texts as texts
from refadv_ablate.storage.jsonl import to_line
from refadv_ablate.storage.records import perturbed_from_json, perturbed_to_json
from refadv_ablate.types import NoTarget, Perturbed
from tests.data.scenes import Scenes, load, name_of, write_json


@pytest.fixture
def scenes(tmp_path: Path) -> Scenes:
    return Scenes(tmp_path).draw()


def finecops(scenes: Scenes, *, only_all: bool = False) -> Path:
    """Positives in one file, positives and negatives in another, as published: a negative has the box and
    the level of the positive that it was made from, and says what is false in it."""
    folder = scenes.folder / "finecops"
    folder.mkdir(exist_ok=True)
    images, annotations = [], []
    for n, (_, name, text, box, (w, h)) in enumerate(scenes.rows("val"), 1):
        images.append({"id": n, "file_name": name, "caption": text, "width": w, "height": h})
        annotations.append({"id": n, "image_id": n, "bbox": box, "category_id": 1, "level": 1 + n % 3})
    categories = [{"id": 1, "name": "object"}]
    if not only_all:
        content = {"images": images, "annotations": annotations, "categories": categories}
        write_json(folder / "test_expression_pos_coco_format.json", content)
    for n, (positive, kind, where, text) in enumerate(
        [
            (1, "attribute", "text", "the green person"),
            (1, "attribute", "text", "the blue person"),
            (2, "relation", "text", "the one on the roof"),
            (2, "object", "image", images[1]["caption"]),
            (3, "attribute", "text", "  "),
        ],
        100,
    ):
        image = {**images[positive - 1], "id": n, "caption": text}
        if where == "image":
            image["file_name"] = "neg_17.jpg"
        images.append(image)
        told = {"negative_type": kind, "negative_level": 1, "negative_cate": where, "positive_id": positive}
        annotations.append({**annotations[positive - 1], "id": n, "image_id": n, **told})
    content = {"images": images, "annotations": annotations, "categories": categories}
    write_json(folder / "test_expression_all_coco_format.json", content)
    return folder


def asked(data: Annotations) -> list[Perturbed]:
    """All that `absent` asks of the data, written and read back as a run does."""
    operator = texts.with_data({"absent": Absent()}, data)["absent"]
    known = {example.id: example for example in data}
    found = []
    for p in texts.perturb_all(data, "absent", operator, 0):
        line = json.loads(to_line(perturbed_to_json(p)))
        assert perturbed_from_json(line, known[p.original.id], None) == p
        found.append(p)
    return found


def test_finecops_negatives_are_asked_beside_the_positives_that_they_were_made_from(scenes: Scenes) -> None:
    data = load("finecops_ref", path=finecops(scenes), image_root=scenes.images)
    positives = list(data)
    assert all(e.attributes.get("negative_type") is None for e in positives)
    assert [e.attributes["level"] for e in positives] == [1 + n % 3 for n in range(1, len(positives) + 1)]
    found = asked(data)
    rejected = [p for p in found if p.status == "changed"]
    assert [(p.example.expression, p.original.attributes["id"], p.part) for p in rejected] == [
        ("the green person", 1, "attribute"),
        ("the blue person", 1, "attribute 2"),
        ("the one on the roof", 2, "relation"),
    ]
    assert {p.expectation for p in rejected} == {"reject"}
    assert all(p.example.image == p.original.image for p in rejected)
    assert [p.reason for p in found if p.status == "not_perturbable"] == [
        "the data have no expression without a referent that goes with it"
    ] * (len(positives) - 2)


def test_a_negative_is_never_an_example_whatever_box_it_is_given(scenes: Scenes) -> None:
    """Only the file of all expressions is there: its negatives have boxes, those of their positives."""
    both = list(load("finecops_ref", path=finecops(scenes), image_root=scenes.images))
    for path in (scenes.folder / "finecops").glob("*_pos_*"):
        path.unlink()
    data = load("finecops_ref", path=finecops(scenes, only_all=True), image_root=scenes.images)
    assert list(data) == both
    assert data.excluded == {"no_target": 5}
    assert len([p for p in asked(data) if p.expectation == "reject"]) == 3


def test_the_file_of_negatives_is_part_of_what_the_data_are(scenes: Scenes) -> None:
    folder = finecops(scenes)
    before = load("finecops_ref", path=folder, image_root=scenes.images).fingerprint()
    every = folder / "test_expression_all_coco_format.json"
    every.write_text(every.read_text(encoding="utf-8").replace("green", "mauve"), encoding="utf-8")
    assert load("finecops_ref", path=folder, image_root=scenes.images).fingerprint() != before


def grefcoco(scenes: Scenes) -> Annotations:
    """Two single-target refs and one with three sentences that nothing matches, on the image of the first."""
    refs = scenes.unc_refs()
    for ref in refs:
        ref["ann_id"], ref["category_id"] = [ref["ann_id"]], [ref["category_id"]]
    none = [{"sent": text, "sent_id": n} for n, text in enumerate(("the zebra", "two cats", "a bus"), 900)]
    refs.append({**refs[0], "ref_id": 9, "ann_id": [-1], "category_id": [-1], "sentences": none})
    folder = scenes.folder / "grefcoco"
    folder.mkdir()
    write_json(folder / "instances.json", scenes.instances())
    write_json(folder / "grefs(unc).json", refs)
    return load("grefcoco_single", path=folder, image_root=scenes.images)


def test_no_target_expressions_of_grefcoco_are_asked_once_each_beside_their_image(scenes: Scenes) -> None:
    data = grefcoco(scenes)
    singles = list(data)
    assert data.excluded["no_target"] == 3
    image = name_of(1)
    assert list(data.no_targets()) == [
        NoTarget(singles[0].image.key, text) for text in ("the zebra", "two cats", "a bus")
    ], image
    found = [p for p in asked(data) if p.expectation == "reject"]
    assert sorted(p.example.expression for p in found) == ["a bus", "the zebra", "two cats"]
    assert {p.original.image.key for p in found} == {singles[0].image.key}
    here = [e.id for e in singles if e.image.key == singles[0].image.key]
    beside = [p.original.id for p in found]
    counts = [beside.count(one) for one in here]
    assert max(counts) - min(counts) <= 1, "shared out evenly among the examples of the image"
    assert len({(p.original.id, p.part) for p in found}) == 3


def test_data_without_such_expressions_keep_their_own_way(scenes: Scenes) -> None:
    write_json(scenes.folder / "instances.json", scenes.instances())
    data = load("refcoco", path=scenes.mdetr(), image_root=scenes.images)
    assert list(data.no_targets()) == []
    found = asked(data)
    assert {p.status for p in found} == {"not_perturbable"}
    assert all("candidate" in p.reason for p in found)
