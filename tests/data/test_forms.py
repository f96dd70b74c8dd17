"""The same drawn scenes in every published form load to identical examples."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from refadv_ablate import assets
from refadv_ablate.boxes import Box
from refadv_ablate.data.forms import hub
from refadv_ablate.errors import UserError
from refadv_ablate.types import Data, Example
from tests.data.scenes import ANNOTATIONS, Scenes, load, name_of, write_json, write_lines, xyxy


@pytest.fixture
def scenes(tmp_path: Path) -> Scenes:
    return Scenes(tmp_path).draw()


def examples(form: str, scenes: Scenes, **more: object) -> list[Example]:
    path = getattr(scenes, form)()
    instances = scenes.folder / "instances.json"
    write_json(instances, scenes.instances())
    values = {"path": path, "image_root": scenes.images, "instances": instances, **more}
    return list(load("refcoco", **values))


SETS = (
    "refcoco",
    "refcoco_plus",
    "refcocog",
    "ref_adv",
    "ref_adv_s",
    "ref_l4",
    "finecops_ref",
    "grefcoco_single",
)
FORMS = ("mdetr", "qwen", "shikra", "vlm_r1")


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_refcoco_load_to_identical_examples(form: str, scenes: Scenes) -> None:
    authors = list(load("refcoco", path=scenes.unc(), image_root=scenes.images))
    assert examples(form, scenes) == authors


def test_the_authors_files_give_everything(scenes: Scenes) -> None:
    first, second, third, fourth = load("refcoco", path=scenes.unc(), image_root=scenes.images)
    assert first.expression == "the person on the left"
    assert second.expression == "left one, “big”"
    assert first.target == Box(4, 6, 24, 36)
    assert (first.category, first.distractors) == ("person", 1)  # the crowd region doesn't count
    assert [c.category for c in first.candidates] == ["person", "person", "cat"]
    assert first.target in [c.box for c in first.candidates]
    assert fourth.target == Box(8.25, 2.5, 33.75, 33.25)
    assert fourth.distractors == 1
    assert first.image.key == second.image.key == third.image.key == name_of(1)
    assert len({example.id for example in (first, second, third, fourth)}) == 4
    assert first.split == "val"
    assert first.image.load().size == (64, 48)


def test_hub_rows_from_parquet_are_the_same_examples_but_for_what_they_lack(scenes: Scenes) -> None:
    scenes.refs = [(ref, ann, "testA", sentences) for ref, ann, _, sentences in scenes.refs]
    rows = list(load("refcoco", path=scenes.parquet("testA"), split="testA"))
    wanted = list(load("refcoco", path=scenes.unc(), split="testA", image_root=scenes.images))
    assert [(r.id, r.image.key, r.expression, r.target, r.split) for r in rows] == [
        (w.id, w.image.key, w.expression, w.target, w.split) for w in wanted
    ]
    assert len(rows) == 5  # of four records, one with two expressions
    assert rows[0].image.digest() == wanted[0].image.digest()


@pytest.mark.parametrize(
    ("name", "split", "clean"),
    [
        ("refcoco", "val", False),
        ("refcoco", "test", False),
        ("refcoco", "testA", True),
        ("refcoco_plus", "val", True),
        ("refcocog", "val", False),
        ("refcocog", "test", True),
    ],
)
def test_mixed_hub_splits_are_refused_with_the_finding(
    name: str, split: str, clean: bool, monkeypatch: pytest.MonkeyPatch, scenes: Scenes
) -> None:
    online(monkeypatch, scenes.lmms_rows())
    data = load(name, form="hub", split=split)
    if clean:
        assert len(list(data)) == 4
    else:
        with pytest.raises(UserError, match="Google split"):
            list(data)


def online(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, object]]) -> list[tuple[str, ...]]:
    asked: list[tuple[str, ...]] = []

    def stream(*about: str) -> Iterator[dict[str, object]]:
        asked.append(about)
        return iter(rows)

    monkeypatch.setattr(hub, "commit", lambda *_: "c0ffee")
    monkeypatch.setattr(hub, "stream", stream)
    return asked


def test_the_hub_is_streamed_at_a_stated_commit(monkeypatch: pytest.MonkeyPatch, scenes: Scenes) -> None:
    asked = online(monkeypatch, scenes.lmms_rows())
    data = load("refcoco", form="hub", split="testA")
    assert next(e.expression for e in data) == "the person on the left"
    assert asked == [("lmms-lab/RefCOCO", "testA", "c0ffee")]
    assert data.fingerprint()["files"] == {"hub": "lmms-lab/RefCOCO", "revision": "c0ffee", "split": "testA"}


def test_an_empty_hub_answer_is_no_empty_set(monkeypatch: pytest.MonkeyPatch) -> None:
    online(monkeypatch, [])
    with pytest.raises(UserError, match="gave no rows"):
        list(load("ref_adv_s", path="dddraxxx/ref-adv-s"))


def test_a_stream_that_breaks_is_no_end_of_the_set(monkeypatch: pytest.MonkeyPatch, scenes: Scenes) -> None:
    def stream(*_: str) -> Iterator[dict[str, object]]:
        yield from scenes.lmms_rows()
        raise ConnectionResetError("peer went away")

    monkeypatch.setattr(hub, "commit", lambda *_: "c0ffee")
    monkeypatch.setattr(hub, "stream", stream)
    with pytest.raises(UserError, match=r"broke off.*peer went away"):
        list(load("refcoco", form="hub", split="testA"))


def test_rows_stream_through_datasets_with_images_as_stored_bytes(
    scenes: Scenes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import datasets

    scenes.refs = [(ref, ann, "testA", sentences) for ref, ann, _, sentences in scenes.refs]
    rows = scenes.lmms_rows("testA")
    features = datasets.Features(
        {
            "question_id": datasets.Value("string"),
            "image": datasets.Image(),
            "question": datasets.Value("string"),
            "answer": datasets.List(datasets.Value("string")),
            "bbox": datasets.List(datasets.Value("float32")),
            "iscrowd": datasets.Value("int8"),
            "file_name": datasets.Value("string"),
        }
    )
    folder = tmp_path / "as_on_the_hub"
    (folder / "data").mkdir(parents=True)
    datasets.Dataset.from_list(rows, features).to_parquet(folder / "data" / "testA-00000-of-00001.parquet")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub, "commit", lambda *_: None)
    stream = hub.stream
    monkeypatch.setattr(hub, "stream", lambda _, split, revision: stream(str(folder), split, revision))
    streamed = list(load("refcoco", form="hub", split="testA"))
    wanted = list(load("refcoco", path=scenes.unc(), split="testA", image_root=scenes.images))
    assert [(s.id, s.expression, s.target) for s in streamed] == [
        (w.id, w.expression, w.target) for w in wanted
    ]
    assert [s.image.digest() for s in streamed] == [w.image.digest() for w in wanted]


def test_negation_is_filled_in_by_rule_on_request(scenes: Scenes) -> None:
    path = scenes.unc()
    assert {e.negation for e in load("refcoco", path=path, image_root=scenes.images)} == {None}
    data = load("refcoco", path=path, image_root=scenes.images, negation="rule")
    assert [e.negation for e in data] == [False, False, False, True]
    assert data.fingerprint()["negation"] == "rule"


def test_an_unreachable_hub_is_one_quick_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"dddraxxx/ref-adv-s can't be streamed.*hf download"):
        list(load("ref_adv_s", form="hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", refuse)
    with pytest.raises(UserError, match=r"can't be had from the hub.*no route.*hf download"):
        list(load("ref_adv_s", form="hub"))


def refuse(*_: object, **__: object) -> None:
    raise OSError("no route to host")


def ref_adv_rows(scenes: Scenes) -> list[dict[str, object]]:
    return [
        {
            "row_idx": n,
            "image": f"images/{name}",
            "file_name": name,
            "normal_caption": text,
            "solution": xyxy(box),
            "width": size[0],
            "height": size[1],
            "image_source": "coco_val2017",
            "human_authored": n % 2 == 0,
            "use_negation": n == 3,
            "distractors": ["5", 4, ["a", "b"], "['a', 'b', 'c']"][n],
        }
        for n, (_, name, text, box, size) in enumerate(scenes.rows("val"))
    ]


def test_ref_adv_s_from_a_folder(scenes: Scenes) -> None:
    folder = scenes.folder / "ref_adv_s"
    write_lines(folder / "samples.jsonl", ref_adv_rows(scenes))
    scenes.images.rename(folder / "images")
    data = load("ref_adv_s", path=folder)
    loaded = list(data)
    assert [e.distractors for e in loaded] == [5, 4, 2, 3]
    assert [e.negation for e in loaded] == [False, False, False, True]
    assert [e.attributes["human_authored"] for e in loaded] == [True, False, True, False]
    assert [e.id for e in loaded] == ["0", "1", "2", "3"]
    assert loaded[0].source == "coco_val2017"
    assert loaded[0].image.load().size == (64, 48)
    assert data.name == "ref_adv_s"
    assert isinstance(data, Data)


def test_images_named_by_row_cluster_by_content(scenes: Scenes) -> None:
    folder = scenes.folder / "ref_adv_s"
    rows = ref_adv_rows(scenes)
    (folder / "images").mkdir(parents=True)
    for row in rows:
        source = scenes.images / str(row.pop("file_name"))
        (folder / "images" / f"{row['row_idx']}.jpg").write_bytes(source.read_bytes())
        row["image"] = f"images/{row['row_idx']}.jpg"
    write_lines(folder / "samples.jsonl", rows)
    keys = [e.image.key for e in load("ref_adv_s", path=folder)]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_published_predictions_load_without_images(scenes: Scenes) -> None:
    path = scenes.folder / "x_predictions.tsv"
    names = "row_idx file_name image_source human_authored use_negation distractor_count gt_bbox_xyxy"
    header = "\t".join([*names.split(), "normal_caption"])
    row = '0\t7.jpg\topenimages\t1\t0\t5\t1.0,2.0,30.0,40.0\tthe "big one" that isn\'t red'
    path.write_text(f"{header}\n{row}\n", encoding="utf-8")
    (example,) = load("ref_adv_s", path=path)
    assert example.expression == 'the "big one" that isn\'t red'
    assert example.target == Box(1, 2, 30, 40)
    assert (example.distractors, example.negation, example.image.key) == (5, False, "7.jpg")
    with pytest.raises(UserError, match=r"7\.jpg.*data\.image_root"):
        example.image.load()


def test_ref_l4_from_parquet(scenes: Scenes) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "id": n,
            "file_name": name,
            "bbox": [float(v) for v in box],
            "caption": text,
            "ori_category_id": "coco_1",
        }
        for n, (_, name, text, box, _) in enumerate(scenes.rows("val"))
    ]
    pq.write_table(pa.Table.from_pylist(rows), scenes.folder / "ref-l4-val.parquet")
    data = load("ref_l4", path=scenes.folder, image_root=scenes.images)
    wanted = list(load("refcoco", path=scenes.unc(), image_root=scenes.images))
    assert [(e.image, e.expression, e.target) for e in data] == [
        (e.image, e.expression, e.target) for e in wanted
    ]
    assert data.name == "ref_l4_val"
    assert next(iter(data)).category == "coco_1"


def test_finecops_with_scene_graphs_leaves_negatives_out_and_counts_them(scenes: Scenes) -> None:
    folder = scenes.folder / "finecops"
    folder.mkdir()
    images, annotations = [], []
    for n, (_, name, text, box, (w, h)) in enumerate(scenes.rows("val")):
        images.append(
            {"id": n, "file_name": name, "caption": text, "width": w, "height": h, "level": n % 3 + 1}
        )
        annotations.append({"id": n, "image_id": n, "bbox": box, "category_id": 1})
    images.append({"id": 99, "file_name": name_of(1), "caption": "a dog", "width": 64, "height": 48})
    content = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "object"}]}
    write_json(folder / "test_expression_pos_coco_format.json", content)
    graphs = {
        Path(name_of(image)).stem: {
            "width": 64,
            "height": 48,
            "objects": {
                str(a): {"name": "man" if c == 1 else "cat", "x": x, "y": y, "w": w, "h": h}
                for a, i, c, x, y, w, h, crowd in ANNOTATIONS
                if i == image and not crowd
            },
        }
        for image in (1, 2)
    }
    write_json(folder / "graphs.json", graphs)
    data = load("finecops_ref", path=folder, image_root=scenes.images, instances=folder / "graphs.json")
    loaded = list(data)
    assert [e.attributes["level"] for e in loaded] == [1, 2, 3, 1]
    assert (loaded[0].category, loaded[0].distractors) == ("man", 1)
    assert len(loaded[0].candidates) == 3
    assert data.excluded == {"no_target": 1}


@pytest.mark.parametrize("suffix", ["json", "p"])
def test_grefcoco_keeps_single_targets_and_counts_the_rest(scenes: Scenes, suffix: str) -> None:
    import pickle

    refs = scenes.unc_refs()
    for ref in refs:
        ref["ann_id"], ref["category_id"] = [ref["ann_id"]], [ref["category_id"]]
    refs[1]["ann_id"] = [12, 13]
    refs[2]["ann_id"], refs[2]["category_id"] = [-1], [-1]
    refs.append({**refs[0], "ref_id": 9, "sentences": []})
    folder = scenes.folder / "grefcoco"
    folder.mkdir()
    write_json(folder / "instances.json", scenes.instances())
    path = folder / f"grefs(unc).{suffix}"
    path.write_bytes(pickle.dumps(refs, 2) if suffix == "p" else json.dumps(refs).encode())
    data = load("grefcoco_single", path=folder, image_root=scenes.images)
    assert [e.expression for e in data] == ["the person on the left", "left one, “big”"]
    assert data.excluded == {"multi_target": 1, "no_target": 1, "no_expressions": 1}
    assert data.name == "grefcoco_single_val_unc"


def test_ones_own_file_with_its_columns_and_convention(scenes: Scenes) -> None:
    assert [e.target for e in load("jsonl", path=scenes.own(), image_root=scenes.images)] == [
        e.target for e in load("refcoco", path=scenes.unc(), image_root=scenes.images)
    ]
    rows = [
        {
            "file": name,
            "text": text,
            "bb": [box[0] / w, box[1] / h, box[2] / w, box[3] / h],
            "id": f"row{n}",
            "category": "cat",
            "attributes": {"colour": "red"},
            "negation": "true",
        }
        for n, (_, name, text, box, (w, h)) in enumerate(scenes.rows("val"))
    ]
    write_lines(scenes.folder / "own" / "b.jsonl", rows)
    columns = [
        f"data.forms.{key}"
        for key in ("image=file", "expression=text", "box=bb", "order=xywh", "unit=fraction")
    ]
    data = load("jsonl", *columns, path=scenes.folder / "own" / "b.jsonl", image_root=scenes.images)
    first = next(iter(data))
    assert first.target.as_list() == pytest.approx([4, 6, 24, 36])
    assert (first.id, first.category, first.negation) == ("row0", "cat", True)
    assert first.attributes == {"colour": "red"}


def test_one_s_own_candidates_are_kept(scenes: Scenes) -> None:
    row = {
        "image": name_of(1),
        "expression": "x",
        "box": [4, 6, 24, 36],
        "candidates": [{"box": [4, 6, 24, 36], "category": "person"}, {"box": [30, 8, 45, 33]}],
    }
    write_lines(scenes.folder / "c" / "c.jsonl", [row])
    (example,) = load("jsonl", path=scenes.folder / "c" / "c.jsonl", image_root=scenes.images)
    assert [(c.box.x1, c.category) for c in example.candidates] == [(4, "person"), (30, None)]


def test_split_and_provenance_are_in_name_and_fingerprint(scenes: Scenes) -> None:
    umd = load("refcocog", path=scenes.unc("umd"), image_root=scenes.images)
    google = load("refcocog", path=scenes.unc("google"), image_root=scenes.images, split_by="google")
    assert (umd.name, google.name) == ("refcocog_val_umd", "refcocog_val_google")
    assert umd.fingerprint() != google.fingerprint()
    assert google.fingerprint()["split_by"] == "google"
    assert umd.fingerprint()["form"] == "unc"
    assert json.loads(json.dumps(dict(umd.fingerprint()))) == umd.fingerprint()


def test_a_derived_form_does_not_pretend_to_another_split(scenes: Scenes) -> None:
    with pytest.raises(UserError, match="splits are those of unc, not of google"):
        list(load("refcoco", path=scenes.mdetr(), image_root=scenes.images, split_by="google"))


def test_iteration_is_lazy_repeatable_and_in_stored_order(scenes: Scenes) -> None:
    data = load("refcoco", path=scenes.qwen(), image_root=scenes.images)
    assert list(data) == list(data)
    assert [e.expression for e in itertools.islice(data, 1)] == ["the person on the left"]


def test_jsonl_of_any_length_takes_constant_memory(scenes: Scenes) -> None:
    import tracemalloc

    row = {"image": name_of(1), "box": [4, 6, 24, 36], "width": 64, "height": 48, "filler": "x" * 500}
    path = scenes.folder / "long" / "long.jsonl"
    write_lines(path, [{**row, "expression": f"number {n}", "id": n} for n in range(4000)])
    data = load("jsonl", path=path, image_root=scenes.images)
    tracemalloc.start()
    number = sum(1 for _ in data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert number == 4000
    assert peak < path.stat().st_size  # 2.5 MB; what is kept is a hash and an id a row


def test_every_set_has_a_configuration_that_builds() -> None:
    for name in SETS:
        assert load(name).name
    assert load("jsonl", path="a/b.jsonl").name == "b.jsonl"
    assert all(assets.options("data").values())


def test_a_set_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    for name in SETS:
        with pytest.raises(UserError, match=r"is not there: set data\.path; get it with: .+"):
            list(load(name, path=tmp_path / "nowhere"))
        with pytest.raises(UserError, match=r"holds no file of .*get it with"):
            list(load(name, path=tmp_path))


def test_a_half_present_set_says_what_is_missing(scenes: Scenes) -> None:
    folder = scenes.unc()
    (folder / "instances.json").unlink()
    with pytest.raises(UserError, match=r"only half.*instances\.json is missing.*get it with"):
        list(load("refcoco", path=folder))


def test_a_missing_shard_is_a_half_present_set(scenes: Scenes) -> None:
    folder = scenes.parquet("testA")
    path = folder / "data" / "testA-00000-of-00001.parquet"
    path.rename(path.with_name("testA-00000-of-00002.parquet"))
    with pytest.raises(UserError, match=r"only half.*testA-00001-of-00002\.parquet is missing"):
        list(load("refcoco", path=folder, split="testA"))


def test_several_tables_in_one_folder_need_a_word(scenes: Scenes) -> None:
    path = scenes.own()
    path.with_name("other.jsonl").write_bytes(path.read_bytes())
    with pytest.raises(UserError, match=r"several tables.*mine\.jsonl, other\.jsonl.*data\.path"):
        list(load("jsonl", path=path.parent, image_root=scenes.images))


def test_converted_grefcoco_marks_empty_and_several_targets(scenes: Scenes) -> None:
    path = scenes.mdetr() / "finetune_refcoco_val.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["annotations"][0]["empty"] = True
    content["annotations"].append({**content["annotations"][1], "id": 77})
    folder = scenes.folder / "converted"
    folder.mkdir()
    write_json(folder / "finetune_grefcoco_val.json", content)
    data = load("grefcoco_single", path=folder, image_root=scenes.images)
    assert len(list(data)) == 2
    assert data.excluded == {"no_target": 1, "multi_target": 1}


def test_several_forms_in_one_folder_need_a_word(scenes: Scenes) -> None:
    folder = scenes.unc()
    scenes.qwen().joinpath("refcoco_val.jsonl").rename(folder / "refcoco_val.jsonl")
    with pytest.raises(UserError, match=r"several forms.*data\.form="):
        list(load("refcoco", path=folder, image_root=scenes.images))
    assert len(list(load("refcoco", path=folder, image_root=scenes.images, form="qwen"))) == 4


def test_a_named_file_is_read_in_the_form_whose_files_are_called_so(scenes: Scenes, tmp_path: Path) -> None:
    row = {
        "image": "a.jpg",
        "normal_caption": "a",
        "solution": [4, 6, 24, 36],
        "row_idx": 1,
    }
    shutil.copyfile(next(scenes.images.glob("*.jpg")), tmp_path / "a.jpg")
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (tmp_path / "x_predictions.tsv").write_text("row_idx\n1\n", encoding="utf-8")
    assert [example.expression for example in load("ref_adv_s", path=path)] == ["a"]
    other = path.rename(tmp_path / "rows.json")
    other.write_text(json.dumps([row]), encoding="utf-8")
    assert [example.expression for example in load("ref_adv_s", path=other)] == ["a"]


def test_several_forms_are_named_as_words_of_a_command(scenes: Scenes) -> None:
    folder = scenes.unc()
    scenes.qwen().joinpath("refcoco_val.jsonl").rename(folder / "refcoco_val.jsonl")
    with pytest.raises(UserError, match=r"say data\.form=unc or data\.form=qwen$"):
        list(load("refcoco", path=folder, image_root=scenes.images))


def test_columns_of_ones_own_file_are_named_as_the_command_wants_them(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"img": "a.png", "caption": "a", "bbox": [1, 2, 3, 4]}\n', encoding="utf-8")
    words = r"data\.forms\.image=img data\.forms\.expression=caption data\.forms\.box=bbox"
    with pytest.raises(UserError, match=words):
        list(load("jsonl", path=path))
    path.write_text('{"image": "a.png", "expression": "a", "zzz": [1, 2, 3, 4]}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"data\.forms\.expression=expression data\.forms\.box=…"):
        list(load("jsonl", path=path))


def test_unknown_form_split_and_exclusion_name_the_nearest(scenes: Scenes) -> None:
    with pytest.raises(UserError, match=r"did you mean 'mdetr'"):
        load("refcoco", form="mdtr")
    with pytest.raises(UserError, match=r"did you mean 'empty_expression'"):
        load("refcoco", exclude="[empty_expresion]")
    with pytest.raises(UserError, match=r"no split 'testa'; did you mean 'testA'"):
        list(load("refcoco", path=scenes.unc(), split="testa"))


def test_a_table_without_the_columns_names_those_it_has(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"picture": "a.jpg", "caption": "x"}])
    with pytest.raises(UserError, match=r"its records have: picture, caption"):
        list(load("jsonl", path=tmp_path / "a.jsonl"))
