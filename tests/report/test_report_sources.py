"""Files that others wrote, read as records; everything recomputed from boxes."""

import csv
import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from refadv_ablate.boxes import iou
from refadv_ablate.errors import UserError
from refadv_ablate.report.loading.rows import TOLERANCE
from refadv_ablate.report.loading.sources import Names, from_files
from refadv_ablate.report.loading.study import study
from refadv_ablate.statistics.understanding import Answers
from refadv_ablate.storage.records import write_records
from refadv_ablate.types import ORIGINAL
from tests.report.making import records


def their_line(row: int, **more: object) -> dict[str, object]:
    """A line as the authors of Ref-Adv publish them."""
    line = {
        "row_idx": row,
        "file_name": f"{row // 2:012}.jpg",
        "normal_caption": "the man, who isn't “sitting”",
        "image_source": "coco_val2017",
        "human_authored": True,
        "use_negation": row % 2 == 0,
        "distractor_count": 2 + row % 7,
        "gt_bbox_xyxy": [0.0, 0.0, 100.0, 100.0],
        "pred_box_xyxy_first": [0.0, 0.0, 100.0, 50.0],
        "first_iou": 0.5,
        "first_hit": True,
        "parse_error": "",
        "retry_followup_used": False,
        "model_full_name": "Qwen/Qwen3.5-27B",
        "prompt_id": "direct",
    }
    return line | more


def write_lines(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_the_authors_lines_become_records(tmp_path):
    lines = [
        their_line(0),
        their_line(
            1, pred_box_xyxy_first=[], first_iou=0.0, parse_error="no_bbox_found", retry_followup_used=True
        ),
        their_line(2, pred_box_xyxy_first=[], first_iou=0.0, parse_error="backend_error"),
        their_line(3, pred_box_xyxy_first=[5, 5, 5, 9], first_iou=0.0),
        their_line(4, distractor_count="5"),
    ]
    (cell,) = from_files([write_lines(tmp_path / "x_predictions.jsonl", lines)])
    found = list(cell.records())
    assert (cell.names.model, cell.names.data, cell.names.prompt) == ("Qwen3.5-27B", "ref_adv_s", "direct")
    assert cell.names.checkpoint == "Qwen/Qwen3.5-27B"
    assert [r.outcome for r in found] == ["box", "unparsable", "missing", "unparsable", "box"]
    assert [r.iou for r in found] == [0.5, 0.0, None, 0.0, 0.5]
    assert [r.notes for r in found] == [(), ("retried",), (), (), ()]
    assert [r.image_key for r in found] == ["000000000000.jpg"] * 2 + ["000000000001.jpg"] * 2 + [
        "000000000002.jpg"
    ]
    assert (found[4].distractors, found[0].negation, found[0].source) == (5, True, "coco_val2017")
    assert found[0].attributes == {"human_authored": True}
    assert cell.warnings == []


def test_a_server_that_failed_is_missing_and_not_wrong(tmp_path):
    lines = [
        their_line(i, pred_box_xyxy_first=[], first_iou=0, parse_error="backend_error") for i in range(4)
    ]
    (cell,) = from_files([write_lines(tmp_path / "x_predictions.jsonl", [*lines, their_line(5)])])
    counts = cell.arms[ORIGINAL].counts()
    assert (counts["missing"], counts["box"]) == (4, 1)


def test_stored_hits_are_not_believed_and_disagreement_names_the_rows(tmp_path):
    lines = [their_line(i, first_iou=0.9) for i in range(7)] + [their_line(7, first_iou=0.5 + TOLERANCE / 2)]
    (cell,) = from_files([write_lines(tmp_path / "x_predictions.jsonl", lines)])
    assert all(r.iou == 0.5 for r in cell.records())
    (warning,) = cell.warnings
    assert warning.startswith(
        "7 stored IoU disagree with the boxes (the boxes count): 0: stored 0.9000, the boxes give 0.5000"
    )
    assert "4: stored" in warning
    assert "5: stored" not in warning
    assert warning.endswith("and 2 more")


def test_our_own_stored_iou_is_checked_too(tmp_path):
    original = list(records(10))
    folder = tmp_path / "cell"
    folder.mkdir()
    write_records(folder / "predictions.jsonl", original)
    text = (folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(text[3])
    text[3] = json.dumps(row | {"iou": 0.123})
    (folder / "predictions.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    (cell,) = from_files([folder])
    assert [r.iou for r in cell.records()] == [r.iou for r in original]
    assert "case00003: stored 0.1230" in cell.warnings[0]


def test_a_placebo_is_no_part_of_the_accuracy_as_in_the_run_itself(tmp_path):
    asked = [*records(10), *records(10, condition="occlude")]
    beside = [
        dataclasses.replace(r, draw=r.draw + 100, part="placebo", placebo=True)
        for r in asked
        if r.condition != ORIGINAL
    ]
    write_records(tmp_path / "predictions.jsonl", [*asked, *beside])
    (cell,) = from_files([tmp_path])
    assert beside
    assert {name: len(arm) for name, arm in cell.arms.items()} == Counter(r.condition for r in asked)


def test_a_table_without_quoting_reads_as_the_lines_do(tmp_path):
    lines = [their_line(i, normal_caption='the "big" one\'s left') for i in range(3)]
    lines[1] |= {"pred_box_xyxy_first": [], "first_iou": 0.0, "parse_error": "no_bbox_found"}
    names = [name for name in lines[0] if name not in ("first_hit", "model_full_name", "prompt_id")]
    cells = [
        [
            ",".join(map(str, v))
            if isinstance(v := line[n], list)
            else str(int(v))
            if isinstance(v, bool)
            else str(v)
            for n in names
        ]
        for line in lines
    ]
    table = tmp_path / "a_predictions.tsv"
    table.write_text("\n".join("\t".join(row) for row in [names, *cells]) + "\n", encoding="utf-8")
    (from_table,) = from_files([table], Names(model="m", prompt="cot"))
    (from_lines,) = from_files([write_lines(tmp_path / "b_predictions.jsonl", lines)])
    assert list(from_table.records()) == list(from_lines.records())
    assert (from_table.names.model, from_table.names.prompt) == ("m", "cot")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gt_bbox_xyxy": [1, 2, 3]}, "'gt_bbox_xyxy' needs four numbers, not [1, 2, 3]"),
        ({"gt_bbox_xyxy": []}, "'gt_bbox_xyxy' is empty"),
        ({"gt_bbox_xyxy": [5, 5, 1, 9]}, "'gt_bbox_xyxy': box"),
        ({"gt_bbox_xyxy": ["a", 5, 1, 9]}, "'gt_bbox_xyxy' needs a number, not 'a'"),
        ({"distractor_count": "many"}, "'distractor_count' needs a whole number, not 'many'"),
        ({"use_negation": "perhaps"}, "'use_negation' needs true or false, not 'perhaps'"),
        ({"first_iou": "high"}, "'first_iou' needs a number, not 'high'"),
    ],
)
def test_a_broken_line_is_named_with_file_and_line(tmp_path, change, said):
    path = write_lines(tmp_path / "x_predictions.jsonl", [their_line(0), their_line(1, **change)])
    with pytest.raises(UserError) as error:
        from_files([path])
    assert str(error.value).startswith(f"{path}:2: {said}")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("predictions.jsonl", "", "holds no predictions"),
        ("predictions.jsonl", '{"a": 1}\n', "neither a prediction of this harness"),
        ("predictions.jsonl", "{", "no valid JSON"),
        ("predictions.tsv", "row_idx\tcaption\n1\tx\n", "no column 'normal_caption'"),
        (
            "predictions.tsv",
            "row_idx\tnormal_caption\tgt_bbox_xyxy\tpred_box_xyxy_first\n1\tx\n",
            "2 columns, the header has 4",
        ),
    ],
)
def test_files_that_are_something_else_are_refused_in_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=said):
        from_files([tmp_path])


