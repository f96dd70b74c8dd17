"""One page a sweep, comparisons of two runs, and the command itself."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from refadv_ablate.boxes import Box
from refadv_ablate.commands.report import run
from refadv_ablate.errors import UserError
from refadv_ablate.report import compare
from refadv_ablate.report.loading.runs import from_log
from refadv_ablate.report.loading.sources import Names, from_files
from refadv_ablate.report.loading.study import study
from refadv_ablate.report.pages import sweep_page
from refadv_ablate.report.pages.in_short import clause, counted
from refadv_ablate.report.pages.report_page import Content, html_page
from refadv_ablate.storage.records import write_records
from tests.report.making import NASTY, comparison, delta, records


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Two models × three perturbations × two data sets, as a sweep leaves them."""
    root = tmp_path_factory.mktemp("results")
    for model in ("alpha", "beta"):
        for data in ("shapes", "ref_adv_s"):
            for label in ("bow", "fixed", "descriptor_deletion"):
                folder = root / "cells" / f"{model}--{data}--{label}"
                seed = len(model) + len(data) + len(label)
                both = [*records(60, seed=seed), *records(60, seed=seed + 1, condition=label, hit=0.4)]
                write_records(folder / "predictions.jsonl", both)
                names = {"model": model, "data": data, "prompt": "direct", "operator": label, "planned": 60}
                (folder / "summary.json").write_text(
                    json.dumps({**names, "warnings": [f"heard <b>{label}</b>"]})
                )
    return root


def test_a_sweep_becomes_one_page_in_html_and_markdown(results, tmp_path):
    cells = from_files([results])
    found = study(cells, slices=("distractors",), n_boot=200)
    meta = {
        "title": "sweep <&> one",
        "command": "python -m refadv_ablate -m model=alpha,beta",
        "versions": '{"python": "3.11"}',
        "seed": 0,
        "empty": None,
    }
    pages = sweep_page.write(
        tmp_path, found.comparisons, [("alpha · x", "no <answer>")], meta, [c.path.parent for c in cells]
    )
    html, markdown = (page.read_text(encoding="utf-8") for page in pages)
    for text in (
        "python -m refadv_ablate -m model=alpha,beta",
        "python 3.11",
        "Of 12 cells accuracy falls in",
        "alpha · x",
    ):
        assert text in html, text
        assert text.replace("_", r"\_") in markdown or text in markdown, text
    assert html.count("<svg") >= 5
    assert "<script" not in html
    assert "no &lt;answer&gt;" in html
    assert "heard &lt;b&gt;bow&lt;/b&gt;" in html
    assert "<b>bow" not in markdown
    assert not re.search(r'(?:src|href)="https?:', html.replace('xlink="http://www.w3.org/1999/xlink"', ""))
    for name in re.findall(r"\]\((figures/[^)]+)\)", markdown):
        assert (tmp_path / name).is_file()
    written = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {
        "results.csv",
        "results.tex",
        "results.md",
        "results.json",
        "results.html",
        "table6.tex",
    } <= written
    assert len(json.loads((tmp_path / "comparisons.json").read_text())["comparisons"]) == 12


def test_a_page_without_cells_has_the_differences_only(tmp_path):
    pages = sweep_page.write(tmp_path, [comparison()], (), {"title": "t"})
    assert "Original against perturbed" in pages[0].read_text(encoding="utf-8")
    assert not (tmp_path / "tables" / "table1.csv").exists()
    nameless = sweep_page.write(tmp_path / "b", [comparison(operator="bow"), comparison(operator="fixed")])
    assert nameless[1].read_text(encoding="utf-8").startswith("# listener on shapes: bow, fixed\n")
    empty = sweep_page.write(tmp_path / "none", [], [("a", "why")], {})
    assert "Failed: 1" in empty[0].read_text(encoding="utf-8")


def test_a_warning_of_several_cells_is_said_once_and_of_one_without_its_name(tmp_path):
    many = [comparison(operator=name, warnings=("few images",)) for name in ("bow", "fixed")]
    html, markdown = (p.read_text(encoding="utf-8") for p in sweep_page.write(tmp_path / "a", many))
    assert html.count("few images") == markdown.count("few images") == 1
    assert "both cells" in html
    html, markdown = (p.read_text(encoding="utf-8") for p in sweep_page.write(tmp_path / "b", many[:1]))
    assert "<li>few images</li>" in html
    assert "- few images" in markdown


