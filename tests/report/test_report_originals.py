"""Table 6 from the authors' whole folder: its lines, and the claims about them, each as a paired contrast."""

import csv

import pytest

from refadv_ablate.report.loading import originals, published
from refadv_ablate.report.loading.originals import named
from refadv_ablate.report.loading.sources import from_files
from refadv_ablate.report.loading.study import study
from refadv_ablate.report.pages import sweep_page
from refadv_ablate.report.pages.sweep_page import OPERATORS
from refadv_ablate.report.tables import paper
from refadv_ablate.report.tables.originals import tables_of
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.comparison import accuracy
from refadv_ablate.types import ORIGINAL
from tests.report.test_report_sources import their_line, write_lines

ROWS = 140
MISS = [200.0, 200.0, 300.0, 300.0]


def hits(share: float, row: int, seed: int) -> bool:
    """Harder with the row's place in a fixed order; a seed moves a fifth of the rows."""
    place = row * 37 % ROWS
    if (row + seed) % 5 == 0:
        place = (place + seed * 11) % ROWS
    return place < share * ROWS


def their_folder(folder):
    """A file for each of the 30 lines of Table 6, named and filled as theirs are."""
    for seed, row in enumerate(published.rows("table6")):
        model = f"Qwen/{row['family']}-{row['model']}"
        prompt = "cot" if row["cot"] == "yes" and "Instruct" in model else "direct"
        share = float(row["acc50"]) / 100
        lines = [
            their_line(
                i,
                model_full_name=model,
                prompt_id=prompt,
                pred_box_xyxy_first=[0.0, 0.0, 100.0, 95.0] if hits(share, i, seed) else MISS,
                first_iou=0.95 if hits(share, i, seed) else 0.0,
            )
            for i in range(ROWS)
        ]
        stem = model.rpartition("/")[2].lower().replace("-", "_")
        write_lines(folder / f"{stem}_{prompt}_predictions.jsonl", lines)
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = their_folder(tmp_path_factory.mktemp("qwen"))
    return study(from_files([f"{folder}/*_predictions.jsonl"]))


def test_every_published_line_has_its_place(whole):
    (table,) = paper.build("table6", whole, OPERATORS)
    wanted = [
        (row["family"], row["model"], "✓" if row["cot"] == "yes" else "–") for row in published.rows("table6")
    ]
    assert [line.labels for line in table.lines] == wanted
    assert all(line.values["acc50"].published is not None for line in table.lines)
    assert "table6" in paper.automatic(whole, OPERATORS)


def test_cot_against_direct_is_paired_for_each_model_that_has_both(whole):
    found = originals.cot_against_direct(whole)
    instruct = [row for row in published.rows("table6") if "Instruct" in row["model"]]
    assert len(found) == len(instruct) / 2 == 10
    sizes = [named(each.where.split(" · ")[0]).total for each in found]
    assert sizes == [3, 7, 32, 72, 2, 4, 8, 30, 32, 235]
    arms = {(cell.names.model, cell.names.prompt): cell.arms[ORIGINAL] for cell in whole.cells}
    for each in found:
        model = each.where.split(" · ")[0]
        direct, cot = arms[model, "direct"], arms[model, "cot"]
        assert each.paired and (each.a, each.b) == ("direct", "cot")
        assert each.first.n == ROWS and each.first.images == ROWS / 2
        assert each.first.value == pytest.approx(accuracy(direct, "acc50").value)
        assert each.difference.value == pytest.approx(
            accuracy(cot, "acc50").value - accuracy(direct, "acc50").value
        )
    raw = [each.p for each in found]
    assert [each.p_holm for each in found] == inference.holm(raw)


def test_thinking_stands_against_instruct_with_each_prompt(whole):
    found = originals.thinking_against_instruct(whole)
    sizes = {row["model"] for row in published.rows("table6") if "Thinking" in row["model"]}
    assert len(found) == 2 * len(sizes) == 12
    assert {each.a.rpartition(", ")[2] for each in found} == {"direct", "cot"}
    assert all("Instruct" in each.a and "Thinking" in each.b and each.b.endswith("direct") for each in found)
    large = next(each for each in found if "235B-A22B" in each.where and each.a.endswith("direct"))
    assert 0.04 < large.difference.value < 0.16  # 57.3 and 67.1 are published


