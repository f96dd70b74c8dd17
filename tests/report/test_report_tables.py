"""The paper's tables in their layout, and every way to write one."""

import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.loading.groups import apart, to_overall
from refadv_ablate.report.loading.sources import Cell, Names, from_files
from refadv_ablate.report.loading.study import Study, study, within
from refadv_ablate.report.pages.sweep_page import OPERATORS
from refadv_ablate.report.tables import cautions, formats, paper, results
from refadv_ablate.report.tables.table import Column, Fact, Line, Number, Table
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.types import Estimate
from tests.report.making import NASTY, comparison, delta, estimate, records


def by_label(table: Table) -> dict[tuple[str, ...], Line]:
    return {line.labels: line for line in table.lines}


# ── Table 6, the published check ────────────────────────────────────────────────────────────────


def test_table_6_gives_the_published_row_from_the_boxes(shared):
    names = Names(model="Qwen2.5-VL-72B-Instruct", prompt="cot")
    found = study(from_files([shared / "data" / "ref_adv_s_predictions.tsv"], names))
    (table,) = paper.build("table6", found, OPERATORS)
    line = by_label(table)["Qwen2.5-VL", "72B-Instruct", "✓"]
    shown = {key: value.shown() for key, value in line.values.items()}
    assert shown == {
        "acc50": "52.4",
        "acc75": "39.0",
        "acc90": "18.3",
        "acc50_distractors_2_3": "56.9",
        "delta_2_3": "+4.5",
        "acc50_distractors_4_6": "47.9",
        "delta_4_6": "−4.4",
        "acc50_distractors_7_plus": "38.8",
        "delta_7_plus": "−13.6",
        "answered": "1,142",
    }
    for key, value in line.values.items():
        if key == "answered":
            continue
        assert value.within, key
        assert abs(value.difference) <= 0.0005, key
        assert value.estimate.low < value.estimate.value < value.estimate.high
        assert value.against_published() == f"{value.shown()} (0.0 ✓)"


def test_a_thinking_model_is_compared_with_its_only_published_line():
    for model, tick, family in (
        ("Qwen3.5-27B", "✓", "Qwen3.5"),
        ("Qwen3-VL-8B-Thinking", "✓", "Qwen3-VL"),
        ("Qwen3-VL-8B-Instruct", "–", "Qwen3-VL"),
    ):
        cell = from_records(list(records(40)), model, "ref_adv_s", "direct")
        (table,) = paper.build("table6", study([cell]), OPERATORS)
        (line,) = table.lines
        assert line.labels == (family, model.removeprefix(f"{family}-"), tick)
        assert line.has_published


def from_records(found, model, data, prompt):
    from pathlib import Path

    from refadv_ablate.report.loading.rows import Row
    from refadv_ablate.report.loading.sources import Cell

    return Cell(Names(model, data, prompt), Path("x"), lambda: iter([Row(r) for r in found])).load()


# ── tables 2, 3, 4, 7, 1 ────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sweep():
    cells = []
    for model, hit in (("Qwen2.5-VL-72B-Instruct", 0.6), ("InternVL3-14B-hf", 0.5)):
        for data, bonus in (("refcoco_val_unc", 0.3), ("ref_adv", 0.0)):
            for label, loss in (("bow", 0.15), ("fixed", 0.35), ("descriptor_deletion", 0.06)):
                both = [
                    *records(80, seed=1, hit=hit + bonus),
                    *records(80, seed=2, condition=label, hit=hit + bonus - loss),
                ]
                cells.append(from_records(both, model, data, "cot"))
    return study(cells, n_boot=200)


