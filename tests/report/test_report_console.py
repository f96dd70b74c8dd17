import io
from dataclasses import replace

from rich.console import Console

from refadv_ablate.report.console import accuracies, basis, console
from refadv_ablate.report.tables.table import Column, Fact, Line, Table
from refadv_ablate.types import Delta, Estimate
from tests.report.making import comparison, estimate


def shown(*args, width=80, **more) -> str:
    screen = Console(width=width, record=True, file=io.StringIO())
    screen.print(console(*args, **more))
    return screen.export_text()


def test_a_cell_says_everything_that_its_numbers_rest_on():
    text = shown([comparison()], width=120)
    for part in (
        "listener on shapes, prompt direct",
        "58.3 → 41.5",
        "−16.8 [−20.8, −12.8]",
        "<0.001",
        "98 of 100 examples paired (98%) on 49 images",
        "right→wrong 20, wrong→right 6",
        "no box 2 / 1",
        "no answer 2 / 2",
        "mid-p from sign flips",
    ):
        assert part in text, part


def test_it_fits_a_terminal_of_80_characters_with_nothing_cut():
    cells = [comparison(operator=name) for name in ("bow", "fixed", "descriptor_deletion")]
    text = shown(cells)
    assert "…" not in text
    assert text.count("−16.8 [−20.8, −12.8]") == 3


def test_what_is_not_there_says_why():
    none = Estimate(None, None, None, 0, 0, note="no examples answered in both conditions")
    missing = replace(comparison(), deltas={"acc50": Delta("acc50", none, none, none)}, paired=0)
    one = Delta("acc50", estimate(1.0), estimate(0.0), estimate(-1.0, None, "one image: no interval"))
    text = shown([missing, replace(comparison(), deltas={"acc50": one})], width=120)
    assert "n/a → n/a" in text
    assert "n/a (no examples answered in both" in text
    assert "−100.0 [n/a] (one image)" in text


def test_warnings_name_their_cell_and_failures_their_reason_without_markup():
    cells = [comparison(warnings=("the [red]frame[/red] is contradicted",)), comparison(operator="fixed")]
    text = shown(cells, [("a · b", "the server [bold] said no")], width=120)
    assert "listener · shapes · direct · bow: the [red]frame[/red] is contradicted" in text
    assert "1 of 3 cells failed:" in text
    assert "the server [bold] said no" in text
    assert shown([], []).strip() == ""


def test_many_failures_of_one_reason_are_read_whole_at_any_width():
    cells = [
        f"a-model-with-a-very-long-name · some-data · direct · bow, draw {i}, seed {i}" for i in range(3)
    ]
    text = " ".join(shown([], [(cell, "failed: " + "no weights " * 12) for cell in cells], width=60).split())
    assert all(cell in text for cell in cells)
    assert text.count("failed: no weights") == 1 and text.count("no weights") == 12


def test_cut_answers_and_further_turns_are_told_where_there_are_any():
    cell = replace(
        comparison(),
        counts={"original": {"box": 9, "truncated": 3}, "perturbed": {"box": 12, "retried": 4}},
    )
    text = shown([cell], width=200)
    assert "cut off by the token limit 3 / 0" in text
    assert "asked once more for the box 0 / 4" in text
    assert "asked once more" not in shown([comparison()], width=200)


def test_what_published_rows_rest_on_and_that_there_are_none():
    columns, line = (Column("acc50", "Acc@0.5"),), Line(("me",), {"acc50": Fact("52.4")})
    screen = Console(width=120, record=True, file=io.StringIO())
    screen.print(accuracies(Table("table6", "Table 6", ("Model",), columns, (line,))))
    screen.print(basis("me, ref_adv_s", {"answers": 1142, "box": 1136, "unparsable": 6}, 614))
    text = screen.export_text()
    assert "names.model=…" in text and "✓" not in text
    assert "me, ref_adv_s: 1,142 examples on 614 images, no box 6, no answer 0" in text
