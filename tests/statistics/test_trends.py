"""Slopes against a regression with clustered covariance; reports on a part of the examples."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from refadv_ablate.errors import UserError
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.loading.restricting import restricted
from refadv_ablate.report.loading.rows import Row
from refadv_ablate.report.loading.sources import Cell, Names
from refadv_ablate.statistics import inference, trends
from refadv_ablate.types import ORIGINAL, Record
from tests.statistics.test_estimates import lost, record


def test_a_slope_is_that_of_a_regression_with_clustered_covariance():
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    image = np.repeat(np.arange(500), rng.integers(1, 4, 500))
    along = rng.integers(2, 12, len(image)).astype(float)
    values = np.clip(-0.03 * along + 0.3 * rng.normal(size=500)[image] + rng.normal(size=len(image)), -1, 1)
    fit = sm.OLS(values, sm.add_constant(along)).fit(cov_type="cluster", cov_kwds={"groups": image})
    found, p = trends.slope(values, along, image.astype(np.uint64))
    assert found.value == pytest.approx(fit.params[1])
    error = (found.high - found.low) / 2 / inference.t_quantile(found.df)
    assert error == pytest.approx(fit.bse[1], rel=0.01)
    assert p == pytest.approx(fit.pvalues[1], rel=0.15)


def test_a_fall_that_grows_with_the_distractors_is_found_and_unknown_numbers_are_left_out():
    rng = np.random.default_rng(1)
    counts = rng.integers(2, 12, 400)
    before = [record(k, True, distractors=int(c) if k else None) for k, c in enumerate(counts)]
    after = [dataclasses.replace(r, predicted=record(0, rng.random() > c / 12).predicted)
             for r, c in zip(before, counts, strict=True)]  # fmt: skip
    details = trends.noted(Arm(before), Arm(after))["trend_distractors"]
    assert details["low"] < -1 / 12 < details["high"] < 0 and details["p"] < 1e-6
    assert trends.noted(Arm([record(1, True)]), Arm([record(1, True)])) == {}


def cell(name: str, perturbed: list[Record]) -> Cell:
    rows = [dataclasses.replace(record(k, True), condition=ORIGINAL) for k in range(10)] + perturbed
    return Cell(Names(name, "d", "direct"), Path(name), lambda: (Row(r) for r in rows)).load()


def test_a_report_can_stand_on_changed_texts_or_on_what_all_have_in_common():
    one = cell("a", [record(k, k > 4, status="unchanged" if k > 7 else "changed") for k in range(10)])
    two = cell("b", [lost(k) if k < 3 else record(k, True) for k in range(10)])
    changed = restricted([one, two], "changed")
    assert [len(c.arms["bow"]) for c in changed] == [8, 10]
    common = restricted([one, two], "common")
    assert [[len(arm) for arm in c.arms.values()] for c in common] == [[7, 7], [7, 7]]
    assert restricted([one, two], "all") == [one, two]
    nothing = cell("c", [lost(k) for k in range(10)])
    with pytest.raises(UserError, match="no example is left"):
        restricted([one, nothing], "common")
