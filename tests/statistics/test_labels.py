"""What tells results of one name apart, everywhere alike; and which tests count as one family."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from rich.console import Console

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.console import console
from refadv_ablate.report.loading.sources import Cell, Names
from refadv_ablate.report.loading.study import Study, study
from refadv_ablate.report.pages.in_short import clause
from refadv_ablate.report.tables import paper, results
from refadv_ablate.statistics import labels
from refadv_ablate.statistics.formatting import cell_name, warnings_of
from refadv_ablate.tracking import metrics
from refadv_ablate.types import Comparison
from tests.report.making import comparison, records


def cell(planned: int = 100, operator: str = "bow", **settings: object) -> Comparison:
    made = comparison(operator=operator, warnings=("Mind this.",))
    deltas = {name: dataclasses.replace(delta, p_holm=None) for name, delta in made.deltas.items()}
    details = {"settings": {key.replace("__", "."): value for key, value in settings.items()}}
    return dataclasses.replace(made, planned=planned, deltas=deltas, details=details)


def test_only_what_differs_is_named():
    seeds = [cell(seed=s, limit=None) for s in (0, 1, 2)]
    assert [c.variant for c in labels.labelled(seeds)] == ["seed 0", "seed 1", "seed 2"]
    assert [c.variant for c in labels.labelled([cell(seed=0), cell(operator="fixed", seed=1)])] == ["", ""]
    both = [cell(perturb__bow__n_shuffles=n, data__n=d) for n in (1, 2) for d in (8, 16)]
    assert [c.variant for c in labels.labelled(both)][:2] == ["n_shuffles 1, n 8", "n_shuffles 1, n 16"]
    sizes = [
        cell(model__size="7B", model__checkpoint="x-7B"),
        cell(model__size="32B", model__checkpoint="x-32B"),
    ]
    assert [c.variant for c in labels.labelled(sizes)] == ["size 7B", "size 32B"]
    assert [c.variant for c in labels.labelled([cell(a__n=1, b__n=1), cell(a__n=2, b__n=2)])] == [
        "a.n 1, b.n 1", "a.n 2, b.n 2"
    ]  # fmt: skip


def test_results_that_no_setting_tells_apart_are_numbered():
    assert [c.variant for c in labels.labelled([cell(), cell(), cell()])] == ["no. 1", "no. 2", "no. 3"]


def test_a_swept_setting_is_named_everywhere():
    cells = labels.labelled([cell(seed=s) for s in (0, 1)])
    screen = Console(width=140, record=True, quiet=False)
    with screen.capture() as captured:
        screen.print(console(cells))
    texts = [
        captured.get(),
        " ".join(map(clause, cells)),
        " ".join(str(line.labels) for line in results.results(cells).lines),
        " ".join(map(cell_name, cells)),
        metrics.markdown(cells, []),
    ]
    for text in texts:
        assert "bow (seed 0)" in text and "bow (seed 1)" in text
    assert len(set(metrics.labels(cells))) == 2
    assert all("seed" in label for label in metrics.labels(cells))
    one = [dataclasses.replace(cells[0], warnings=()), cells[1]]
    assert warnings_of(one)[0][0].endswith("bow (seed 1)")


def test_a_part_of_a_fuller_result_is_told_apart_and_is_no_test_of_its_own():
    found = labels.declared([cell(30, limit=30, seed=0), cell(60, limit=60, seed=0), cell(operator="fixed")])
    assert [c.variant for c in found] == ["limit 30", "limit 60", ""]
    assert found[0].deltas["acc50"].p_holm is None
    assert found[1].deltas["acc50"].p_holm == 2 * found[1].deltas["acc50"].p
    assert any("not counted among the tests" in said for said in found[0].warnings)


def test_a_config_becomes_dotted_settings_without_long_texts():
    tree = {"data": {"_target_": "x", "n": 8, "tags": ["a", "b"]}, "seed": 0, "prompt": {"text": "t" * 300}}
    assert labels.flat(tree) == {"data.n": 8, "data.tags": "a,b", "seed": 0}


def test_paper_tables_have_a_line_for_each_setting():
    arms = {seed: Arm(records(40, seed=seed)) for seed in (0, 1)}
    cells = [
        Cell(
            Names("m-7B", "d", "direct"), Path(), lambda: iter(()), {"original": arm}, variant=f"seed {seed}"
        )
        for seed, arm in arms.items()
    ]
    for name in ("table6", "table7", "dig"):
        (table,) = paper.build(name, Study(cells), {"table2": "", "table3": "", "table4": ""})
        shown = " ".join(" ".join(line.labels) for line in table.lines)
        assert "(seed 0)" in shown and "(seed 1)" in shown, name
    alone = results.parts_alone([(cell, cell.arms["original"]) for cell in cells], ())
    assert {line.labels[2] for line in alone.lines} == {"direct · seed 0", "direct · seed 1"}


def test_table_3_keeps_every_setting():
    def cell_of(seed: int) -> Cell:
        made = {"original": Arm(records(40)), "bow": Arm(records(40, seed=seed, condition="bow"))}
        return Cell(
            Names("m", "d", "direct"), Path(str(seed)), lambda: iter(()), made, 40,
            details={"settings": {"seed": seed}},
        )  # fmt: skip

    found = study([cell_of(1), cell_of(2)], metrics=("acc50",), n_boot=0)
    (table,) = paper.build("table3", found, {"table2": "", "table3": "bow", "table4": ""})
    assert [line.labels[0] for line in table.lines if line.labels[0]] == [
        "m (direct · seed 1)", "m (direct · seed 2)"
    ]  # fmt: skip
