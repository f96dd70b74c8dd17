"""Statistics of data sets: the published numbers from the real rows, and each count on its own."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from omegaconf import OmegaConf
from PIL import Image

from refadv_ablate import assets
from refadv_ablate.boxes import Box
from refadv_ablate.commands import stats as dataset_stats
from refadv_ablate.data.images import AbsentImage
from refadv_ablate.errors import UserError
from refadv_ablate.report.figures.data_sets import FIGURES, cumulative, ranked, shares
from refadv_ablate.statistics import inference
from refadv_ablate.statistics.data_sets import SetStats, compared, estimated, mean, measure, words
from refadv_ablate.types import Example
from tests.data.scenes import Scenes


def example(expression: str, image: str = "a", box: Box | None = None, **more: object) -> Example:
    number = f"{image}{expression}{box}{more}"
    return Example(number, AbsentImage(image), expression, box or Box(0, 0, 30, 40), **more)  # type: ignore[arg-type]


def config(**command: object) -> object:
    return OmegaConf.merge(assets.compose(["+command=stats"]), {"command": command})


class Rows(list[Example]):
    name = "rows"

    @property
    def excluded(self) -> dict[str, int]:
        return {"empty_expression": 3}

    def fingerprint(self) -> dict[str, object]:
        return {}


def test_the_real_rows_give_the_published_numbers(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared / "data" / "ref_adv_s_predictions.tsv"
    assert dataset_stats.run(config(sets=[{"data": "ref_adv_s", "path": str(path)}])) == 0
    printed = dict(_lines(capsys.readouterr().out))
    assert printed["images"] == "614"
    assert printed["expressions"] == "1,142"
    assert printed["mean length (words)"] == "11.7"
    assert printed["mean distractors"] == "3.84"
    assert printed["flagged as negation"] == "40.0%"
    assert printed["human-authored"] == "421 of 1,142"
    precision, recall = printed["rule: precision / recall"].replace("%", "").split(" / ")
    assert float(precision) >= 98
    assert float(recall) >= 98


def _lines(out: str) -> list[tuple[str, str]]:
    measured = out.split("Published")[0]
    rows = [line.strip().split("  ", 1) for line in measured.splitlines()]
    return [(row[0], row[1].strip()) for row in rows if len(row) == 2]


def test_published_rows_stand_below() -> None:
    printed = "\n".join(
        _rendered(dataset_stats.tables([measure("rows", [Rows()])], dataset_stats.published()))
    )
    assert "Published (Ref-Adv, Table 1)" in printed
    for number in ("2,833", "5,000", "11.5", "4.01", "21.25%", "30–607", "5,308", "3.36%"):
        assert number in printed


def _rendered(tables: list[object]) -> list[str]:
    from rich.console import Console

    out = io.StringIO()
    for table in tables:
        Console(width=100, file=out).print(table)
    return out.getvalue().splitlines()


def test_each_number_is_counted_as_documented() -> None:
    left = Box(0, 0, 30, 40)
    rows = Rows(
        [
            example(
                "The left-hand man isn't sitting .", "a", left, distractors=2, negation=True, category="man"
            ),
            example("the man", "a", left, distractors=4, negation=False, category="man"),
            example("a Man!", "b", Box(0, 0, 100, 25), category="cup", attributes={"human_authored": True}),
        ]
    )
    stats = measure("rows", [rows])
    numbers = stats.summary()
    assert numbers["images"] == 2
    assert numbers["expressions"] == 3
    assert numbers["instances"] == 2
    assert numbers["mean_words"] == pytest.approx((5 + 2 + 2) / 3)
    assert (numbers["mean_distractors"], numbers["distractors_known"]) == (3, 2)
    assert numbers["negation_flagged"] == 0.5
    assert numbers["negation_by_rule"] == pytest.approx(1 / 3)
    assert numbers["size_range"] == pytest.approx([math.sqrt(1200), 50])
    assert stats.vocabulary == {"the", "left", "hand", "man", "is", "n't", "sitting", "a"}
    assert (numbers["categories"], numbers["human_authored"]) == (2, 1)
    assert numbers["excluded"] == {"empty_expression": 3}
    assert json.dumps(numbers)


def test_what_is_unknown_is_shown_as_unknown() -> None:
    numbers = measure("rows", [Rows([example("the man")])]).summary()
    for key in ("mean_distractors", "negation_flagged", "human_authored", "rule_recall"):
        assert numbers[key] is None
    assert "–" in "\n".join(_rendered(dataset_stats.tables([measure("rows", [Rows()])], [])))


def test_words_are_what_white_space_separates() -> None:
    assert words("the left-hand man, isn't  it ? -") == ["the", "left-hand", "man,", "isn't", "it"]
    assert mean(Counter()) is None


def test_several_splits_make_one_row() -> None:
    both = measure("both", [Rows([example("a man", "a")]), Rows([example("a cat", "b")])])
    assert (both.expressions, len(both.images), both.excluded) == (2, 2, {"empty_expression": 6})


def test_several_sets_and_splits_from_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenes = Scenes(tmp_path).draw()
    entry = {"data": "refcoco", "path": str(scenes.unc()), "image_root": str(scenes.images)}
    sets = [
        {**entry, "split": ["val", "testA"], "label": "both"},
        {**entry, "split": "testA"},
    ]
    assert dataset_stats.run(config(sets=sets, published=False, to=str(tmp_path / "out"))) == 0
    out = capsys.readouterr().out
    assert "both" in out
    assert "refcoco_testA_unc" in out
    summary = json.loads((tmp_path / "out" / "stats.json").read_text())["sets"]
    assert [(one["name"], one["expressions"]) for one in summary] == [("both", 5), ("refcoco_testA_unc", 1)]
    for figure in FIGURES:
        assert (tmp_path / "out" / f"{figure.stem}.svg").read_text().startswith("<?xml")
        with Image.open(tmp_path / "out" / f"{figure.stem}.png") as image:
            assert min(image.size) > 400


def test_figures_of_a_set_that_lacks_what_they_need_say_so(tmp_path: Path) -> None:
    from refadv_ablate.report.figures import data_sets

    paths = data_sets.write([measure("rows", [Rows([example("a man")])])], tmp_path)
    assert "no set here has" in (tmp_path / "categories.svg").read_text()
    assert len(paths) == 12


def spread(name: str, images: str, lengths: list[int], **more: object) -> SetStats:
    rows = Rows(
        [example(" ".join(["word"] * n), image, **more) for image, n in zip(images, lengths, strict=True)]
    )
    return measure(name, [rows])


def test_means_have_an_interval_by_image_and_differences_too() -> None:
    a = spread("a", "iijjkl", [3, 5, 4, 4, 9, 2])
    b = spread("b", "mnopqr", [8, 7, 9, 8, 7, 12], negation=True)
    found = estimated(a, "words")
    assert found is not None and found.value is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(27 / 6)
    assert (found.n, found.images) == (6, 4)
    # leaving each image out: 19/4, 19/4, 18/5, 25/5; the error by hand
    out = [19 / 4, 19 / 4, 18 / 5, 25 / 5]
    error = math.sqrt(3 / 4 * sum((x - 27 / 6) ** 2 for x in out))
    assert (found.high - found.low) / 2 / error == pytest.approx(
        inference.t_quantile(36 / (4 + 4 + 1 + 1) - 1), rel=0.02
    )
    ((name, each),) = compared([a, b])
    assert (name, each.a, each.b, each.paired) == ("words", "a", "b", False)
    assert each.difference.value == pytest.approx(51 / 6 - 27 / 6)
    assert estimated(a, "negation") is None


def test_two_names_of_one_set_differ_by_nothing() -> None:
    twice = [spread(name, "iijjkl", [3, 5, 4, 4, 9, 2]) for name in "ab"]
    ((_, each),) = compared(twice)
    assert each.difference.value == 0


def test_one_page_has_tables_figures_and_escaped_names(tmp_path: Path) -> None:
    from refadv_ablate.report import data_sets

    sets = [
        spread("RefCOCO <val>", "ijkl", [3, 4, 5, 4], distractors=3, negation=False, category="cup"),
        spread("b", "mnop", [9, 8, 7, 9], distractors=5, negation=True, category="dog"),
    ]
    paths = data_sets.write(sets, tmp_path, "python -m refadv_ablate stats <x>")
    page = (tmp_path / "statistics.html").read_text(encoding="utf-8")
    assert paths[0].name == "statistics.html" and all(path.is_file() for path in paths)
    assert page.count("<svg") == 4 and "<script" not in page and "RefCOCO &lt;val&gt;" in page
    assert "7,596" in page or "7596" in page  # the published row stands below RefCOCO's
    assert "Differences between data sets" in page
    assert (tmp_path / "tables" / "differences.tex").is_file()
    data_sets.write(sets[:1], tmp_path / "one")
    assert not (tmp_path / "one" / "tables" / "differences.md").exists()


def test_figure_points() -> None:
    assert [list(part) for part in shares(Counter([2, 2, 4]))] == [[2, 3, 4], [2 / 3, 0, 1 / 3]]
    assert [list(part) for part in cumulative([3.0, 5.0])] == [[3, 5], [0.5, 1]]
    assert [list(part) for part in ranked(Counter("aab"))] == [[1, 2], [2, 1]]


def test_the_report_lists_bad_rows_and_its_status_says_whether_a_run_would_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenes = Scenes(tmp_path).draw()
    entry = {"data": "refcoco", "path": str(scenes.unc()), "image_root": str(scenes.images)}
    assert dataset_stats.run(config(sets=[entry], check=True)) == 0
    scenes.refs[0] = (1, 11, "val", ["  "])
    scenes.unc()
    assert dataset_stats.run(config(sets=[entry], check=True)) == 1
    out = capsys.readouterr().out
    assert "empty_expression: 1 (stops a run)" in out
    assert "data.exclude=[empty_expression]" in out


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ([{"data": "refcoc"}], "did you mean 'refcoco'"),
        ([{"data": "refcoco", "pth": "x"}], "no key 'pth'; did you mean 'path'"),
        ([{"path": "x"}], "names no data set"),
    ],
)
def test_mistakes_in_sets_are_a_sentence(sets: list[dict[str, str]], said: str) -> None:
    with pytest.raises(UserError, match=said):
        dataset_stats.run(config(sets=sets))


def test_statistics_import_no_torch(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from refadv_ablate.commands import stats\n"
        "from refadv_ablate.data.negation import tokenised\n"
        "from refadv_ablate.statistics.data_sets import measure\n"
        "with stats.spacy_without_torch():\n"
        "    measure('none', [])\n"
        "    list(tokenised(['a']))\n"
        "assert 'spacy' in sys.modules and 'torch' not in sys.modules, 'torch was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
