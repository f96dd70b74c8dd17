"""What is wrong with a set is found, said in a sentence, and left out only when that is asked for."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from refadv_ablate.boxes import Box, Quad, iou
from refadv_ablate.data.check import report
from refadv_ablate.data.conventions import ALL, Convention, contradiction, numbers
from refadv_ablate.data.loading import Annotations
from refadv_ablate.errors import UserError
from tests.data.scenes import Scenes, load, name_of, write_json, write_lines

GOOD = {"image": name_of(1), "expression": "left one", "box": [4, 6, 24, 36]}


@pytest.fixture
def scenes(tmp_path: Path) -> Scenes:
    return Scenes(tmp_path).draw()


def own(scenes: Scenes, *rows: dict[str, object], **values: object) -> Annotations:
    path = scenes.folder / "own" / "own.jsonl"
    write_lines(path, list(rows))
    return load("jsonl", *_dots(values.pop("forms", {})), path=path, image_root=scenes.images, **values)


def _dots(values: object) -> list[str]:
    assert isinstance(values, dict)
    return [f"data.forms.{key}={value}" for key, value in values.items()]


# ── conventions ─────────────────────────────────────────────────────────────────────────────────


def test_every_convention_reads_the_same_asymmetric_box() -> None:
    size = (200, 100)
    stored = {
        ("xyxy", "pixels"): (20, 30, 120, 45),
        ("xywh", "pixels"): (20, 30, 100, 15),
        ("cxcywh", "pixels"): (70, 37.5, 100, 15),
        ("cxcywh", "fraction"): (0.35, 0.375, 0.5, 0.15),
        ("cxcywh", "thousandth"): (350, 375, 500, 150),
        ("xyxy", "fraction"): (0.1, 0.3, 0.6, 0.45),
        ("xywh", "fraction"): (0.1, 0.3, 0.5, 0.15),
        ("xyxy", "thousandth"): (100, 300, 600, 450),
        ("xywh", "thousandth"): (100, 300, 500, 150),
    }
    for convention in ALL:
        corners = convention.corners(stored[convention.order, convention.unit], size)
        assert corners == pytest.approx((20, 30, 120, 45))
        assert convention.fits(stored[convention.order, convention.unit], size)


# an asymmetric box near the far corner of 64 × 48, in each convention
CORNER = {
    ("xyxy", "pixels"): [40, 30, 60, 45],
    ("xywh", "pixels"): [40, 30, 20, 15],
    ("xyxy", "fraction"): [0.625, 0.625, 0.9375, 0.9375],
    ("xywh", "fraction"): [0.625, 0.625, 0.3125, 0.3125],
    ("xyxy", "thousandth"): [625, 625, 937.5, 937.5],
    ("xywh", "thousandth"): [625, 625, 312.5, 312.5],
}


# numbers below 1000 always fit as thousandths: nothing in such a file speaks against it
PAIRS = [(a, b) for a in CORNER for b in CORNER if a == b or b[1] != "thousandth" or a[1] == "thousandth"]


@pytest.mark.parametrize(("stored", "declared"), PAIRS)
def test_a_wrongly_declared_convention_is_refused_with_the_finding(
    scenes: Scenes, stored: tuple[str, str], declared: tuple[str, str]
) -> None:
    forms = {"order": declared[0], "unit": declared[1]}
    data = own(
        scenes,
        {**GOOD, "box": CORNER[stored]},
        {**GOOD, "box": CORNER[stored], "expression": "b"},
        forms=forms,
    )
    if stored == declared:
        assert next(iter(data)).target.as_list() == pytest.approx([40, 30, 60, 45])
    else:
        with pytest.raises(
            UserError,
            match=r"is refused: 2 of the first 2 boxes don't fit.* all fit as.*data\.forms\.(order|unit)=",
        ):
            list(data)


def test_coco_declared_as_corners_is_named_as_x_y_width_height(scenes: Scenes) -> None:
    rows = [
        {**GOOD, "expression": str(n), "box": box} for n, box in enumerate([[4, 6, 20, 30], [40, 22, 16, 20]])
    ]
    with pytest.raises(
        UserError, match=r"don't fit their images as xyxy.*all fit as xywh in absolute pixels"
    ):
        list(own(scenes, *rows))


SIZES = {
    "vga": [(640, 480)],
    "coco": [(640, 480), (480, 640), (500, 375), (640, 427)],
    "small": [(224, 224)],
    "large": [(1920, 1080)],
    "square thousand": [(1000, 800), (800, 1000)],
}
SCALES = (1.0, 0.7, 0.9, 0.5, 1.4)


def _stored(box: Box, convention: Convention, size: tuple[int, int]) -> Quad:
    """The numbers that a file in this convention has for a box on an image of this size."""
    whole = {"pixels": (1.0, 1.0), "fraction": (1 / size[0], 1 / size[1])}.get(
        convention.unit, (1000 / size[0], 1000 / size[1])
    )
    x1, y1, x2, y2 = (v * whole[at % 2] for at, v in enumerate(box.as_list()))
    if convention.order == "xyxy":
        return x1, y1, x2, y2
    if convention.order == "xywh":
        return x1, y1, x2 - x1, y2 - y1
    return (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1


def _drawn(rng: random.Random, sizes: list[tuple[int, int]], n: int) -> list[tuple[Box, tuple[int, int]]]:
    found = []
    for _ in range(n):
        width, height = rng.choice(sizes)
        w, h = (rng.uniform(0.05, 0.6) * side for side in (width, height))
        x, y = rng.uniform(0, width - w), rng.uniform(0, height - h)
        found.append((Box(x, y, x + w, y + h), (width, height)))
    return found


@pytest.mark.parametrize("truth", ALL, ids=str)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_an_advice_that_is_followed_never_makes_wrong_gold_boxes(
    sizes: list[tuple[int, int]], truth: Convention
) -> None:
    """Files in each convention, of the pictures' size and of others, with a bad row; each advice is taken."""
    rng, followed = random.Random(str((sizes, truth))), 0
    for scale, n, declared in itertools.product(SCALES, (12, 60, 101), ALL):
        boxes = _drawn(rng, sizes, n)
        seen = [(round(w * scale), round(h * scale)) for _, (w, h) in boxes]
        rows = [(_stored(box, truth, size), at) for (box, size), at in zip(boxes, seen, strict=True)]
        if n == 101:
            rows[50] = ((600.0, 470.0, 640.0, 7000.0), rows[50][1])
        finding = contradiction(declared, rows)
        for order, unit in re.findall(r"forms\.order=(\w+) data\.forms\.unit=(\w+)", finding):
            advice = Convention(order, unit)
            if contradiction(advice, rows) or sum(not advice.fits(*row) for row in rows) > (n == 101):
                continue  # refused again, or stopped by a row: nothing wrong is read
            followed += 1
            for at, ((quad, size), (box, old)) in enumerate(zip(rows, boxes, strict=True)):
                if at != 50 or n != 101:
                    zoom = size[0] / old[0], size[1] / old[1]
                    wanted = [v * zoom[i % 2] for i, v in enumerate(box.as_list())]
                    assert iou(Box(*advice.corners(quad, size)), Box(*wanted)) > 0.9, (scale, n, declared)
    assert followed or truth.unit == "thousandth"


