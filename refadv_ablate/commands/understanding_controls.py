"""Controls of the understanding profile: each model's score under each operator is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from refadv_ablate.errors import UserError
from refadv_ablate.prompting import prompts
from refadv_ablate.running import perturbed_texts as texts
from refadv_ablate.running.plan import Plan, traits
from refadv_ablate.running.reading import Reader, Watch
from refadv_ablate.running.record import as_original
from refadv_ablate.running.run import run
from refadv_ablate.statistics.understanding import Answers
from refadv_ablate.storage.answers import MemoryStore
from refadv_ablate.storage.records import perturbed_to_json
from refadv_ablate.types import Data, Json, Model, ModelSpec, Operator, Score

Expected = Mapping[str, float | str]
"""Score → its value, or `fall` (the interval lies below 0), `rise` (above 0), `chance` (it holds 0), `below`

(it ends below 1). A score is written `name`, `name/part` or `expectation.name`.
"""


@dataclass(frozen=True, slots=True)
class Control:
    """A model and what each operator must measure on it."""

    name: str
    spec: ModelSpec
    style: prompts.Style
    model: Model
    expected: Mapping[str, Expected]


@dataclass(frozen=True, slots=True)
class Line:
    """One score of one control under one operator."""

    model: str
    operator: str
    score: str
    expected: str
    measured: str
    passed: bool


def check(
    controls: Sequence[Control], operators: Mapping[str, Operator], data: Data, seed: int, watch: Watch
) -> Iterator[Line]:
    """Asks each control what its expectations name, and compares. Raises UserError for what isn't there."""
    rows: dict[str, list[Json]] = {}
    for control in controls:
        for label in control.expected:
            if label not in operators:
                raise UserError(f"selftest.understanding names {label!r}, which is not among its operators")
            if label not in rows:
                made = texts.perturb_all(data, label, operators[label], seed)
                rows[label] = [perturbed_to_json(each) for each in made]
        asked = {label: operators[label] for label in control.expected}
        answers = _ask(control, asked, rows, data, watch)
        for label, expected in control.expected.items():
            found = answers[label].scores()
            yield from (_judge(control.name, label, name, value, found) for name, value in expected.items())


def _ask(
    control: Control,
    operators: Mapping[str, Operator],
    rows: Mapping[str, Sequence[Json]],
    data: Data,
    watch: Watch,
) -> dict[str, Answers]:
    plan = Plan(
        data=data,
        spec=control.spec,
        model=control.model,
        style=control.style,
        texts={label: partial(iter, rows[label]) for label in operators},
        durable=False,
        **traits(operators),
    )
    answers = {label: Answers() for label in operators}
    for record in run(plan, MemoryStore(), Reader(plan, watch)):
        for label, own in answers.items():
            if record.condition in (label, plan.original_of(label)):
                own.add(as_original(record))
    control.model.close()
    return answers


def _judge(model: str, label: str, name: str, expected: float | str, scores: Sequence[Score]) -> Line:
    score = _named(scores, name)
    if score is None or score.estimate.value is None:
        return Line(model, label, name, str(expected), "nothing was measured", False)
    estimate, value = score.estimate, score.estimate.value
    measured = f"{value:.3f} (n {estimate.n})"
    if isinstance(expected, int | float):
        passed = abs(value - expected) < 1e-9
        return Line(model, label, name, f"{expected:g} exactly", measured, passed)
    low, high = estimate.low, estimate.high
    tests = {
        "fall": ("below 0", high is not None and high < 0),
        "rise": ("above 0", low is not None and low > 0),
        "chance": ("0 in the interval", low is not None and high is not None and low <= 0 <= high),
        "below": ("below 1", high is not None and high < 1),
    }
    if expected not in tests:
        raise UserError(f"selftest.understanding knows no {expected!r}: give a number, {', '.join(tests)}")
    told, passed = tests[expected]
    return Line(model, label, name, told, measured, passed)


def _named(scores: Sequence[Score], name: str) -> Score | None:
    rest, _, part = name.partition("/")
    expectation, _, short = rest.rpartition(".")
    for score in scores:
        if (score.name, score.part) == (short, part) and expectation in ("", score.expectation):
            return score
    return None


def controls_of(options: Mapping[str, Any], hold: Callable[[Data], Data], watch: Watch) -> Iterator[Line]:
    """The lines of `selftest.understanding`, composed as a run would compose them.

    `hold` keeps the data, which is gone through many times.
    """
    from refadv_ablate import assets
    from refadv_ablate.running.parts import parts_of

    labels = sorted({label for row in options["controls"] for label in row["expected"]})
    words = ["data=shapes", f"data.n={options['n']}", f"perturb=[{','.join(labels)}]", *options["settings"]]
    controls = []
    for row in options["controls"]:
        own = [f"model={row['model']}", *row.get("settings", ())]
        parts = parts_of(assets.compose([*words, *own]))
        model = assets.build(parts.engine, "model.engine", spec=parts.spec)
        name = " ".join([row["model"], *row.get("settings", ())])
        controls.append(Control(name, parts.spec, parts.style, model, row["expected"]))
    held = hold(parts.data)
    yield from check(controls, texts.with_data(parts.operators, held), held, parts.settings.seed, watch)
