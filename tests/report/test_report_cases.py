"""Cases picked by rule: what is picked, the same each time, and pages that bear any text."""

import re
from dataclasses import replace

import pytest

from refadv_ablate.errors import UserError
from refadv_ablate.report import cases
from refadv_ablate.report.loading.sources import Cell, Names
from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.pages import case_page
from refadv_ablate.report.pages.case_page import Group
from refadv_ablate.report.pages.gallery import FLIPS, flip
from tests.report.making import comparison, records
from tests.report.test_report_gallery import noisy


def pairs(n=80):
    return list(zip(records(n), records(n, seed=1, condition="bow", hit=0.4), strict=True))


def test_each_kind_and_bin_has_its_count_and_at_most_so_many_cases():
    picked = cases.pick(pairs(), "m · d · bow", each=2)
    assert {(p.kind, p.bin) for p in picked} <= {(k, b) for k in ("rw", "wr") for b in ("2–3", "4–6", "7+")}
    assert [p.kind for p in picked] == sorted(p.kind for p in picked)
    for one in picked:
        low, high = {"2–3": (2, 3), "4–6": (4, 6), "7+": (7, 99)}[one.bin]
        wanted = [
            (o, p) for o, p in pairs() if flip(o, p) == one.kind and low <= (o.distractors or 0) <= high
        ]
        assert one.total == len(wanted)
        assert len(one.pairs) == min(2, len(wanted))
        assert all(pair in wanted for pair in one.pairs)


def test_the_order_of_records_changes_nothing_and_the_seed_does():
    first = cases.pick(pairs(), "cell", each=1, seed=0)
    assert cases.pick(pairs()[::-1], "cell", each=1, seed=0) == first
    others = [cases.pick(pairs(), "cell", each=1, seed=seed) for seed in range(1, 6)]
    assert any(other != first for other in others)
    assert all(
        [(o.kind, o.bin, o.total) for o in other] == [(f.kind, f.bin, f.total) for f in first]
        for other in others
    )


def test_an_example_of_several_draws_counts_once_and_unknown_distractors_have_their_bin():
    original, perturbed = next(pair for pair in pairs() if flip(*pair) == "rw")
    original = replace(original, distractors=None)
    (one,) = cases.pick([(original, perturbed), (original, replace(perturbed, draw=1))], "cell", each=3)
    assert (one.total, one.bin, len(one.pairs)) == (1, "unknown", 1)
    assert one.pairs[0][1].draw == 0
    assert cases.pick([(original, replace(perturbed, placebo=True))], "cell") == []


@pytest.fixture
def study(monkeypatch):
    def read():
        for original, perturbed in pairs():
            yield original
            yield perturbed

    cell = Cell(Names("m <b>", "shapes", "direct"), cases.Path("x"), lambda: iter(()))
    monkeypatch.setattr(Cell, "records", lambda _own: read())
    monkeypatch.setattr(cases, "images_of", lambda _cell: lambda example: noisy(example, (160, 120), 1))
    return Study([cell], [(cell, comparison("m <b>", "shapes", "bow"))])


def test_page_and_latex_bear_any_text(study, tmp_path):
    page, table = cases.write(tmp_path, study, each=2, seed=0, command="report cases <x>")
    html, tex = page.read_text(encoding="utf-8"), table.read_text(encoding="utf-8")
    assert "<script" not in html and "<img src=x" not in html and "m &lt;b&gt;" in html
    assert html.count("<article") == tex.count("includegraphics") - 0
    for name in re.findall(r"includegraphics\[[^]]*\]\{([^}]*)\}", tex):
        assert (tmp_path / name).is_file()
    assert "nobody chose them" in html and "nobody chose them" in tex
    assert "right → wrong, 2–3 distractors: 2 of " in html
    body = tex.split("endhead")[1]
    assert not re.search(r"(?<!\\)[#%]|(?<!\\)_", re.sub(r"\{cases_images/[^}]*\}", "", body))
    # a second call leaves no image of the first behind
    cases.write(tmp_path, study, each=1, seed=0, command="")
    assert len(list((tmp_path / "cases_images").iterdir())) == len(
        re.findall("includegraphics\\[", (tmp_path / "cases.tex").read_text(encoding="utf-8"))
    )


def test_an_answer_on_another_image_is_told_and_not_drawn(study):
    original, perturbed = next(pair for pair in pairs() if flip(*pair) == "rw")
    changed = replace(perturbed, picture={"edits": []})
    shown = Group("c", "mirror", FLIPS["rw"], "2–3", 1, [case_page.Case(original, changed)])
    html = case_page.page([shown], 1, 0, "")
    assert html.count('<rect class="b perturbed"') == 0
    assert html.count('<rect class="b original"') == 1
    assert "(no image)" in case_page.latex([shown], 1, 0)


def test_no_flip_is_one_sentence(study, monkeypatch, tmp_path):
    monkeypatch.setattr(Cell, "records", lambda _own: (r for pair in pairs() for r in (pair[0],)))
    with pytest.raises(UserError, match="no answer of these results flipped"):
        cases.write(tmp_path, study, each=1, seed=0, command="")