def test_a_headline_is_no_surer_than_the_test():
    lost = comparison()
    unsure = comparison(deltas={"acc50": delta("acc50", 0.5, 0.45, p=0.03, p_holm=0.06)})
    better = comparison(deltas={"acc50": delta("acc50", 0.3, 0.5)})
    assert clause(lost) == "loses 16.8 of 58.3 points under bow (Δ −16.8 [−20.8, −12.8])"
    assert "undecided under bow: interval and test disagree (Δ −5.0" in clause(unsure)
    assert "p 0.060" in clause(unsure)
    assert clause(better).startswith("gains 20.0 points under bow (Δ +20.0")
    assert (
        counted([lost] * 5 + [unsure] * 2)
        == "Of 7 cells accuracy falls in 5, rises in 0; in 2 interval and test disagree."
    )


@pytest.mark.parametrize("text", NASTY)
def test_every_text_of_a_page_is_escaped(text):
    cell = comparison(model=text, data=text, operator=text, warnings=(text,))
    meta = {"command": text, text: text}
    html = html_page(Content(text, [cell], [], [], [(text, text)], [(text, text)], meta, {text: text}))
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("<html") == 1


# ── comparing ───────────────────────────────────────────────────────────────────────────────────


def test_two_models_are_paired_on_the_same_examples(results, tmp_path):
    cells = from_files([results])
    a = [c for c in cells if c.names.model == "alpha"]
    b = [c for c in cells if c.names.model == "beta"]
    matched = compare.match(a, b, seed=0, n_boot=200)
    assert len(matched) == 8  # two data sets × (original, three perturbations)
    first = next(m for m in matched if m.condition == "bow")
    left = {r.example_id: r.iou for r in first.a.records() if r.condition == "bow"}
    right = {r.example_id: r.iou for r in first.b.records() if r.condition == "bow"}
    wanted = sum((right[i] >= 0.5) - (left[i] >= 0.5) for i in left) / len(left)
    assert first.comparison.deltas["acc50"].delta.value == pytest.approx(wanted)
    assert first.comparison.model == "alpha → beta"
    pages = compare.write(tmp_path, matched[:2], most=10)
    html = pages[0].read_text(encoding="utf-8")
    assert "alpha against beta" in html
    assert "By kind of example" in html
    assert 'href="gallery.html"' in html
    assert "beta − alpha" in (tmp_path / "tables" / "results.md").read_text(encoding="utf-8")
    assert (tmp_path / "gallery_2.html").is_file()


def test_fewer_answers_are_told_and_other_data_refused(results, tmp_path):
    write_records(
        tmp_path / "c" / "predictions.jsonl", [*records(60, seed=9), *records(50, seed=77, condition="bow")]
    )
    (other,) = from_files([tmp_path / "c"], Names(model="gamma", data="shapes", prompt="direct"))
    a = [c for c in from_files([results]) if c.names.data == "shapes" and "bow" in c.arms]
    (bow,) = [m for m in compare.match(a[:1], [other], seed=0, n_boot=0) if m.condition == "bow"]
    said = " ".join(bow.comparison.warnings)
    assert "a has 60 answers, b 50: only common examples are compared" in said
    (elsewhere,) = from_files([tmp_path / "c"], Names(model="gamma", data="other", prompt="direct"))
    with pytest.raises(UserError, match="no example in common"):
        compare.match(a, [elsewhere], seed=0, n_boot=0)


KNOWN = {"image_digest": "aaaa", "image_key": "kitchen/1.png"}
OTHER_EXAMPLES = [
    ({"target": Box(1, 2, 3, 4)}, "target box"),
    ({"image_digest": "bbbb"}, "image"),
    ({"image_digest": "", "image_key": "street/1.png"}, "image"),
    ({"image_digest": "", "size": (161, 120)}, "image"),
    ({"original_expression": "another"}, "expression"),
    ({"expression": "another"}, "perturbed text"),
]


