"""The first sentences of a page: the strongest first, each with its examples, none beyond its interval."""

from __future__ import annotations

import dataclasses

from refadv_ablate.report.loading.contrasting import Family
from refadv_ablate.report.pages.in_short import MOST_STRONG, in_short, sentence
from refadv_ablate.statistics.contrasts import Contrast
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
    found = in_short(
        [cell(-0.1, "weak"), cell(-0.5, "strong")], [], [("strong--d-strong00", "s/gallery.html")]
    )
    assert [each.text.partition(" on ")[0] for each in found] == ["bow, strong", "bow, weak"]
    assert [each.link for each in found] == ["s/gallery.html", ""]


def test_of_many_the_counts_come_first_and_only_the_strongest_are_told():
    cells = [cell(-0.1 - k / 50, f"m{k}") for k in range(9)] + [cell(0.01, "still", p=0.5, p_holm=0.5)]
    found = in_short(cells, [], [])
    assert found[0].text.startswith("Of 10 cells accuracy falls in 9, rises in 0; in 1 no change")
    assert [each.text.partition(" on ")[0] for each in found[1:]] == [
        f"bow, m{k}" for k in (8, 7, 6, 5)[:MOST_STRONG]
    ]


def test_a_difference_is_said_as_far_as_its_interval_goes():
    assert "b loses less than a" in sentence(difference(0.2))
    assert "b loses more than a" in sentence(difference(-0.2))
    assert "can't be told from 0" in sentence(difference(0.01))
    assert "can't be told from 0" in sentence(difference(0.2, p=0.2))
    families = [
        Family("model", [difference(0.1), difference(-0.4)], {}),
        Family("prompt", [difference(0.9)], {}),
    ]
    texts = [each.text for each in in_short([], families, [])]
    assert len(texts) == 2 and "loses more" in texts[0]