def test_size_trends_keep_mixtures_of_experts_apart(whole):
    found = {(each.where, each.sparse): each for each in originals.size_trends(whole)}
    assert found["Qwen2.5-VL · direct · ref_adv_s", False].sizes == (3, 7, 32, 72)
    assert found["Qwen3-VL · cot · ref_adv_s", False].sizes == (2, 4, 8, 32)
    assert found["Qwen3-VL · cot · ref_adv_s", True].sizes == (30, 235)
    assert found["Qwen3-VL-Thinking · direct · ref_adv_s", False].sizes == (2, 4, 8, 32)
    assert found["Qwen3.5 · direct · ref_adv_s", True].sizes == (35, 122, 397)
    assert len(found) == 9
    steep = found["Qwen2.5-VL · direct · ref_adv_s", False]
    # least squares of 23.8, 39.3, 48.0, 54.0 over log2 of the sizes gives 6.1; the rows are coarser
    assert steep.slope.value == pytest.approx(0.061, abs=0.01)
    assert steep.slope.low > 0 and steep.p_holm < 0.001


def test_two_sizes_are_their_difference_by_the_doubling(whole):
    arms = {
        (cell.names.model, cell.names.prompt): accuracy(cell.arms[ORIGINAL], "acc50").value
        for cell in whole.cells
    }
    (two,) = [
        each for each in originals.size_trends(whole) if each.sizes == (30, 235) and "cot" in each.where
    ]
    rise = arms["Qwen3-VL-235B-A22B-Instruct", "cot"] - arms["Qwen3-VL-30B-A3B-Instruct", "cot"]
    assert two.slope.value == pytest.approx(rise / 2.9696, abs=1e-4)  # log2(235 / 30)


def test_the_page_has_the_three_tables(whole, tmp_path):
    tables = list(tables_of(whole))
    assert [table.name for table in tables] == [
        "cot_against_direct",
        "thinking_against_instruct",
        "size_trends",
    ]
    sweep_page.write_tables(tmp_path, tables, ["csv", "latex", "markdown"])
    with (tmp_path / "cot_against_direct.csv").open(encoding="utf-8") as file:
        assert len(list(csv.reader(file))) >= 11
    assert all("Holm-adjusted over" in table.notes[0] for table in tables)


def test_files_that_name_no_model_are_named_by_their_stem(tmp_path):
    for prompt in ("direct", "cot"):
        lines = [their_line(row, model_full_name="", prompt_id="") for row in range(12)]
        write_lines(tmp_path / f"my_model_7b_{prompt}_predictions.jsonl", lines)
    cells = from_files([tmp_path])
    assert {(cell.names.model, cell.names.prompt) for cell in cells} == {
        ("my_model_7b", "direct"),
        ("my_model_7b", "cot"),
    }
    (only,) = originals.cot_against_direct(study(cells))
    assert only.difference.value == 0 and only.p == 1.0
    assert "answer alike" in only.difference.note


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Qwen/Qwen2.5-VL-72B-Instruct", ("Qwen2.5-VL", 72, None, False)),
        ("Qwen3-VL-30B-A3B-Thinking", ("Qwen3-VL", 30, 3, True)),
        ("Qwen/Qwen3.5-397B-A17B-FP8", ("Qwen3.5", 397, 17, False)),
        ("OpenGVLab/InternVL3-14B-hf", ("InternVL3", 14, None, False)),
        ("my_model_7b", ("my_model", 7, None, False)),
        ("listener", None),
        ("gpt-4o-2024-08-06", None),
        ("Kimi-VL-A3B-Thinking", None),
    ],
)
def test_what_a_name_says(name, told):
    found = named(name)
    assert (found and (found.family, found.total, found.active, found.thinking)) == told