def test_one_bad_row_of_101_does_not_turn_the_diagnosis_off() -> None:
    rows = [
        (_stored(box, Convention("xywh"), size), size)
        for box, size in _drawn(random.Random(1), [(640, 480)], 100)
    ]
    rows.append(((600.0, 470.0, 640.0, 700.0), (640, 480)))
    assert "100 fit as xywh in absolute pixels" in contradiction(Convention("xyxy"), rows)
    assert not contradiction(Convention("xywh"), rows), "one bad row is a bad row"


def test_centre_based_boxes_declared_by_corner_are_named(shared: Path) -> None:
    (folder,) = (shared / "faults").glob("05*")
    with pytest.raises(UserError, match=r"16 of the first 100.* all fit as cxcywh \(centre, width, height\)"):
        list(load("jsonl", "data.forms.order=xywh", path=folder / "c.jsonl"))
    assert len(list(load("jsonl", "data.forms.order=cxcywh", path=folder / "c.jsonl"))) == 100


def test_boxes_of_larger_originals_are_named_and_never_thousandths(shared: Path) -> None:
    (folder,) = (shared / "faults").glob("05*")
    with pytest.raises(UserError, match=r"38 of the first 60.*boxes of another image size") as error:
        list(load("jsonl", path=folder / "d.jsonl"))
    assert "thousandth" not in str(error.value)


