"""The first sentences of a page: the strongest first, each with its examples, none beyond its interval."""

from __future__ import annotations

import dataclasses

from refadv_ablate.report.loading.contrasting import Family
from refadv_ablate.report.pages.in_short import MOST_CLAUSES, in_short, sentence
from refadv_ablate.statistics.contrasts import Contrast
from refadv_ablate.statistics.formatting import cell_name
from refadv_ablate.types import Comparison, Estimate
from tests.report.making import comparison, delta


def cell(change: float, name: str = "m", **more: object) -> Comparison:
    made = delta("acc50", 0.8, 0.8 + change, **more)
    return dataclasses.replace(
        comparison(model=name, deltas={"acc50": made}), details={"hash": f"{name:0<8}ff"}
    )


def difference(value: float, half: float = 0.02, p: float = 0.001) -> Contrast:
    change = Estimate(value, value - half, value + half, 100, 50)
    side = Estimate(-0.1, -0.2, -0.05, 100, 50)
    return Contrast("a", "b", "delta", True, side, side, change, p, p, "shapes · direct · bow")


def test_the_strongest_come_first_and_link_their_examples():
    weak, strong = cell(-0.1, "weak"), cell(-0.5, "strong")
    found = in_short([weak, strong], [], {cell_name(strong): "s/gallery.html"})
    assert found[0].text == "strong on shapes: loses 50.0 of 80.0 points under bow (Δ −50.0 [−54.0, −46.0])."
    assert found[1].text.startswith("weak on shapes: loses 10.0 of 80.0 points")
    assert [each.links for each in found] == [(("bow", "s/gallery.html"),), ()]


def test_one_sentence_a_model_tells_its_perturbations_and_what_is_exactly_unchanged():
    none = dataclasses.replace(
        delta("acc50", 0.4, 0.4, right_to_wrong=0.0, wrong_to_right=0.0),
        delta=Estimate(0.0, None, None, 9, 9),
    )
    control = [comparison("deaf", operator="bow", deltas={"acc50": none})]
    both = [dataclasses.replace(cell(-0.3, "m"), operator=name) for name in ("bow", "fixed")]
    texts = [each.text for each in in_short([*control, *both], [], {})]
    assert len(texts) == 2
    assert texts[0].count("loses 30.0 of 80.0 points under") == 2
    assert texts[1] == "deaf on shapes: exactly unchanged under bow (no discordant pairs)."


def test_of_many_models_each_perturbation_has_its_range_and_only_the_strongest_are_told():
    cells = [cell(-0.1 - k / 50, f"m{k}") for k in range(9)] + [cell(0.01, "still", p=0.5, p_holm=0.5)]
    found = in_short(cells, [], {})
    assert found[0].text.startswith("Of 10 cells accuracy falls in 9, rises in 0; in 1 no change")
    assert found[1].text == (
        "bow, 10 results: Δ from −26.0 (m8 on shapes) to +1.0 (still on shapes); accuracy falls in 9; "
        "no change can be told from chance in 1."
    )
    told = [each.text.partition(" on ")[0] for each in found[2:]]
    assert told == [f"m{k}" for k in (8, 7, 6, 5)[:MOST_CLAUSES]]


def test_a_difference_is_said_as_far_as_its_interval_goes():
    assert "b loses less than a" in sentence(difference(0.2))
    assert "b loses more than a" in sentence(difference(-0.2))
    assert "can't be told from 0" in sentence(difference(0.01))
    assert "can't be told from 0" in sentence(difference(0.2, p=0.2))
    families = [
        Family("model", [difference(0.1), difference(-0.4)], {}),
        Family("prompt", [difference(0.9)], {}),
    ]
    texts = [each.text for each in in_short([], families, {})]
    assert len(texts) == 2 and "loses more" in texts[0]
