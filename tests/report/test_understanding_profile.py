"""The profile: which score stands for an operator, what it says in words, and the floor beside it."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from refadv_ablate.report.console import console
from refadv_ablate.report.figures.profile import profile_figure
from refadv_ablate.report.loading.study import Study, _bare
from refadv_ablate.report.pages.in_short import in_short
from refadv_ablate.report.pages.sweep_page import draw
from refadv_ablate.report.profile_console import profile_console
from refadv_ablate.report.tables.profile import parts_table, profile_table
from refadv_ablate.report.tables.results import metrics, results
from refadv_ablate.statistics import profile
from refadv_ablate.statistics.comparison import holm
from refadv_ablate.types import Comparison, Delta, Estimate, Score


def estimate(value: float, n: int = 40) -> Estimate:
    return Estimate(value, value - 0.05, value + 0.05, n, 20, "cluster t")


def cell(operator: str, *scores: Score, **details) -> Comparison:
    return Comparison(
        "m", "shapes", "direct", operator, 40, 40, 20, {}, {}, {}, scores=scores, details=details
    )


NOTHING = Estimate(None, None, None, 0, 0, note="no example that it is defined for")
REPEAT = cell("repeat", Score("consistent", "drop", estimate(0.9)), keeps_text=True, noise_floor=True)
TURNED = cell(
    "turned",
    Score("pair", "directional", NOTHING),
    Score("sticks", "directional", estimate(0.7)),
    Score("consistent", "invariant", estimate(0.8)),
    Score("delta", "invariant", estimate(-0.1)),
    Score("consistent", "invariant", estimate(0.6), "jpeg-3"),
    does="when the relation is reversed",
    not_applicable={"no side": 3, "legible": 2},
)
NONE = cell(
    "gone",
    Score("youden", "reject", estimate(0.4)),
    Score("rejects", "reject", estimate(0.5)),
    Score("false_rejects", "reject", estimate(0.1)),
    Score("prior", "reject", estimate(0.2)),
)


def test_the_first_score_that_was_measured_stands_for_an_expectation() -> None:
    found = profile.findings([REPEAT, TURNED, NONE])
    assert [(f.comparison.operator, f.expectation, f.headline.name) for f in found] == [
        ("turned", "directional", "sticks"),
        ("turned", "invariant", "consistent"),
        ("gone", "reject", "youden"),
    ]
    assert {round(f.floor or 0, 3) for f in found} == {0.1}, "1 − consistency of the repeated request"
    assert found[0].not_asked == 5
    assert profile.findings([replace(TURNED, model="other"), REPEAT])[0].floor is None


def test_a_fall_is_not_told_of_questions_that_nothing_matches() -> None:
    assert profile.on_old_place(NONE)
    assert not profile.on_old_place(TURNED) and not profile.on_old_place(cell("bow"))
    unknown = cell("counterfactual", Score("sticks", "directional", estimate(0.7)))
    assert profile.on_old_place(unknown), "another object is meant, and nobody knows its box"
    told = cell("counterfactual", Score("pair", "directional", estimate(0.7)))
    assert not profile.on_old_place(told)


def test_the_main_table_says_that_the_old_place_was_meant() -> None:
    change = Delta("acc50", estimate(0.9), estimate(0.2), estimate(-0.7), p=0.01)
    gone = replace(NONE, deltas={"acc50": change})
    line = results([gone]).lines[0]
    assert line.labels[-1] == "gone (on the old place)" and profile.OLD_PLACE in results([gone]).notes
    out = Console(width=110, record=True)
    out.print(console([gone]))
    shown = out.export_text()
    assert "on the old place" in shown and "−70.0" not in shown


def test_sentences_say_what_was_done_and_what_came_of_it() -> None:
    turned, same, gone = profile.findings([TURNED, NONE])
    assert (
        turned.sentence == "70.0% of its right answers stay on the old object when the relation is reversed."
    )
    assert "80.0% of its answers" in same.sentence and "−10.0 points" in same.sentence
    assert gone.sentence.startswith(
        "It rejects 50.0% of the questions under gone, and 10.0% of the originals"
    )


def test_table_page_and_figure_show_every_row_and_nothing_without_a_profile(tmp_path) -> None:
    table = profile_table([REPEAT, TURNED, NONE])
    assert [line.labels[1:] for line in table.lines] == [
        ("turned", "directional"),
        ("turned", "invariant"),
        ("gone", "reject"),
    ]
    assert [line.labels[1] for line in parts_table([TURNED]).lines] == ["jpeg-3"]
    text_alone = cell("bow", Score("hit", "drop", estimate(0.5)))
    assert not profile_table([text_alone]).lines and not parts_table([text_alone]).lines
    out = Console(width=110, record=True)
    out.print(profile_console([REPEAT, TURNED, NONE]))
    shown = out.export_text()
    assert "stays on the old object" in shown and "+40.0 [35.0, 45.0]" in shown and "10.0" in shown
    for path in profile_figure([TURNED, NONE, replace(NONE, model="other")], tmp_path / "understanding"):
        assert path.stat().st_size > 1000


CHANGE = {"acc50": Delta("acc50", estimate(0.9), estimate(0.2), estimate(-0.7), p=0.01)}


def test_what_has_no_accuracy_to_lose_is_no_part_of_delta_figures_and_of_holm(tmp_path) -> None:
    bow, gone = replace(cell("bow"), deltas=CHANGE), replace(NONE, deltas=CHANGE)
    adjusted = holm([bow, gone])
    assert adjusted[0].deltas["acc50"].p_holm == 0.01, "one test was made"
    assert adjusted[1].deltas["acc50"].p_holm is None
    assert [line.labels[-1] for line in metrics([bow, gone]).lines] == ["bow"]
    assert any("Left out: gone." in note for note in metrics([bow, gone]).notes)
    assert not profile.left_out([bow])
    drawn = draw(Study([], [(_bare(c), c) for c in (bow, gone)]), tmp_path)
    captions = {picture.path.stem: picture.caption for picture in drawn}
    assert "understanding" in captions and "Left out: gone." in captions["delta"]
    row = results([gone]).lines[0]
    assert {key: str(row.values[key].text) for key in ("delta", "p_holm")} == {"delta": "—", "p_holm": "—"}


def test_a_page_begins_with_the_score_of_what_has_no_accuracy_to_lose() -> None:
    (said,) = in_short([replace(NONE, deltas=CHANGE)], [], {})
    assert said.text.startswith("m on shapes under gone: Youden's J +40.0 [35.0, 45.0]. It rejects 50.0%")
    many = [replace(NONE, model=f"m{k}", deltas=CHANGE) for k in range(9)]
    assert in_short(many, [], {})[0].text.startswith("gone, 9 results: Youden's J from +40.0 (m0 on shapes)")


def test_a_delta_that_holds_questions_without_an_answer_says_so() -> None:
    counts = {"perturbed": {"answers": 30, "box": 28, "missing": 2, "old_place": 7}}
    assert "7 of 28 perturbed answers" in profile.partly_on_old_place(replace(TURNED, counts=counts))
    assert not profile.partly_on_old_place(TURNED)
    every = {"perturbed": {"answers": 30, "box": 28, "missing": 2, "old_place": 28}}
    assert profile.on_old_place(replace(TURNED, counts=every))