def test_one_bad_box_among_good_ones_is_a_bad_row_not_another_convention(scenes: Scenes) -> None:
    rows = [{**GOOD, "expression": str(n), "box": [30, 20, 60, 40]} for n in range(3)]
    bad = {**GOOD, "expression": "bad", "box": [4, 6, 24, 360], "id": "b7"}
    with pytest.raises(UserError, match=r"b7.*outside its image of 64 × 48.*exclude=\[outside_image\]"):
        list(own(scenes, *rows, bad))
    data = own(scenes, *rows, bad, exclude="[outside_image]")
    assert len(list(data)) == 3
    assert data.excluded == {"outside_image": 1}


def test_a_box_of_fractions_is_no_tiny_box_in_pixels() -> None:
    assert contradiction(Convention("xyxy"), [((0.1, 0.2, 0.5, 0.6), (640, 480))])
    assert not contradiction(Convention("xyxy"), [((0.0, 0.0, 1.0, 1.0), (1, 1))])


@pytest.mark.parametrize(
    "value", ["1,2,3", [1, 2, 3], [1, 2, 3, "x"], [True, 0, 1, 1], None, {}, 7, [None] * 4]
)
def test_what_is_not_four_numbers_is_none(value: object) -> None:
    assert numbers(value) is None


def test_numbers_are_read_from_text_too() -> None:
    assert numbers("[1.5, 2,3, 4]") == (1.5, 2.0, 3.0, 4.0)


# ── rows ────────────────────────────────────────────────────────────────────────────────────────


def broken_image(scenes: Scenes) -> None:
    path = scenes.images / name_of(2)
    path.write_bytes(path.read_bytes()[:400])


BAD_ROWS: list[tuple[str, dict[str, object], str]] = [
    ("empty_expression", {"expression": "  "}, "the expression is empty"),
    ("empty_expression", {"expression": None}, "the expression is empty"),
    ("degenerate_box", {"box": [10, 10, 10, 20]}, "has no area"),
    ("degenerate_box", {"box": [10, 10, float("nan"), 20]}, "not four finite numbers"),
    ("degenerate_box", {"box": [10, 10, 20]}, "not four finite numbers"),
    ("degenerate_box", {"box": "everywhere"}, "not four finite numbers"),
    ("missing_image", {"image": "nowhere.jpg"}, r"nowhere\.jpg' is not under .*data\.image_root"),
    ("size_mismatch", {"width": 128, "height": 96}, "annotated as 128 × 96, stored as 64 × 48"),
    ("transposed_size", {"width": 48, "height": 64, "box": [10, 20, 40, 40]}, "width and height swapped"),
    ("duplicate_id", {"id": "first", "expression": "other"}, "the id was used before"),
]


@pytest.mark.parametrize(("kind", "changes", "said"), BAD_ROWS)
def test_a_bad_row_stops_with_a_sentence_unless_it_is_excluded(
    scenes: Scenes, kind: str, changes: dict[str, object], said: str
) -> None:
    first = {**GOOD, "id": "first", "box": [30, 20, 60, 40]}
    bad = {**GOOD, "id": "bad one", "box": [30, 20, 60, 40], "expression": "right", **changes}
    with pytest.raises(UserError, match=rf"{said}.*data\.exclude=\[{kind}\]") as caught:
        list(own(scenes, first, bad))
    assert "own.jsonl, record 2" in str(caught.value) or kind == "duplicate_id"
    data = own(scenes, first, bad, exclude=f"[{kind}]")
    assert [e.id for e in data] == ["first"]
    assert data.excluded == {kind: 1}
    found = report(own(scenes, first, bad))
    assert found.counts == {kind: 1}
    assert found.exclusion == f"data.exclude=[{kind}]"