def test_tables_3_and_4_have_models_down_and_data_across_with_published_values(sweep):
    (table,) = paper.build("table3", sweep, OPERATORS)
    assert table.label_titles == ("Model", "Asked")
    assert [c.title for c in table.columns] == ["RefCOCO", "Ref-Adv"]
    assert [line.labels for line in table.lines] == [
        ("Qwen2.5-VL-72B-Instruct", "Original"),
        ("", "Bag of words"),
        ("", "Δ"),
        ("InternVL3-14B-hf", "Original"),
        ("", "Bag of words"),
        ("", "Δ"),
    ]
    published = [line.values["ref_adv"].published for line in table.lines]
    assert published == [0.583, 0.415, -0.168, 0.523, 0.386, -0.137]
    (table4,) = paper.build("table4", sweep, OPERATORS)
    assert [line.values["refcoco_val_unc"].published for line in table4.lines[:3]] == [0.927, 0.88, -0.047]
    assert any("in the paper by Qwen2.5-72B" in note for note in table4.notes), (
        "other texts are named as such"
    )
    assert not any("in the paper by" in note for note in table.notes)
    delta = table.lines[2].values["ref_adv"]
    assert delta.estimate == sweep.comparisons[3].deltas["acc50"].delta
    assert delta.within is (delta.estimate.low <= -0.168 <= delta.estimate.high)


def test_table_2_measures_the_fixed_prompt_against_ref_adv(sweep):
    (table,) = paper.build("table2", sweep, OPERATORS)
    fixed, gain = table.lines[0], table.lines[1]
    assert fixed.values["ref_adv"].published == 0.214
    assert gain.values["refcoco_val_unc"].published == 0.137
    values = {data: fixed.values[data].estimate.value for data in ("refcoco_val_unc", "ref_adv")}
    assert gain.values["refcoco_val_unc"].estimate.value == values["refcoco_val_unc"] - values["ref_adv"]


def test_table_7_is_of_ref_adv_with_macc_and_table_1_counts_the_examples(sweep):
    (table,) = paper.build("table7", sweep, OPERATORS)
    assert table.label_titles == ("Model", "CoT", "SoM")
    assert [c.key for c in table.columns][:4] == ["acc50", "acc75", "acc90", "macc"]
    assert table.lines[0].labels == ("InternVL-3-14B", "✓", "–")  # in the paper's order
    assert table.lines[0].values["macc"].published == 0.356
    (first,) = paper.build("table1", sweep, OPERATORS)
    refcoco = by_label(first)["RefCOCO",]
    assert refcoco.values["images"] == Fact("40", "3000")
    assert refcoco.values["negation_percent"].text == "20.00"


def test_splits_are_pooled_for_the_published_column():
    cells = []
    for seed, data in enumerate(("refcoco_val_unc", "refcoco_testA_unc", "ref_adv")):
        both = [
            *records(30 + 10 * seed, seed=seed),
            *records(30 + 10 * seed, seed=9 + seed, condition="bow", hit=0.4),
        ]
        cells.append(from_records(both, "InternVL3-14B-hf", data, "cot"))
    found = study(cells, n_boot=0)
    (table,) = paper.build("table3", found, OPERATORS)
    assert [c.title for c in table.columns] == [
        "refcoco_val_unc",
        "refcoco_testA_unc",
        "RefCOCO, all",
        "Ref-Adv",
    ]
    delta = table.lines[2].values
    assert [delta[c.key].published for c in table.columns] == [None, None, -0.073, -0.137]
    parts = [delta[c.key].estimate for c in table.columns]
    assert parts[2].n == parts[0].n + parts[1].n == 70
    assert parts[2].value == pytest.approx((30 * parts[0].value + 40 * parts[1].value) / 70)
    assert len(found.comparisons) == 3  # the family of tests has no pooled cell


def test_a_run_without_chain_of_thought_is_not_set_beside_numbers_with_it():
    both = [*records(40, seed=1), *records(40, seed=2, condition="bow")]
    found = study([from_records(both, "InternVL3-14B-hf", "ref_adv", "direct")], n_boot=0)
    (table,) = paper.build("table3", found, OPERATORS)
    assert not any(line.has_published for line in table.lines)


def test_the_tables_that_apply_are_found_and_a_rehearsal_fills_any(sweep):
    assert paper.automatic(sweep, OPERATORS) == ["table1", "table2", "table3", "table4", "table7"]
    found = study([from_records(list(records(20)), "listener", "shapes", "direct")])
    assert paper.automatic(found, OPERATORS) == ["table1", "table6"]
    assert len(paper.build("table7", found, OPERATORS)) == 1
    assert paper.build("table3", found, OPERATORS) == []


