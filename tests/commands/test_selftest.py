"""The instrument that tests itself must also be able to fail."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from omegaconf import OmegaConf

from perturbations import BagOfWords, Fixed, Identity
from refadv_ablate import assets
from refadv_ablate.boxes import Box
from refadv_ablate.commands import selftest, understanding_controls
from refadv_ablate.commands.selftest import Check, Subject
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.models import controls
from refadv_ablate.parsing.dialects import PlainBoxes
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.prompting import prompts
from refadv_ablate.statistics import calibration
from refadv_ablate.statistics.simulation import Design, correlations, experiments
from refadv_ablate.types import Estimate, Example, ModelSpec, Score

SPEC = ModelSpec("control", "c", PlainBoxes(), OriginalPixels(), {"direct": "control/expression.txt"})
OPERATORS = {"identity": Identity(), "bow": BagOfWords(n_shuffles=2), "fixed": Fixed()}


@pytest.fixture(scope="module")
def data() -> selftest.Held:
    return selftest.Held.of(Shapes(n=60))


def checks(data, model, **expected: str | float) -> dict[str, Check]:
    subject = Subject("m", SPEC, prompts.Style("direct"), model, expected)
    return {check.what: check for check in selftest.selftest([subject], OPERATORS, data, 0)}


class FirstWord(controls.Control):
    """A broken bag listener: the first word counts."""

    def box(self, example: Example) -> Box:
        first = controls.words(example.expression)[0]
        return example.candidates[len(first) % len(example.candidates)].box


class LuckyChance(controls.RandomCandidate):
    """Claims another chance level than it has."""

    def chance(self, example: Example, metric_name: str = "acc50") -> float:
        return 0.9


def test_the_oracle_and_the_bag_listener_pass(data):
    assert all(check.passed for check in checks(data, controls.Oracle(), others="zero").values())
    found = checks(data, controls.BagListener(), identity="zero", bow="zero", fixed="fall")
    assert all(check.passed for check in found.values())
    assert found["bow"].measured == "+0.0"


def test_a_listener_that_is_not_order_blind_is_caught(data):
    found = checks(data, FirstWord(), others="zero")
    assert found["identity"].passed
    assert not found["bow"].passed


def test_noise_that_depends_on_the_condition_is_caught_as_not_zero(data):
    model = controls.Noisy(inner=controls.Oracle(), p=0.2)
    assert not checks(data, model, others="zero")["identity"].passed
    assert checks(data, model, others=0.0)["identity"].passed


def test_a_known_fall_is_measured_and_another_is_not_believed(data):
    model = controls.Noisy(inner=controls.Oracle(), p=0.3, perturbed_only=True)
    assert all(check.passed for check in checks(data, model, others=-0.3).values())
    assert not any(check.passed for check in checks(data, model, others=-0.05).values())
    assert all(check.passed for check in checks(data, model, others="fall").values())
    assert not any(check.passed for check in checks(data, controls.Oracle(), others="fall").values())


def test_a_rise_fails_where_none_may_be():
    from refadv_ablate.parsing.scoring import Arm
    from refadv_ablate.statistics import comparison
    from tests.statistics.test_comparison import record

    before = Arm(record(str(i), str(i), hit=i % 2 == 0) for i in range(50))
    after = Arm(record(str(i), str(i)) for i in range(50))
    found = comparison.compare(before, after, model="m", data="d", prompt="p", operator="o", planned=50)
    assert not selftest.judge("m", "o", "no_rise", found).passed
    assert selftest.judge("m", "o", 0.5, found).passed


def test_the_analytic_chance_is_compared_with_what_is_measured(data):
    assert checks(data, controls.RandomCandidate(), others="zero")["accuracy"].passed
    assert not checks(data, LuckyChance(), others="zero")["accuracy"].passed


def test_an_expectation_that_is_missing_or_unknown_is_a_users_mistake(data):
    with pytest.raises(UserError, match="expects nothing of m under bow"):
        checks(data, controls.Oracle(), identity="zero")
    with pytest.raises(UserError, match="did you mean 'zero'"):
        checks(data, controls.Oracle(), others="zeros")


# ── calibration ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("images", [50, 200])
def test_intervals_hold_the_true_delta_and_p_is_a_false_alarm_once_in_twenty(images):
    null, fall = calibration.calibrate([images], (0.0, -0.1), 2000, seed=3)
    assert null.passed and fall.passed, (null, fall)
    assert null.naive < 0.92 and fall.naive < 0.92, "the naive interval must be seen failing"
    assert fall.false_positives is None


def test_without_clustering_the_naive_interval_is_right_too():
    alone = calibration.calibration(Design(200, per_image=1.0), 1000, seed=1)
    assert alone.naive > 0.93


@pytest.mark.parametrize("delta", [0.0, -0.15, 0.2])
def test_simulated_experiments_have_the_accuracy_and_the_dependence_they_claim(delta):
    design = Design(40_000, 3.0, 0.6, delta, within=0.4, agreement=0.5)
    run = next(experiments(design, 1, np.random.default_rng(0)))
    assert run.before.mean() == pytest.approx(0.6, abs=0.01)
    assert run.change.mean() == pytest.approx(delta, abs=0.01)
    assert len(run.image) / 40_000 == pytest.approx(3.0, abs=0.03)
    agreement, icc = correlations(design, np.random.default_rng(1))
    assert 0.2 < agreement < 0.45
    assert 0.1 < icc < 0.3
    loose = dataclasses.replace(design, within=0.0, agreement=0.0)
    assert correlations(loose, np.random.default_rng(1)) == pytest.approx((0, 0), abs=0.02)


def test_experiments_of_one_seed_are_the_same_and_images_start_at_0():
    first, again = (list(experiments(Design(20), 3, np.random.default_rng(4))) for _ in range(2))
    for one, two in zip(first, again, strict=True):
        assert (one.before == two.before).all() and (one.after == two.after).all()
        assert set(one.image) == set(range(20))


def test_an_impossible_design_is_refused():
    with pytest.raises(UserError, match="both accuracies must lie between 0 and 1"):
        Design(10, baseline=0.95, delta=0.1)


def test_the_promised_power_is_kept():
    (promise,) = calibration.promises([0.10], 1000, seed=0)
    assert promise.passed
    assert 200 < promise.n < 600


# ── the command ─────────────────────────────────────────────────────────────────────────────────


def test_a_control_of_the_profile_that_is_off_is_told_from_one_that_was_not_measured():
    told = Estimate(0.5, 0.4, 0.6, 40, 20)
    scores = (
        Score("hit", "invariant", told),
        Score("hit", "drop", Estimate(0.0, None, None, 40, 20), "gray"),
        Score("pair", "directional", Estimate(None, None, None, 0, 0)),
        Score("delta", "drop", Estimate(-0.5, -0.6, -0.4, 40, 20)),
    )

    def passes(name, expected):
        return understanding_controls._judge("m", "op", name, expected, scores).passed

    assert passes("hit", 0.5) and not passes("hit", 0.51) and passes("hit", "below")
    assert passes("drop.hit/gray", 0) and not passes("invariant.hit/gray", 0)
    assert passes("delta", "fall") and not passes("delta", "rise")
    assert not passes("pair", 0) and not passes("sticks", 0), "nothing measured is no pass"
    with pytest.raises(UserError, match="knows no 'rises'"):
        passes("hit", "rises")


def test_the_command_prints_both_tables_and_fails_where_something_is_wrong(capsys):
    config = OmegaConf.create(
        {"command": OmegaConf.load(assets.asset_dir("conf") / "command" / "selftest.yaml")}
    )
    few = {"n": 30, "experiments": 300, "images": [60], "deltas": [0.2], "operators": ["identity", "bow"]}
    config.command = OmegaConf.merge(config.command, few, {"understanding": {"n": 24}})
    config.command.expected = {
        "control/oracle": {"others": "zero"},
        "listener": {"identity": "fall", "bow": "fall"},
    }
    assert selftest.run(config) == 1
    lines = capsys.readouterr().out.splitlines()
    verdicts = {
        tuple(line.split()[:2]): line.split()[-1] for line in lines if line.endswith(("pass", "FAIL"))
    }
    assert verdicts[("control/oracle", "bow")] == "pass"
    assert verdicts[("listener", "bow")] == "pass"
    assert verdicts[("listener", "identity")] == "FAIL"
    assert any("fails, as it must" in line for line in lines)
    profile = lines[next(i for i, line in enumerate(lines) if "understanding profile" in line) :]
    own = [line for line in profile[: profile.index("")] if line.endswith(("pass", "FAIL"))]
    assert len(own) > 30 and all(line.endswith("pass") for line in own), "\n".join(own)
    assert "NOT as expected" in lines[-1]
