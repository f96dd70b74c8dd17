"""Δ by what was taken away, against the comparison of those examples alone."""

from __future__ import annotations

import numpy as np
import pytest

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.statistics.word_kinds import by_kind
from tests.statistics.test_estimates import compare, record


def test_each_kind_is_the_comparison_of_its_examples_and_holm_is_over_the_kinds():
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(0)
    kinds = rng.choice(["attribute", "relation", "negated"], 300, p=[0.5, 0.35, 0.15])
    before = [record(k, rng.random() < 0.9, k // 2) for k in range(300)]
    lost = {"attribute": 0.2, "relation": 0.6, "negated": 0.9}
    after = [
        record(k, rng.random() > lost[kind], k // 2, trace={"kind": str(kind)})
        for k, kind in enumerate(kinds)
    ]
    found = by_kind(Arm(before), Arm(after))
    assert [kind.name for kind in found] == ["attribute", "relation", "negated"]
    for kind in found:
        rows = [k for k in range(300) if kinds[k] == kind.name]
        alone = compare([before[k] for k in rows], [after[k] for k in rows]).deltas["acc50"].delta
        assert (kind.delta.value, kind.delta.low, kind.delta.n) == pytest.approx(
            (alone.value, alone.low, len(rows))
        )
    expected = multipletests([kind.p for kind in found], method="holm")[1]
    assert [kind.p_holm for kind in found] == pytest.approx(list(expected))


def test_draws_that_lost_other_kinds_count_where_they_belong_and_few_images_have_no_p():
    before = [record(k, True) for k in range(8)]
    after = [record(k, d > 0, draw=d, trace={"kind": ("a", "b")[d]}) for k in range(8) for d in range(2)]
    found = {kind.name: kind for kind in by_kind(Arm(before), Arm(after))}
    assert (found["a"].delta.value, found["b"].delta.value, found["a"].p) == (-1, 0, None)
    assert by_kind(Arm(before), Arm(before)) == []


def test_a_text_counts_for_each_kind_of_word_that_was_displaced():
    kinds = [["attribute"], ["attribute", "relation"], [], ["relation"]] * 10
    before = [record(k, True) for k in range(40)]
    after = [
        record(k, "relation" not in each, trace={"order": [1, 0], "displaced": each})
        for k, each in enumerate(kinds)
    ]
    found = {kind.name: kind for kind in by_kind(Arm(before), Arm(after))}
    assert set(found) == {"attribute, displaced", "relation, displaced"}
    assert (found["attribute, displaced"].delta.value, found["attribute, displaced"].delta.n) == (-0.5, 20)
    assert (found["relation, displaced"].delta.value, found["relation, displaced"].delta.n) == (-1, 20)
    assert all(kind.p_holm is not None for kind in found.values())


def test_what_was_changed_into_something_else_was_not_removed():
    """`kind` of a counterfactual or absent question says what was changed: its words are all still there."""
    before = [record(k, True) for k in range(40)]
    for expectation in ("directional", "reject", "invariant"):
        told = {"trace": {"kind": "attribute"}, "expectation": expectation}
        after = [record(k, False, **told) for k in range(40)]
        assert by_kind(Arm(before), Arm(after)) == []