def test_comparisons_alone_fill_the_tables_of_differences(sweep):
    alone = within([], sweep.comparisons)
    for name in ("table2", "table3", "table4"):
        ours, theirs = paper.build(name, alone, OPERATORS)[0], paper.build(name, sweep, OPERATORS)[0]
        assert [line.values for line in ours.lines] == [line.values for line in theirs.lines]
    assert paper.build("table1", alone, OPERATORS) == []


# ── parts against the whole ─────────────────────────────────────────────────────────────────────


def test_a_part_against_the_whole_agrees_with_a_bootstrap_over_images():
    arm = Arm(records(400, seed=3))
    rows = np.asarray(arm.columns().attributes("distractors")) >= 6
    estimate_ = to_overall(arm, lambda columns: columns.attributes("distractors") >= 6)
    hits = np.nan_to_num(arm.columns().iou) >= 0.5
    assert estimate_.value == pytest.approx(hits[rows].mean() - hits.mean())
    images = np.unique(arm.columns().image, return_inverse=True)[1]
    rng, drawn = np.random.default_rng(0), []
    for _ in range(2000):
        weight = np.bincount(rng.integers(0, images.max() + 1, images.max() + 1), minlength=images.max() + 1)[
            images
        ]
        part = (weight * hits * rows).sum() / (weight * rows).sum()
        drawn.append(part - (weight * hits).sum() / weight.sum())
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (estimate_.low, estimate_.high) == pytest.approx((low, high), abs=0.012)


def test_parts_that_allow_no_interval_have_none():
    arm = Arm(records(20, seed=3))
    assert to_overall(arm, lambda _: np.zeros(20, bool)).value is None
    whole = to_overall(arm, lambda _: np.ones(20, bool))
    assert (whole.value, whole.low) == (0.0, None)
    assert apart(estimate(0.5), Estimate(None, None, None, 0, 0, note="no examples")).note == "no examples"
    assert apart(estimate(0.5), estimate(0.3, None, "one image")).low is None
    assert apart(estimate(0.5, 0.03), estimate(0.3, 0.04)).low == pytest.approx(0.15)


# ── ways to write one ───────────────────────────────────────────────────────────────────────────

NAMES = [*NASTY, "=HYPERLINK(1)", "Ünïcode ẞ 中文"]


@pytest.fixture(scope="module")
def nasty() -> Table:
    return results.results([comparison(model=name, original=0.5 + i / 50) for i, name in enumerate(NAMES)])


def ranked() -> Table:
    columns = (Column("x", "Acc", "group", best=True), Column("y", "Δ"))
    values = [0.52412, 0.52437, 0.3]
    lines = [
        Line((f"m{i}",), {"x": Number(estimate(v), published=0.5), "y": Number(estimate(-v), signed=True)})
        for i, v in enumerate(values)
    ]
    return Table(
        "t",
        "Title",
        ("Model",),
        columns,
        (*lines, Line(("m3",), {"x": Number(Estimate(None, None, None, 0, 0, note="no examples"))})),
    )


def test_the_best_as_far_as_it_is_shown_is_bold_and_only_in_columns_that_rank():
    text = formats.markdown(ranked())
    assert text.count("**52.4**") == 2
    assert "**30.0**" not in text
    assert "**−" not in text
    assert r"\textbf{52.4}" in formats.latex(ranked())
    assert "<b>52.4</b>" in formats.as_html(ranked())
    assert "| m3 | n/a (no examples) | – |" in text