def cell_of(folder, *found):
    write_records(folder / "predictions.jsonl", list(found))
    (cell,) = from_files([folder], Names(model=folder.name, data="same", prompt="direct"))
    return cell


@pytest.mark.parametrize(("changes", "what"), OTHER_EXAMPLES)
def test_examples_that_share_an_id_and_nothing_else_are_refused(tmp_path, changes, what):
    first = [replace(r, **KNOWN) for r in records(4)]
    a = cell_of(tmp_path / "a", *first)
    b = cell_of(tmp_path / "b", *first[:3], replace(first[3], **changes))
    with pytest.raises(UserError, match=rf"1 of 4 with the same id .* another {what}\)"):
        compare.match([a], [b], seed=0, n_boot=0)


SAME_EXAMPLES = [
    {"image_key": "elsewhere/7.png"},  # the content is the same
    {"image_digest": "", "image_key": "1.png"},
    {"image_digest": "", "image_key": "data/kitchen/1.png", "size": (0, 0)},
    {"image_digest": "", "image_key": "row case00003", "size": (0, 0)},  # published without file names
]


@pytest.mark.parametrize("changes", SAME_EXAMPLES)
def test_the_same_example_under_another_name_is_compared(tmp_path, changes):
    first = [replace(r, **KNOWN) for r in records(4)]
    a = cell_of(tmp_path / "a", *first)
    b = cell_of(tmp_path / "b", *first[:3], replace(first[3], **changes))
    (found,) = compare.match([a], [b], seed=0, n_boot=0)
    assert found.comparison.paired == 4


# ── the command ─────────────────────────────────────────────────────────────────────────────────


def config(**own: object):
    from omegaconf import OmegaConf

    from refadv_ablate import assets

    composed = assets.compose([])
    OmegaConf.set_struct(composed, False)
    defaults = OmegaConf.load(assets.asset_dir("conf") / "command" / "report.yaml")
    composed["report"] = OmegaConf.merge(defaults, own)
    return composed


def test_the_command_writes_tables_figures_and_pages(results, tmp_path, capsys):
    own = {
        "path": str(results / "cells" / "alpha--ref_adv_s--*"),
        "to": str(tmp_path / "out"),
        "resamples": 200,
        "formats": ["csv"],
        "gallery": 5,
    }
    assert run(config(**own)) == 0
    said = capsys.readouterr().out
    assert "alpha on ref_adv_s, prompt direct" in said
    assert "Table 6: Ref-Adv-s" in said
    assert said.splitlines()[-2:] == [f"{tmp_path}/out/report.html", f"{tmp_path}/out/report.md"]
    assert {p.suffix for p in (tmp_path / "out" / "tables").iterdir()} == {".csv"}
    assert len(list((tmp_path / "out" / "galleries").glob("*/gallery.html"))) == 3


def test_originals_alone_have_accuracies_by_kind_of_example(tmp_path, capsys):
    write_records(tmp_path / "mine" / "predictions.jsonl", records(60, seed=1))
    asked = config(path=str(tmp_path / "mine"), to=str(tmp_path / "out"), formats=["markdown"], resamples=50)
    asked["metrics"] = ["acc50", "acc95", "dig_avg", "macc"]
    run(asked)
    text = (tmp_path / "out" / "tables" / "parts.md").read_text(encoding="utf-8")
    assert "| Acc@0.5 | Acc@0.95 | DiG average | mAcc |" in text and "| all |" in text
    assert "DiG average: mean of Acc@0.5, 0.75 and 0.95" in text
    assert "by kind of example" in text and "distractors 2–3 |" in text and "negation yes |" in text
    counted = [int(row.split("|")[-3]) for row in text.splitlines() if "| negation " in row]
    assert sum(counted) == 60


def test_the_published_check_through_the_command(shared, tmp_path, capsys):
    path = shared / "data" / "ref_adv_s_predictions.tsv"
    names = {"model": "Qwen2.5-VL-72B-Instruct", "prompt": "cot"}
    run(config(path=str(path), to=str(tmp_path), names=names, tables=[6], formats=["markdown"]))
    text = (tmp_path / "tables" / "table6.md").read_text(encoding="utf-8")
    for value in (
        "52.4 [",
        "39.0 [",
        "18.3 [",
        "56.9 [",
        "47.9 [",
        "38.8 [",
        "*52.4 (0.0 ✓)*",
        "*38.8 (0.0 ✓)*",
    ):
        assert value in text
    assert "52.4 ✓" in capsys.readouterr().out