def test_files_folders_patterns_and_sweeps_lead_to_the_same_cells(tmp_path):
    cells = tmp_path / "results" / "cells"
    for label in ("bow", "fixed"):
        write_records(
            cells / label / "predictions.jsonl", [*records(4), *records(4, seed=1, condition=label)]
        )
    sweep = tmp_path / "results" / "sweeps" / "s"
    (sweep / "cells").mkdir(parents=True)
    (sweep / "sweep.json").write_text("{}", encoding="utf-8")
    for i, label in enumerate(("bow", "fixed")):  # a results folder that was moved: the address is stale
        (sweep / "cells" / f"{i}.json").write_text(
            json.dumps({"folder": f"/gone/cells/{label}"}), encoding="utf-8"
        )
    wanted = [cells / "bow" / "predictions.jsonl", cells / "fixed" / "predictions.jsonl"]
    for paths in ([tmp_path], [str(cells / "*" / "*.jsonl")], [*wanted, cells], [sweep]):
        assert [c.path for c in from_files(paths)] == wanted
    with pytest.raises(UserError, match="no such file or folder"):
        from_files([tmp_path / "nowhere"])
    with pytest.raises(UserError, match="holds no prediction files"):
        from_files([sweep / "cells"])
    with pytest.raises(UserError, match="nothing to report on"):
        from_files([])


def test_the_benchmarks_own_table_agrees_with_its_stored_iou(shared):
    path = shared / "data" / "ref_adv_s_predictions.tsv"
    (cell,) = from_files([path])
    assert cell.warnings == []
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for record, row in zip(cell.records(), rows, strict=True):
        assert record.original_expression == row["normal_caption"]
        expected = iou(record.predicted, record.target) if record.predicted else 0.0
        assert record.iou == expected
        assert abs(record.iou - float(row["first_iou"])) <= TOLERANCE


def test_a_report_makes_the_scores_of_the_run_anew_with_floor_and_refusals(tmp_path):
    told = {"expectation": "reject", "or_none": True}
    gone = [dataclasses.replace(r, **told) for r in records(12, condition="gone")]
    gone[0] = dataclasses.replace(gone[0], outcome="none", predicted=None, iou=0.0)
    gone[1] = dataclasses.replace(
        gone[1], outcome="not_perturbable", reason="no candidate", predicted=None, iou=None
    )
    again = [dataclasses.replace(r, condition="repeat") for r in records(12)]
    asked = [*records(12), *gone, *again]
    write_records(tmp_path / "predictions.jsonl", asked)
    details = {"noise_floor": True, "does": "when nothing fits", "keeps_text": False}
    (tmp_path / "summary.json").write_text(json.dumps({"details": details}), encoding="utf-8")
    made = {c.operator: c for c in study(from_files([tmp_path]), n_boot=10).comparisons}
    for operator in ("gone", "repeat"):
        run = Answers()
        for record in asked:
            if record.condition in (ORIGINAL, operator):
                run.add(record)
        assert made[operator].scores == run.scores() != ()
        assert made[operator].details["noise_floor"] and made[operator].details["does"]
    assert made["gone"].details["not_applicable"] == {"no candidate": 1}
    (rejecting,) = (s for s in made["gone"].scores if s.name == "rejects")
    assert (rejecting.estimate.value, rejecting.estimate.n) == (pytest.approx(1 / 11), 11)