def test_markdown_rows_stay_rows_whatever_a_name_holds(nasty):
    lines = [line for line in formats.markdown(nasty).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(NAMES)
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert "<script>" not in formats.markdown(nasty)


def test_html_escapes_every_text(nasty):
    text = formats.as_html(nasty)
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text


def test_csv_reads_back_and_runs_no_formula(nasty):
    rows = list(csv.DictReader(io.StringIO(formats.as_csv(nasty))))
    assert [row["model"].lstrip("'") for row in rows] == NAMES
    assert rows[5]["model"] == "'=HYPERLINK(1)"
    assert [float(row["original"]) for row in rows] == [0.5 + i / 50 for i in range(len(NAMES))]
    assert float(rows[0]["delta_low"]) == round(nasty.lines[0].values["delta"].estimate.low, 3)
    (first, *_) = csv.DictReader(io.StringIO(formats.as_csv(ranked())))
    assert (first["x_published"], first["x_within"]) == ("0.5", "true")
    assert float(first["x_difference"]) == 0.024


@pytest.mark.parametrize(
    ("width", "shown"),
    [(0.2, 0.123), (0.012, 0.123), (0.0046, 0.1235), (1e-9, 0.123457), (None, 0.123), (0.0, 0.123)],
)
def test_csv_rounds_to_what_the_interval_leaves_and_json_keeps_every_digit(width, shown):
    value = 0.123456789
    bounds = (None, None) if width is None else (value, value + width)
    line = Line(("m",), {"x": Number(Estimate(value, *bounds, 10, 5, ""))})
    table = Table("t", "T", ("Model",), (Column("x", "X"),), (line,))
    (row,) = csv.DictReader(io.StringIO(formats.as_csv(table)))
    assert float(row["x"]) == shown
    assert json.loads(formats.as_json(table))["lines"][0]["values"]["x"]["value"] == value


def test_json_is_standard_and_repeats_labels_for_machines(sweep):
    (table,) = paper.build("table3", sweep, OPERATORS)
    tree = json.loads(formats.as_json(table), parse_constant=lambda name: pytest.fail(name))
    assert [line["labels"]["Model"] for line in tree["lines"]][1] == "Qwen2.5-VL-72B-Instruct"
    value = tree["lines"][2]["values"]["ref_adv"]
    assert value["published"] == -0.168
    assert value["value"] - value["published"] == value["difference"]


def test_the_results_table_has_a_prompt_column_only_where_prompts_differ():
    one = results.results([comparison(), comparison(operator="fixed")])
    two = results.results([comparison(), comparison(prompt="cot")])
    assert (one.label_titles, two.label_titles) == (("Model", "Data", "Perturbation"), results.HEADS)
    assert "Prompt: direct." in one.notes


@pytest.mark.slow
def test_latex_compiles_whatever_names_hold(nasty, sweep, tmp_path):
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("no pdflatex on this machine (Debian: texlive-latex-base, texlive-latex-recommended)")
    tables = [
        nasty,
        *(
            t
            for name in ("table1", "table2", "table3", "table7")
            for t in paper.build(name, sweep, OPERATORS)
        ),
    ]
    body = "\n".join(map(formats.latex, tables))
    head = r"\documentclass{article}\usepackage[margin=1cm,landscape]{geometry}\usepackage{booktabs}"
    (tmp_path / "t.tex").write_text(rf"{head}\begin{{document}}{body}\end{{document}}", encoding="utf-8")
    done = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 10_000


@pytest.mark.slow
def test_no_table_runs_out_of_the_text(sweep, tmp_path):
    engine = shutil.which("pdflatex")
    if engine is None:
        pytest.skip("no pdflatex on this machine (Debian: texlive-latex-base, texlive-latex-recommended)")
    cells = [
        comparison(model=model, data="ref_adv_s", operator=operator)
        for model in ("Qwen2.5-VL-72B-Instruct", "InternVL3-14B")
        for operator in ("bow", "descriptor_deletion")
    ]
    found = [results.results(cells), results.metrics(cells)]
    found += [t for name in ("table2", "table3", "table7") for t in paper.build(name, sweep, OPERATORS)]
    body = "\n".join(formats.latex(table) + r"\clearpage" for table in found)
    for layout, width in (("", "5.5in"), ("twocolumn", "6.875in")):  # ICLR's page, and CVPR's
        head = rf"\documentclass[{layout}]{{article}}\usepackage[textwidth={width}]{{geometry}}"
        text = rf"{head}\usepackage{{booktabs}}\begin{{document}}{body}\end{{document}}"
        (tmp_path / "t.tex").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [engine, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:]
        wide = re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", done.stdout)
        assert not [points for points in wide if float(points) > 1], wide


def test_narrow_tables_stand_in_one_column_and_wide_ones_are_cut_between_groups():
    narrow = Table("n", "N", ("Model",), (Column("a", "A"),), (Line(("m",), {"a": Fact("1")}),))
    assert r"\begin{table}" in formats.latex(narrow)
    wide = formats.latex(results.metrics([comparison()]))
    assert r"\begin{table*}" in wide
    assert wide.count(r"\begin{tabular}") > 1
    assert wide.count("Model & Data & Perturbation") == wide.count(r"\begin{tabular}")
    for metric in ("Acc@0.5", "Acc@0.75", "mAcc"):
        assert wide.count(f"{{c}}{{{metric}}}") == 1, "a group of columns stays together"


def test_scores_without_the_expression_are_not_ranked(sweep):
    (table,) = paper.build("table2", sweep, OPERATORS)
    assert not any(column.best for column in table.columns)


def test_latex_holds_no_raw_special_outside_math_and_commands(nasty):
    text = formats.latex(nasty)
    assert "<script>" not in text
    assert r"\textbackslash{}textbf\{ball\}" in text
    assert all(ord(c) < 0x250 for c in text)


def test_accuracies_equal_those_of_the_statistics(sweep):
    (table,) = paper.build("table7", sweep, OPERATORS)
    for cell, arm in sweep.originals():
        if cell.names.data == "ref_adv":
            line = next(x for x in table.lines if x.labels[0][:4] == cell.names.model[:4])
            assert line.values["macc"].estimate == stats.accuracy(arm, "macc")


def test_every_metric_that_was_measured_is_in_a_table_under_its_own_name():
    found = comparison(deltas={name: delta(name, 0.5, 0.3) for name in ("acc50", "acc95", "dig_avg", "macc")})
    table = results.metrics([found])
    groups = [column.group for column in table.columns if column.key.startswith("original_")]
    assert groups == ["Acc@0.5", "Acc@0.95", "DiG average", "mAcc"]
    (line,) = table.lines
    assert line.values["original_dig_avg"].shown().startswith("50.0")
    assert any("DiG average: mean of" in note for note in table.notes)


def test_every_table_says_how_many_answers_its_numbers_rest_on():
    arm = Arm(
        dataclasses.replace(r, outcome="missing", predicted=None, iou=None) if i < 15 else r
        for i, r in enumerate(records(60))
    )
    assert cautions.answered(arm) == "45 of 60"
    found = Study([Cell(Names("m", "d", "direct"), Path(), lambda: iter(()), {"original": arm})])
    (said,) = cautions.unanswered(found, "d")
    assert "15 of 60 answers never came" in said
    (table,) = paper.build("table6", found, {"table2": "", "table3": "", "table4": ""})
    for write in (formats.markdown, formats.latex, formats.as_html):
        assert "45 of 60" in write(table) and "answers never came" in write(table)


def test_the_dig_layout_has_splits_across_and_the_mean_of_three_thresholds():
    arms = {data: Arm(records(60, seed=seed)) for seed, data in enumerate(("refcoco_val", "refcoco_testA"))}
    cells = [
        Cell(Names("m", data, "direct"), Path(), lambda: iter(()), {"original": a})
        for data, a in arms.items()
    ]
    (table,) = paper.build("dig", Study(cells), OPERATORS)
    assert {column.group for column in table.columns} == set(arms)
    (line,) = table.lines
    for data in arms:
        three = [line.values[f"{data}/acc{t}"].estimate.value for t in (50, 75, 95)]
        assert line.values[f"{data}/dig_avg"].estimate.value == pytest.approx(np.mean(three))


def test_a_long_table_is_shortened_on_a_page_and_says_where_the_rest_is():
    lines = tuple(Line((f"m{i}",), {}) for i in range(70))
    table = Table("contrasts_model", "t", ("Model",), (), lines, notes=("note",))
    short = table.shortened(60)
    assert len(short.lines) == 60 and short.notes == (
        "note", "The first 60 of 70 lines; all are in tables/contrasts_model.csv."
    )  # fmt: skip
    assert table.shortened(70) is table