def test_comparing_by_command(results, tmp_path, capsys):
    sides = {
        side: str(results / "cells" / f"{model}--shapes--bow")
        for side, model in (("a", "alpha"), ("b", "beta"))
    }
    run(config(action="compare", **sides, to=str(tmp_path), resamples=200))
    assert "Δ = b − a" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"source": "fils"}, "source"),
        ({"formats": ["pdf"]}, "report.formats has no 'pdf'"),
        ({"tables": [5]}, "report.tables=5"),
        ({"action": "compare", "a": "x"}, "needs two sides"),
        ({"action": "compare", "a": "x", "b": "y", "source": "store"}, "takes source=files or source=mlflow"),
        ({"path": "nowhere"}, "no such file or folder: nowhere"),
    ],
)
def test_mistakes_are_one_sentence(own, said):
    with pytest.raises(UserError, match=said):
        run(config(**own))


class _Log:
    """What an MLflow client answers, for a sweep with two cells of which one has predictions."""

    def __init__(self, cells: Path) -> None:
        self.folders = {"r1": next(iter(sorted(cells.iterdir())))}

    def get_experiment_by_name(self, name):
        from types import SimpleNamespace as Space

        return Space(experiment_id="1") if name == "refadv-ablate" else None

    def get_run(self, run_id):
        from types import SimpleNamespace as Space

        if run_id == "gone":
            raise ValueError("Run 'gone' not found")
        return Space(info=Space(experiment_id="1", run_id=run_id), data=Space(tags={}))

    def search_runs(self, experiments, filter_string="", **more):
        if not filter_string:
            return [self.get_run("sweep")]
        return [self.get_run(name) for name in ("r2", "r1")] if "'sweep'" in filter_string else []

    def list_artifacts(self, run_id):
        from types import SimpleNamespace as Space

        folder = self.folders.get(run_id)
        return [Space(path=path.name) for path in folder.iterdir()] if folder else []

    def download_artifacts(self, run_id, name, folder):
        import shutil

        return shutil.copy(self.folders[run_id] / name, folder)


def test_logged_runs_are_fetched_from_the_newest_sweep(results, tmp_path):
    from types import SimpleNamespace as Space

    tracker = Space(client=_Log(results / "cells"), experiment="refadv-ablate")
    (cell,) = from_log(tracker, [], tmp_path / "a")
    assert (cell.names.model, cell.operators) == ("alpha", ["bow"])
    assert [c.names.data for c in from_log(tracker, ["r1"], tmp_path / "b")] == ["ref_adv_s"]
    for wrong, said in ((["gone"], "the log has no run 'gone'"), (["r2"], "have logged no predictions")):
        with pytest.raises(UserError, match=said):
            from_log(tracker, wrong, tmp_path / "c")
    with pytest.raises(UserError, match="no experiment 'else'"):
        from_log(Space(client=tracker.client, experiment="else"), [], tmp_path / "d")
    with pytest.raises(UserError, match="tracking=none keeps no runs"):
        from_log(Space(), [], tmp_path / "e")


def test_the_store_alone_gives_the_numbers_of_the_run(tmp_path, monkeypatch, capsys):
    from refadv_ablate.cli import main

    monkeypatch.chdir(tmp_path)
    words = ["perturb=bow", "limit=8", "tracking=none", "gallery=0"]
    assert main([*words, "progress=off"]) == 0
    assert main(["report", "source=store", *words, "to=from_store", "resamples=200"]) == 0
    assert main(["report", "path=results", "to=from_files", "resamples=200"]) == 0
    tables = [
        (tmp_path / folder / "tables" / "results.csv").read_text() for folder in ("from_store", "from_files")
    ]
    assert tables[0] == tables[1]
    capsys.readouterr()
    assert main(["report", "source=store", *words, "seed=7", "data.seed=99", "to=x"]) == 2
    assert "has no answers of listener to" in capsys.readouterr().err
