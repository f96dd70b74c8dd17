"""Where answers land, by hand; and the flow between conditions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from refadv_ablate.boxes import Box
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.parsing.landing import by_chance, landing
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.figures.flows import flow_figure
from refadv_ablate.report.tables.landings import landing_table
from refadv_ablate.statistics.landings import flow
from refadv_ablate.types import Candidate
from tests.report.making import comparison
from tests.statistics.test_estimates import record

TARGET = Box(100, 100, 200, 200)
CANDIDATES = (
    Candidate(TARGET, "dog"),
    Candidate(Box(300, 100, 400, 200), "dog"),
    Candidate(Box(300, 300, 400, 400), "cat"),
)


@pytest.mark.parametrize(
    ("box", "kind"),
    [
        (None, "no box"),
        (TARGET, "referent"),
        (Box(100, 100, 200, 140), "loosely"),
        (Box(305, 100, 400, 200), "same category"),
        (Box(305, 300, 400, 400), "another object"),
        (Box(0, 0, 640, 479), "whole image"),
        (Box(500, 10, 540, 40), "elsewhere"),
    ],
)
def test_an_answer_lands_on_one_of_seven(box, kind):
    assert landing(box, TARGET, CANDIDATES, "dog", (640, 480)) == kind


@pytest.mark.parametrize(
    ("box", "kind"),
    [
        (Box(100, 100, 200, 150), "referent"),  # IoU 0.5 exactly
        (Box(100, 100, 110, 200), "loosely"),  # 0.1 exactly
        (Box(300, 100, 350, 200), "same category"),  # 0.5 of the candidate exactly
        (Box(0, 0, 640, 456), "whole image"),  # 95% of 640 × 480 exactly
        (Box(0, 0, 640, 455), "elsewhere"),
    ],
)
def test_limits_belong_to_the_better_kind(box, kind):
    assert landing(box, TARGET, CANDIDATES, "dog", (640, 480)) == kind


def test_without_candidates_or_size_a_miss_is_loose_or_elsewhere():
    assert landing(Box(300, 100, 400, 200), TARGET) == "elsewhere"
    assert landing(Box(100, 100, 200, 140), TARGET) == "loosely"
    assert landing(Box(0, 0, 640, 480), TARGET, size=(0, 480)) == "elsewhere"


def test_chance_adds_up_where_several_candidates_are_alike():
    example = next(iter(Shapes(n=1)))
    three = (*CANDIDATES, Candidate(Box(300, 500, 400, 600), "dog"))
    shares = by_chance(dataclasses.replace(example, target=TARGET, candidates=three, category="dog"))
    assert shares["same category"] == pytest.approx(2 / 4)


def test_a_box_that_fits_two_objects_is_of_the_referent_if_it_hits_it():
    near = Candidate(Box(110, 100, 210, 200), "dog")
    assert landing(Box(105, 100, 205, 200), TARGET, (CANDIDATES[0], near), "dog") == "referent"


def test_pointing_at_any_candidate_lands_as_often_as_there_are_such():
    example = next(iter(Shapes(n=1)))
    made = dataclasses.replace(example, target=TARGET, candidates=CANDIDATES, category="dog")
    shares = by_chance(made)
    assert (shares["referent"], shares["same category"], shares["another object"]) == pytest.approx(
        (1 / 3,) * 3
    )
    assert by_chance(dataclasses.replace(made, candidates=())) is None


def test_the_flow_counts_every_paired_example_once(tmp_path):
    before = [record(k, True, k // 2, landed="referent") for k in range(40)]
    after = [
        record(
            k,
            False,
            k // 2,
            draw=d,
            landed=("same category", "elsewhere")[(k + d) % 2] if k % 4 else "referent",
        )
        for k in range(40)
        for d in range(2)
    ]
    found = flow(Arm(before), Arm(after))
    assert found.moved.sum() == pytest.approx(40)
    by_kind = {share.kind: share for share in found.shares}
    assert by_kind["referent"].perturbed.value == pytest.approx(0.25)
    assert by_kind["same category"].change.value == pytest.approx(0.375)
    assert found.of_misses("same category") == (None, pytest.approx(0.5))
    assert np.sum([share.perturbed.value for share in found.shares]) == pytest.approx(1)
    svg, *_ = flow_figure(found, tmp_path / "flow", "m · d · bow")
    assert "same category 37.5%" in svg.read_text(encoding="utf-8")
    table = landing_table([(comparison(), found)])
    assert [line.labels[1] for line in table.lines] == list(found.kinds)


def test_without_a_landing_there_is_no_flow():
    arm = Arm(record(k, True) for k in range(4))
    assert flow(arm, arm) is None
