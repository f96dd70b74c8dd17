"""Models with known answers, and the chance levels that they know."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refadv_ablate import assets
from refadv_ablate.boxes import Box, iou, iou_pairs
from refadv_ablate.errors import UserError
from refadv_ablate.models import controls
from refadv_ablate.models.chance import random_box_chance
from refadv_ablate.parsing import dialects
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.prompting import prompts
from refadv_ablate.types import Candidate, Example, Perturbed, Reply, Request, Sampling, Seen
from tests.scripted import Few, Plain, Scripted

OPTIONS = sorted(name for name in assets.options("model") if name.startswith("control/"))
TEXT_BLIND = [
    controls.Oracle(),
    controls.RandomCandidate(),
    controls.RandomBox(),
    controls.CenterPrior(),
    controls.LargestCandidate(),
]
SAID = "the red cup that isn't blue , left-of the traffic lights ."
NEED_CANDIDATES = [
    controls.RandomCandidate(),
    controls.LargestCandidate(),
    controls.HeadNoun(),
    controls.BagListener(),
]


def scene(text: str = "the red cup left of the blue traffic light", **changes: object) -> Example:
    candidates = (
        Candidate(Box(10, 10, 60, 60), "cup", {"colour": "red"}),
        Candidate(Box(100, 10, 160, 60), "cup", {"colour": "blue"}),
        Candidate(Box(300, 10, 330, 110), "traffic light", {"colour": "blue"}),
        Candidate(Box(400, 10, 430, 110), "light", {"colour": "green"}),
    )
    base = Example("e", Plain("i"), text, candidates[0].box, "cup", candidates, 1)
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def request(example: Example, condition: str = "original", draw: int = 0, repeat: int = 0) -> Request:
    perturbed = Perturbed(example, example, "changed")
    return Request(perturbed, condition, draw, (), example.image, Sampling(), repeat)


def only(model, asked: Request) -> Reply:
    ((_, reply),) = list(model.answer([asked]))
    return reply


# ── as a run meets them ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("option", OPTIONS)
def test_every_control_is_built_from_its_yaml_and_answers_in_its_dialect_and_frame(option):
    config = assets.plain(assets.compose([f"model={option}"]).model)
    engine = config.pop("engine")
    spec = assets.build(config, "model")
    model = assets.build(engine, "engine", spec=spec)
    assert spec.name == option.removeprefix("control/")
    for example in Few(6):
        asked = prompts.build(
            spec, prompts.Style("direct"), Perturbed(example, example, "unchanged"), "original", 0
        )
        reading = dialects.read(
            only(model, asked), spec.dialect, spec.frame, Seen(example.image.size(), example.image.size())
        )
        assert isinstance(reading.answer, Box)
        assert (reading.n_boxes, reading.notes) == (1, ())
        assert reading.answer.inside(example.image.size())
    assert json.loads(json.dumps(model.identity())) == model.identity()
    assert "spec" not in model.identity()
    assert model.durable is False, "two examples may ask the same words of the same image"
    model.close()


def test_every_control_is_part_of_the_selftest():
    from omegaconf import OmegaConf

    command = OmegaConf.load(assets.asset_dir("conf") / "command" / "selftest.yaml")
    named = {*command.expected, *(str(row.model) for row in command.understanding.controls)}
    assert {name for name in named if name.startswith("control/")} == set(OPTIONS)


def test_the_oracle_is_right_to_the_last_digit():
    target = Box(1 / 3, 2 / 7, 100 / 3, 200 / 7)
    reply = only(controls.Oracle(), request(scene(target=target)))
    assert (
        iou(
            dialects.read(
                reply, dialects.PlainBoxes(), OriginalPixels(), Seen((640, 480), (640, 480))
            ).answer,
            target,
        )
        == 1
    )


# ── what they ignore ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", TEXT_BLIND, ids=lambda m: type(m).__name__)
@given(
    text=st.text(max_size=40), condition=st.text(max_size=8), draw=st.integers(0, 9), repeat=st.integers(0, 3)
)
@settings(max_examples=25, deadline=None)
def test_a_text_blind_control_ignores_text_condition_and_draw(model, text, condition, draw, repeat):
    asked = request(scene(text), condition, draw, repeat)
    assert only(model, asked).text == only(model, request(scene())).text


@given(
    st.permutations(
        ["the", "red", "cup", "that", "isn't", "blue", ",", "left-of", "the", "traffic", "lights", "."]
    )
)
@settings(max_examples=50, deadline=None)
def test_the_bag_listener_hears_words_and_not_their_order(words):
    assert controls.BagListener().box(scene(" ".join(words))) == controls.BagListener().box(scene(SAID))


@given(st.permutations(range(4)))
@settings(max_examples=24, deadline=None)
def test_no_control_depends_on_the_order_of_the_candidates(order):
    mixed = scene(candidates=tuple(scene().candidates[i] for i in order))
    for model in [*TEXT_BLIND, *NEED_CANDIDATES]:
        assert model.box(mixed) == model.box(scene())


# ── what they read ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("red cup", 0),
        ("the blue cup", 1),
        ("the blue traffic light", 2),
        ("a green light", 3),
        ("nothing of the kind", 0),  # equal matches: the topmost left
    ],
)
def test_the_bag_listener_takes_the_best_match(text, index):
    assert controls.BagListener().box(scene(text)) == scene().candidates[index].box


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("the red cup left of the traffic light", "cup"),
        ("traffic light behind the cups", "traffic light"),
        ("Two CUPS beside the light", "cup"),
        ("the light of the cup", "light"),
        ("the traffic lights", "traffic light"),
        ("the cupboard", None),
        ("the one", None),
        ("", None),
    ],
)
def test_the_head_noun_is_the_category_that_is_named_first(text, category):
    assert controls.first_category(text, {"cup", "traffic light", "light"}) == category
    chosen = {controls.HeadNoun(seed=s).box(scene(text)) for s in range(60)}
    assert chosen == {c.box for c in scene().candidates if category in (c.category, None)}


def test_the_largest_and_the_central_box():
    assert controls.LargestCandidate().box(scene()) == scene().candidates[1].box
    assert controls.CenterPrior(share=0.5).box(scene()) == Box(160, 120, 480, 360)


@pytest.mark.parametrize("model", NEED_CANDIDATES, ids=lambda m: type(m).__name__)
def test_a_control_that_needs_candidates_says_so(model):
    with pytest.raises(
        UserError, match=r"model=control/[a-z_]+ chooses among candidate boxes and example e has none"
    ):
        only(model, request(scene(candidates=())))


# ── chance ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("target", "size"),
    [
        (Box(10, 20, 80, 60), (100, 100)),
        (Box(0, 0, 50, 100), (100, 100)),
        (Box(0, 0, 640, 480), (640, 480)),
        (Box(300, 100, 620, 400), (640, 480)),
    ],
)
def test_the_chance_of_a_random_box_is_that_of_many_drawn(target, size):
    rng = np.random.default_rng(0)
    xs, ys = np.sort(rng.random((2, 400_000, 2)), axis=2) * np.array(size)[:, None, None]
    drawn = np.stack([xs[:, 0], ys[:, 0], xs[:, 1], ys[:, 1]], axis=1)
    ious = iou_pairs(drawn, np.tile(target.as_list(), (len(drawn), 1)))
    for name, threshold in [("acc50", 0.5), ("acc75", 0.75)]:
        measured = np.mean(ious >= threshold)
        error = np.sqrt(measured * (1 - measured) / len(drawn))
        assert random_box_chance(target, size, name) == pytest.approx(measured, abs=4 * error + 1e-6)
    measured = np.mean([ious >= t / 100 for t in range(50, 100, 5)])
    assert random_box_chance(target, size, "macc") == pytest.approx(measured, rel=0.05)


def test_random_box_draws_what_its_chance_is_computed_for():
    target, model = Box(100, 100, 500, 400), controls.RandomBox()
    hits = [iou(model.box(scene(target=target, id=str(i))), target) >= 0.5 for i in range(6000)]
    expected = model.chance(scene(target=target))
    assert np.mean(hits) == pytest.approx(expected, abs=4 * np.sqrt(expected / 6000))


def test_the_chance_among_candidates():
    assert controls.RandomCandidate().chance(scene()) == 0.25
    overlapping = (*scene().candidates, Candidate(Box(10, 10, 60, 50)))  # IoU 0.8 with the target
    assert controls.candidate_chance(scene(candidates=overlapping)) == 0.4
    assert controls.candidate_chance(scene(candidates=overlapping), "acc90") == 0.2
    hits = [iou(controls.RandomCandidate().box(scene(id=str(i))), scene().target) >= 0.5 for i in range(4000)]
    assert np.mean(hits) == pytest.approx(0.25, abs=0.03)
    with pytest.raises(UserError, match="no chance level"):
        controls.candidate_chance(scene(candidates=()))


# ── noise ───────────────────────────────────────────────────────────────────────────────────────


def replaced(model, condition: str, draw: int = 0, repeat: int = 0, n: int = 2000) -> np.ndarray:
    asked = [request(scene(id=str(i)), condition, draw, repeat) for i in range(n)]
    right = controls.as_text(scene().target)
    return np.array([reply.text != right for _, reply in model.answer(asked)])


def test_noisy_replaces_a_fraction_independently_in_each_condition_draw_and_repeat():
    model = controls.Noisy(inner=controls.Oracle(), p=0.3)
    arms = [replaced(model, *key) for key in [("original",), ("bow",), ("bow", 1), ("bow", 1, 1)]]
    assert (replaced(model, "bow") == arms[1]).all(), "the same again"
    for arm in arms:
        assert arm.mean() == pytest.approx(0.3, abs=0.04)
    for other in arms[1:]:
        assert abs(np.corrcoef(arms[0], other)[0, 1]) < 0.1


def test_noisy_can_leave_the_original_condition_alone():
    model = controls.Noisy(inner=controls.Oracle(), p=0.3, perturbed_only=True)
    assert not replaced(model, "original").any()
    assert replaced(model, "bow").mean() == pytest.approx(0.3, abs=0.04)


def test_noise_is_no_answer_to_what_was_never_answered():
    failing = Scripted(lambda _: Reply("", finish="error", error="gone"))
    model = controls.Noisy(inner=failing, p=1.0)
    assert only(model, request(scene())).finish == "error"


def test_a_fraction_out_of_range_is_refused():
    with pytest.raises(UserError, match=r"p=1\.5: the fraction"):
        controls.Noisy(inner=controls.Oracle(), p=1.5)


def test_noisy_builds_any_engine_inside_with_the_same_spec():
    config = {"_target_": "refadv_ablate.models.controls.RandomCandidate", "seed": 7}
    model = controls.noisy(inner_config=config, p=0.0)
    inner = controls.RandomCandidate(seed=7)
    assert model.identity()["inner"] == inner.identity()
    assert only(model, request(scene())).text == only(inner, request(scene())).text
    with pytest.raises(UserError, match="no option 'sed'"):
        controls.noisy(inner_config={**config, "sed": 1})


def test_a_control_answers_set_of_marks_with_a_number():
    from refadv_ablate.prompting.som import DataCandidates

    data = assets.build(assets.compose(["data=shapes", "data.n=6"]).data, "data")
    model = assets.plain(assets.compose(["model=control/oracle"]).model)
    del model["engine"]
    spec = assets.build(model, "model")
    style = prompts.Style("som", candidates=DataCandidates())
    for example in data:
        request = prompts.build(spec, style, Perturbed(example, example, "unchanged"), "original", 0)
        ((_, reply),) = controls.Oracle().answer([request])
        number = int(reply.text.strip("[]"))
        assert request.options["marks"][number - 1] == pytest.approx(example.target.as_list())
