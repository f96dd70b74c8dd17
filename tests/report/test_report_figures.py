"""Figures hold what they should, in both formats, the same bytes each time."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.figures.curves import FEWEST, hardness_figure, points_of, threshold_figure
from refadv_ablate.report.figures.delta import delta_figure, flip_figure, model_forest
from refadv_ablate.report.figures.inline_svg import inline
from refadv_ablate.report.figures.style import HATCHES, MARKERS, PALETTE
from refadv_ablate.types import Delta, Estimate
from tests.report.making import NASTY, comparison, estimate, records


@pytest.fixture(scope="module")
def arms():
    return {"original": Arm(records(120)), "bow": Arm(records(120, seed=1, condition="bow", hit=0.4))}


def cells():
    none = Estimate(None, None, None, 0, 0, note="no examples")
    odd = {"acc50": Delta("acc50", estimate(1.0), estimate(1.0), estimate(0.0, None, "no discordant pairs"))}
    return [
        comparison(),
        comparison(operator="fixed", perturbed=0.1),
        replace(comparison(model="b", operator="bow"), deltas=odd),
        replace(
            comparison(model="b", operator="fixed"),
            deltas={"acc50": Delta("acc50", none, none, none)},
            paired=0,
        ),
    ]


def drawn(kind: str, stem: Path, arms: dict[str, Arm]) -> list[Path]:
    by_comparison = {"delta": delta_figure, "models": model_forest, "flips": flip_figure}
    if kind in by_comparison:
        return by_comparison[kind](cells(), stem)
    return {"hardness": hardness_figure, "thresholds": threshold_figure}[kind](arms, stem)


@pytest.mark.parametrize("kind", ["delta", "models", "flips", "hardness", "thresholds"])
def test_each_figure_is_an_svg_a_png_and_a_pdf_for_a_paper_and_reproducible(tmp_path, arms, kind):
    first = drawn(kind, tmp_path / "a" / kind, arms)
    again = drawn(kind, tmp_path / "b" / kind, arms)
    assert [p.suffix for p in first] == [".svg", ".png", ".pdf"]
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", first[2].read_bytes())
    assert box is not None and round(float(box[1]) / 72, 1) in (3.3, 6.9)
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]
    ElementTree.parse(first[0])
    with Image.open(first[1]) as picture:
        pixels = np.asarray(picture.convert("L"))
    assert pixels.shape[1] > 500
    assert 0.005 < (pixels < 128).mean() < 0.5


@pytest.mark.parametrize("draw", [delta_figure, model_forest, flip_figure])
def test_nothing_to_plot_is_said_in_the_plot(tmp_path, draw):
    assert all(path.stat().st_size > 500 for path in draw([], tmp_path / "x"))
    assert all(path.stat().st_size > 500 for path in hardness_figure({}, tmp_path / "y"))
    assert all(path.stat().st_size > 500 for path in threshold_figure({}, tmp_path / "z"))


@pytest.mark.parametrize("name", [*NASTY[:1], NASTY[3], "a" * 200, "$x_1$ and $"])
def test_any_printable_name_can_be_a_label(tmp_path, name):
    assert delta_figure([comparison(model=name, data=name, operator=name)], tmp_path / "x")


def test_series_differ_by_more_than_colour_and_colours_differ_in_grey():
    assert len(set(MARKERS)) == len(PALETTE) == len(set(HATCHES))
    greys = [
        0.2126 * int(c[1:3], 16) + 0.7152 * int(c[3:5], 16) + 0.0722 * int(c[5:7], 16) for c in PALETTE[:2]
    ]
    assert abs(greys[0] - greys[1]) > 15


def test_points_cover_all_examples_and_hold_enough_of_them(arms):
    for attribute, limits in (("distractors", (0, 2, 3, 4, 5, 6, 7, 8)), ("length", (1, 4, 7, 10))):
        points = points_of(arms["original"], attribute, limits)
        assert sum(p.estimate.n for p in points) == 120
        assert all(p.estimate.n >= FEWEST for p in points)
    assert points_of(arms["original"], "nothing", (0,)) == []
    few = Arm(records(3))
    assert [p.estimate.n for p in points_of(few, "distractors", (0, 2, 3, 4))] == [3]


def test_an_inlined_figure_shares_no_id_with_another(tmp_path, arms):
    svg = drawn("delta", tmp_path / "d", arms)[0].read_text(encoding="utf-8")
    a, b = inline(svg, "a-", 'x "quoted" <b>'), inline(svg, "b-", "y")
    found = [set(ElementTree.fromstring(text).iter()) for text in (a, b)]
    ids = [{e.get("id") for e in tree if e.get("id")} for tree in found]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert "<?xml" not in a
    assert "&lt;b&gt;" in a
