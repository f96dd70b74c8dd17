"""The harness tested by itself: models whose Δ is known, and experiments whose Δ is known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refadv_ablate.errors import UserError, nearest
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.prompting import prompts
from refadv_ablate.running import perturbed_texts as texts
from refadv_ablate.running.plan import Plan, traits
from refadv_ablate.running.reading import Reader
from refadv_ablate.running.run import run as ask_all
from refadv_ablate.statistics import calibration, hard_cases
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.storage.answers import MemoryStore
from refadv_ablate.storage.records import perturbed_to_json
from refadv_ablate.types import (
    ORIGINAL,
    Comparison,
    Data,
    Estimate,
    Example,
    Json,
    Model,
    ModelSpec,
    Operator,
    Reply,
)

METRIC = "acc50"
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the table."""

    model: str
    what: str
    """An operator, whose Δ is meant, or "accuracy"."""
    expected: str
    measured: str
    passed: bool


class _Quiet:
    """A run that nobody watches."""

    def reply(self, condition: str, reading: object, score: float | None, reply: Reply, stored: bool) -> None:
        """Not shown."""

    def warn(self, text: str) -> None:
        """Not shown: what matters is in the comparison."""


@dataclass(frozen=True)
class Held:
    """A small data set that is made once and gone through many times."""

    name: str
    examples: tuple[Example, ...]

    @classmethod
    def of(cls, data: Data) -> Held:
        """All examples of the data."""
        return cls(data.name, tuple(data))

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def fingerprint(self) -> Mapping[str, Json]:
        """Nothing that is stored depends on it."""
        return {"held": len(self.examples)}


@dataclass(frozen=True)
class Subject:
    """A model under test, as a run would build it."""

    name: str
    spec: ModelSpec
    style: prompts.Style
    model: Model
    expected: Mapping[str, str | float]
    """Operator label (or `others`) → zero, fall, no_rise, or Δ."""


def selftest(
    subjects: Sequence[Subject], operators: Mapping[str, Operator], data: Data, seed: int
) -> Iterator[Check]:
    """Asks each model through the whole pipeline and compares what is measured with what must be."""
    data = Held.of(data)
    rows = {
        label: [perturbed_to_json(each) for each in texts.perturb_all(data, label, operator, seed)]
        for label, operator in operators.items()
    }
    for subject in subjects:
        comparisons = measure(subject, operators, data, rows, seed)
        yield from _accuracy_checks(subject, data, next(iter(comparisons.values())))
        for label, comparison in comparisons.items():
            yield judge(subject.name, label, _expectation(subject, label), comparison)


def measure(
    subject: Subject,
    operators: Mapping[str, Operator],
    data: Data,
    rows: Mapping[str, Sequence[Mapping[str, Json]]],
    seed: int,
) -> dict[str, Comparison]:
    """Operator → comparison, by the pipeline of a real run."""
    plan = Plan(
        data=data,
        spec=subject.spec,
        model=subject.model,
        style=subject.style,
        texts={label: _reader(rows[label]) for label in operators},
        **traits(operators),
        durable=False,
    )
    arms = {label: Arm() for label in (ORIGINAL, *operators)}
    for record in ask_all(plan, MemoryStore(), Reader(plan, _Quiet())):
        arms[record.condition].add(record)
    subject.model.close()
    return {
        label: stats.compare(
            arms[ORIGINAL],
            arms[label],
            model=subject.name,
            data=data.name,
            prompt=subject.style.name,
            operator=label,
            planned=len(arms[ORIGINAL]),
            seed=seed,
            n_boot=1000,
            metrics=(METRIC,),
        )
        for label in operators
    }


def _reader(rows: Sequence[Mapping[str, Json]]) -> Any:
    return lambda: iter(rows)


def _expectation(subject: Subject, label: str) -> str | float:
    if label in subject.expected:
        return subject.expected[label]
    if OTHERS in subject.expected:
        return subject.expected[OTHERS]
    raise UserError(
        f"selftest expects nothing of {subject.name} under {label}: name it under "
        f"selftest.expected, or give `{OTHERS}`."
    )


def judge(model: str, label: str, expected: str | float, comparison: Comparison) -> Check:
    """Whether a Δ is what it must be. Raises UserError for an unknown expectation."""
    delta = comparison.deltas[METRIC]
    estimate = delta.delta
    changed = delta.right_to_wrong + delta.wrong_to_right
    measured = shown(estimate)
    if isinstance(expected, int | float):
        inside = estimate.low is not None and estimate.high is not None
        inside = inside and (estimate.low or 0.0) <= expected <= (estimate.high or 0.0)
        return Check(model, label, f"{expected * 100:+.1f} in the interval", measured, inside)
    tests = {
        "zero": ("0 exactly", estimate.value == 0 and changed == 0),
        "fall": ("below 0", estimate.high is not None and estimate.high < 0),
        "no_rise": ("0 or below", estimate.value == 0 or (estimate.low is not None and estimate.low <= 0)),
    }
    if expected not in tests:
        raise UserError(f"selftest knows no expectation {expected!r}; {nearest(expected, tests)}.")
    text, passed = tests[expected]
    return Check(model, label, text, measured, passed and comparison.paired > 0)