def test_exif_orientation_is_named_where_sizes_are_transposed(scenes: Scenes) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (48, 64)).save(scenes.images / "turned.jpg", exif=exif)
    row = {**GOOD, "image": "turned.jpg", "width": 64, "height": 48}
    with pytest.raises(UserError, match="EXIF orientation 6"):
        list(own(scenes, row))


def test_repeated_expressions_are_kept_counted_and_excluded_on_request(scenes: Scenes) -> None:
    again = {**GOOD, "expression": "left one"}
    elsewhere = {**GOOD, "expression": "left one", "box": [30, 8, 45, 33]}
    data = own(scenes, GOOD, again, elsewhere)
    ids = [e.id for e in data]
    assert len(set(ids)) == 3
    assert ids[1] == f"{ids[0]}-2"
    assert report(data).counts == {"duplicate_expression": 2}
    assert report(data).exclusion == ""
    fewer = own(scenes, GOOD, again, elsewhere, exclude="[duplicate_expression]")
    assert [e.id for e in fewer] == ids[:1]
    assert fewer.excluded == {"duplicate_expression": 2}


def test_what_was_seen_is_found_again_when_it_lies_on_disk(
    scenes: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refadv_ablate.storage.remembered.MOST", 2)
    rows = [{**GOOD, "expression": f"number {i}"} for i in range(6)]
    data = own(scenes, *rows, rows[0])
    ids = [e.id for e in data]
    assert len(set(ids)) == 7 and ids[6] == f"{ids[0]}-2"
    assert report(data).counts == {"duplicate_expression": 1}
    fewer = own(scenes, *rows, rows[0], exclude="[duplicate_expression]")
    assert [e.id for e in fewer] == ids[:6]


def test_truncated_images_are_found_by_the_report_and_excluded_on_request(scenes: Scenes) -> None:
    broken_image(scenes)
    rows = [GOOD, {**GOOD, "image": name_of(2), "box": [5, 40, 35, 85]}]
    found = report(own(scenes, *rows))
    assert found.counts == {"broken_image": 1}
    assert name_of(2) in found.text()
    data = own(scenes, *rows, exclude="[broken_image]")
    assert [e.image.key for e in data] == [name_of(1)]
    assert data.excluded == {"broken_image": 1}


def test_the_report_lists_ids_and_says_what_a_run_would_need(scenes: Scenes) -> None:
    rows = [{**GOOD, "expression": f"{n}", "id": f"r{n}"} for n in range(3)]
    rows += [{**GOOD, "expression": "", "id": f"e{n}"} for n in range(30)]
    found = report(own(scenes, *rows))
    assert (found.rows, found.examples, found.images) == (33, 3, 1)
    text = found.text(most=5)
    assert "empty_expression: 30 (stops a run)" in text
    assert "(id e0)" in text
    assert "and 25 more" in text
    assert "data.exclude=[empty_expression]" in text
    assert {finding.kind for finding in found.findings} == {"empty_expression"}


def test_a_clean_set_has_a_clean_report(scenes: Scenes) -> None:
    found = report(load("refcoco", path=scenes.unc(), image_root=scenes.images))
    assert (found.rows, found.examples, found.images, found.counts) == (4, 4, 2, {})
    assert found.form == "unc"


def test_images_can_be_left_out_by_request_alone(scenes: Scenes) -> None:
    data = load("refcoco", path=scenes.unc(), image_root=scenes.folder / "nowhere", images="absent")
    first = next(iter(data))
    assert first.image.size() == (64, 48)
    with pytest.raises(UserError, match="images=absent"):
        first.image.load()
    assert data.fingerprint()["images"] == "absent"


# ── paths ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/passwd", "a/../../secret.jpg", "..\\secret.jpg"])
def test_an_image_path_that_climbs_out_of_the_root_is_refused(scenes: Scenes, name: str) -> None:
    Image.new("RGB", (64, 48)).save(scenes.folder / "secret.jpg")
    with pytest.raises(UserError, match="leads out of the image root"):
        list(own(scenes, {**GOOD, "image": name}))


def test_a_link_that_leads_out_needs_to_be_allowed(scenes: Scenes) -> None:
    Image.new("RGB", (64, 48)).save(scenes.folder / "elsewhere.jpg")
    (scenes.images / "link.jpg").symlink_to(scenes.folder / "elsewhere.jpg")
    row = {**GOOD, "image": "link.jpg"}
    with pytest.raises(UserError, match=r"data\.follow_links=true"):
        list(own(scenes, row))
    assert len(list(own(scenes, row, follow_links=True))) == 1


# ── corrupt files ───────────────────────────────────────────────────────────────────────────────


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch /tmp/should-not-exist",)


def refs_file(scenes: Scenes, data: bytes) -> Annotations:
    folder = scenes.unc()
    (folder / "refs(unc).p").write_bytes(data)
    return load("refcoco", path=folder, image_root=scenes.images)


@pytest.mark.parametrize("protocol", range(5))
def test_a_pickle_that_tries_to_run_code_is_refused(
    scenes: Scenes, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = refs_file(scenes, pickle.dumps([{"split": "val", "x": Evil()}], protocol))
    monkeypatch.setattr(os, "system", lambda _: pytest.fail("the pickle ran code"))
    with pytest.raises(UserError, match=r"is refused: the pickle names .*system"):
        list(data)


def test_pickles_of_harmless_classes_are_refused_too(scenes: Scenes) -> None:
    with pytest.raises(UserError, match=r"names pathlib\S*\.PosixPath, and only plain data is read"):
        list(refs_file(scenes, pickle.dumps([Path("a")])))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_cut_anywhere_is_a_sentence(scenes: Scenes, protocol: int) -> None:
    whole = pickle.dumps(scenes.unc_refs(), protocol)
    for length in range(0, len(whole) - 1, 37):
        with pytest.raises(UserError, match=r"refs\(unc\)\.p (is no complete pickle|holds no list)"):
            list(refs_file(scenes, whole[:length]))


def test_byte_strings_of_python_2_are_read(scenes: Scenes) -> None:
    # what Python 2 wrote for [{'split': 'val', 'sentences': ['caf\xe9']}]: SHORT_BINSTRING opcodes
    refs = scenes.unc_refs()
    refs[0]["sentences"][0]["sent"] = "café"
    latin = pickle.dumps(refs, 2).replace(b"X\x05\x00\x00\x00caf\xc3\xa9", b"U\x04caf\xe9")
    assert b"U\x04caf\xe9" in latin
    assert next(iter(refs_file(scenes, latin))).expression == "café"


def test_a_pickle_of_other_data_is_a_sentence(scenes: Scenes) -> None:
    for value in ({"a": 1}, [1, 2], "text", None):
        with pytest.raises(UserError, match="holds no list of refs"):
            list(refs_file(scenes, pickle.dumps(value)))
    with pytest.raises(UserError, match="is no ref"):
        list(refs_file(scenes, pickle.dumps([{"split": "val", "ref_id": 4}])))


def test_refs_and_instances_that_do_not_belong_together(scenes: Scenes) -> None:
    refs = scenes.unc_refs()
    refs[0]["ann_id"] = 777
    with pytest.raises(UserError, match=r"annotation 777.*don't belong together"):
        list(refs_file(scenes, pickle.dumps(refs)))
    refs[0]["image_id"] = 777
    with pytest.raises(UserError, match=r"image 777.*don't belong together"):
        list(refs_file(scenes, pickle.dumps(refs)))


def test_json_cut_in_the_middle_is_a_sentence(scenes: Scenes) -> None:
    folder = scenes.unc()
    path = folder / "instances.json"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(UserError, match=r"instances\.json is no complete JSON .*cut short"):
        list(load("refcoco", path=folder, image_root=scenes.images))
    folder = scenes.mdetr()
    path = folder / "finetune_refcoco_val.json"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(UserError, match=r"finetune_refcoco_val\.json is no complete JSON"):
        list(load("refcoco", path=folder, image_root=scenes.images))


def test_json_lines_cut_in_the_middle_name_file_and_line(scenes: Scenes) -> None:
    folder = scenes.qwen()
    path = folder / "refcoco_val.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"refcoco_val\.jsonl:4"):
        list(load("refcoco", path=folder, image_root=scenes.images))


def test_json_of_another_shape_is_a_sentence(scenes: Scenes) -> None:
    folder = scenes.unc()
    for content in ([], {"a": 1}, {"annotations": 3, "images": [], "categories": []}, {"annotations": [{}]}):
        write_json(folder / "instances.json", content)
        with pytest.raises(UserError, match="holds no instance annotations"):
            list(load("refcoco", path=folder, image_root=scenes.images))


def test_wrong_encodings_are_a_sentence(scenes: Scenes) -> None:
    folder = scenes.folder / "encoded"
    folder.mkdir()
    line = json.dumps({**GOOD, "expression": "café"}, ensure_ascii=False)
    (folder / "a.jsonl").write_bytes(line.encode("utf-8-sig"))
    assert next(iter(load("jsonl", path=folder / "a.jsonl", image_root=scenes.images))).expression == "café"
    for encoding in ("latin-1", "utf-16"):
        (folder / "a.jsonl").write_bytes(line.encode(encoding))
        with pytest.raises(UserError, match=r"a\.jsonl.*UTF-8"):
            list(load("jsonl", path=folder / "a.jsonl", image_root=scenes.images))
        (folder / "b.json").write_bytes(f"[{line}]".encode(encoding))
        with pytest.raises(UserError, match=r"b\.json.*UTF-8"):
            list(load("jsonl", path=folder / "b.json", image_root=scenes.images))


def test_broken_parquet_and_ragged_tables_are_a_sentence(scenes: Scenes) -> None:
    folder = scenes.parquet("testA")
    path = folder / "data" / "testA-00000-of-00001.parquet"
    path.write_bytes(b"PAR1 but no more")
    with pytest.raises(UserError, match="no complete Parquet file"):
        list(load("refcoco", path=folder, split="testA"))
    table = scenes.folder / "t.tsv"
    table.write_text("image\texpression\tbox\na.jpg\tx\n", encoding="utf-8")
    with pytest.raises(UserError, match="another number of columns"):
        list(load("jsonl", path=table))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"image": None}, "names no file"),
        ({"image": 5}, "names no file"),
        ({"expression": 5}, "is no text"),
        ({"distractors": "many"}, "is no count"),
        ({"distractors": -1}, "is no count"),
        ({"distractors": "[1, 2"}, "is no list"),
        ({"negation": "perhaps"}, "neither true nor false"),
        ({"candidates": [{"box": [1, 2, 3]}]}, "list of objects with a box"),
        ({"attributes": [1]}, "no object with named fields"),
    ],
)
def test_fields_of_a_wrong_kind_name_record_and_field(
    scenes: Scenes, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(UserError, match=rf"own\.jsonl, record 2.*{said}"):
        list(own(scenes, GOOD, {**GOOD, **changes}))


def test_an_empty_file_is_no_empty_set(scenes: Scenes) -> None:
    path = scenes.folder / "empty.jsonl"
    path.write_text("\n")
    with pytest.raises(UserError):
        list(load("jsonl", path=path))
    with pytest.raises(UserError, match=r"no rows.*check data\.split|no split"):
        list(load("refcoco", path=scenes.unc(), split="testB"))


def test_a_file_in_an_image_s_place_is_a_broken_image(scenes: Scenes) -> None:
    (scenes.images / "text.jpg").write_text("I am no image")
    with pytest.raises(UserError, match=r"text\.jpg can't be read \(not an image"):
        list(own(scenes, {**GOOD, "image": "text.jpg"}))


def test_pixel_limit_reaches_the_images(scenes: Scenes) -> None:
    with pytest.raises(UserError, match="pixel_limit"):
        list(own(scenes, GOOD, pixel_limit=100))


def test_boxes_are_kept_as_they_are_where_they_stick_out_by_rounding(scenes: Scenes) -> None:
    (example,) = own(scenes, {**GOOD, "box": [-0.5, 0, 64.9, 48]})
    assert example.target == Box(-0.5, 0, 64.9, 48)