def _accuracy_checks(subject: Subject, data: Data, comparison: Comparison) -> Iterator[Check]:
    """Measured against analytic accuracy, for models that know their own."""
    chance = getattr(subject.model, "chance", None)
    if chance is None:
        return
    values = [chance(example, METRIC) for example in data]
    expected = sum(values) / len(values)
    found = comparison.deltas[METRIC].original
    assert found.low is not None and found.high is not None, "drawn data has many images"
    passed = found.low <= expected <= found.high
    yield Check(subject.name, "accuracy", f"{expected:.2%} (analytic)", shown(found, ".1f"), passed)


def shown(estimate: Estimate, form: str = "+.1f") -> str:
    """A fraction in points, with its interval."""
    if estimate.value is None:
        return "n/a"
    text = f"{estimate.value * 100:{form}}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{estimate.low * 100:{form}}, {estimate.high * 100:{form}}]"


# ── the command ─────────────────────────────────────────────────────────────────────────────────


def run(cfg: Any) -> int:
    """Prints both tables; exit status 1 if anything is not as expected. Keys under cfg.command."""
    from omegaconf import OmegaConf

    options: Any = OmegaConf.to_container(cfg.command, resolve=True)
    started = time.monotonic()
    print(f"Controls on {options['n']} drawn examples, {METRIC}: Δ in points, with its 95% interval")
    checks: list[Check] = []
    for check in _checks(options):
        if not checks:
            print(_line("model", "under", "expected", "measured", "", ""))
        checks.append(check)
        print(_line(check.model, check.what, check.expected, check.measured, _verdict(check.passed), ""))
    failed = sum(not check.passed for check in checks) + _understanding(options) + _calibrate(options)
    verdict = "everything is as expected" if not failed else f"{failed} lines are NOT as expected"
    print(f"\n{verdict} ({time.monotonic() - started:.0f} s)")
    return 0 if not failed else 1


def _checks(options: Mapping[str, Any]) -> Iterator[Check]:
    from refadv_ablate import assets
    from refadv_ablate.running.parts import parts_of

    operators = ",".join(options["operators"])
    words = [
        "data=shapes",
        f"data.n={options['n']}",
        f"data.seed={options['seed']}",
        f"perturb=[{operators}]",
    ]
    subjects = []
    for name, expected in options["expected"].items():
        parts = parts_of(assets.compose([*words, f"model={name}"]))
        model = assets.build(parts.engine, "model.engine", spec=parts.spec)
        subjects.append(Subject(name, parts.spec, parts.style, model, expected))
    yield from selftest(subjects, parts.operators, parts.data, int(options["seed"]))


def _understanding(options: Mapping[str, Any]) -> int:
    """Prints the controls of the understanding profile; how many lines failed."""
    from refadv_ablate.commands import understanding_controls

    own = options["understanding"]
    print(f"\nControls of the understanding profile on {own['n']} drawn examples, shares of 1")
    print(_line("model", "under", "score: expected", "measured", "", ""))
    failed = 0
    for found in understanding_controls.controls_of(own, Held.of, _Quiet()):
        expected = f"{found.score}: {found.expected}"
        print(_line(found.model, found.operator, expected, found.measured, _verdict(found.passed), ""))
        failed += not found.passed
    return failed


def _calibrate(options: Mapping[str, Any]) -> int:
    """Prints the calibration and the power table; how many lines failed."""
    times, seed = int(options["experiments"]), int(options["seed"])
    print(f"\nInference on {times:,} simulated experiments a line, three examples an image on average")
    print(
        _line(
            "images",
            "true Δ",
            "95% interval holds it",
            "false positives at 0.05",
            "",
            "naive interval holds it",
        )
    )
    failed = 0
    for found in calibration.calibrate(options["images"], (0.0, -0.1), times, seed):
        p = "" if found.false_positives is None else f"{found.false_positives:.1%} (4–6%)"
        delta = f"{found.design.delta * 100:+.0f} points"
        cells = (f"{found.design.images:,}", delta, f"{found.coverage:.1%} (93–97%)", p)
        print(_line(*cells, _verdict(found.passed), _naive(found.naive)))
        failed += not found.passed
    print("\nExamples that find a fall with 80% power, two an image on average, 60% before it")
    print(_line("fall", "examples", "images", "power as simulated", "", ""))
    for promise in calibration.promises(options["deltas"], times, seed):
        power = f"{promise.simulated:.0%} (75–85%)"
        size = (f"{promise.n:,}", f"{promise.images:,}")
        print(_line(f"{promise.delta * 100:g} points", *size, power, _verdict(promise.passed), ""))
        failed += not promise.passed
    return failed + _hard_cases(times, seed)


def _hard_cases(times: int, seed: int) -> int:
    """Prints how often intervals hold where they usually fail; how many lines failed."""
    print(f"\nIntervals where they usually fail, {times:,} experiments a line")
    failed = 0
    for found in hard_cases.measure(times, seed):
        share = f"{found.coverage:.1%} [{found.low:.1%}, {found.high:.1%}]"
        print(f"{found.name:<48}{share:<24}{'(at least 93%)':<25}{_verdict(found.passed)}")
        failed += not found.passed
    return failed


def _naive(coverage: float) -> str:
    low, high = calibration.COVERAGE
    return f"{coverage:.1%}, " + ("fails, as it must" if not low <= coverage <= high else "within the band")


def _verdict(passed: bool) -> str:
    return "pass" if passed else "FAIL"


def _line(*cells: str) -> str:
    widths = (27, 21, 24, 25, 6, 0)
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
