"""Counterfactuals on drawn scenes: another candidate is meant, by one descriptor; elsewhere none is made."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher

import pytest

from perturbations import Counterfactual, Descriptor, Extraction, LLMRewriter, scenes
from perturbations.rewriters import Job
from perturbations.verification import change_finding, verify_change
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import generator
from refadv_ablate.types import Example, Perturbed
from tests.scripted import example

DATA = tuple(Shapes(n=240))


def made(e: Example, operator: Counterfactual | None = None, seed: int = 0) -> list[Perturbed]:
    return list((operator or Counterfactual()).parts(e, generator(seed, e.id)))


def test_the_new_words_mean_the_new_target_alone_and_clearly() -> None:
    kinds: Counter[str] = Counter()
    for e in DATA:
        for p in made(e):
            if p.status == "not_perturbable":
                assert p.example == e
                continue
            kinds[p.part] += 1
            sentence, scene = scenes.read(p.example.expression), scenes.scene_of(e)
            assert sentence is not None
            assert isinstance(scene, scenes.Scene)
            (meant,) = scene.fits(sentence.meaning)
            assert scene.clear(sentence.meaning)
            assert p.example.target == e.candidates[meant].box != e.target
            assert e.candidates[meant].category == e.category
            assert p.expectation == "directional"
            assert p.example.image is e.image
    assert set(kinds) == set(scenes.KINDS)
    assert min(kinds.values()) > 15, kinds


def test_exactly_one_descriptor_differs_and_it_is_of_the_kind() -> None:
    for e in DATA:
        before = scenes.read(e.expression)
        assert before is not None
        for p in made(e):
            if p.status == "not_perturbable":
                continue
            after = scenes.read(p.example.expression)
            assert after is not None
            pairs = list(zip(before.pieces, after.pieces, strict=True))
            (changed,) = [(old, new) for old, new in pairs if old.text != new.text]
            assert changed[0].kind == p.part == p.trace["kind"]
            assert (changed[0].text, changed[1].text) == (p.trace["descriptor"], p.trace["now"])
            assert before.meaning.head.shape == after.meaning.head.shape
            if isinstance(before.meaning.modifier, scenes.Relation):
                assert isinstance(after.meaning.modifier, scenes.Relation)
                assert after.meaning.modifier.landmark == before.meaning.modifier.landmark


def test_the_opposite_is_preferred() -> None:
    """A relation is reversed wherever its reverse means one other candidate clearly."""
    reversed_ = other = 0
    for e in DATA:
        found = scenes.resolved(e)
        assert isinstance(found, scenes.Resolved)
        for p in made(e, Counterfactual(kinds=["relation"])):
            if p.status == "not_perturbable" or p.part != "relation":
                continue
            words = {"left", "right"}, {"above", "below"}, {"higher", "lower"}
            blocks = SequenceMatcher(None, e.expression.split(), p.example.expression.split()).get_opcodes()
            changed = {
                w
                for tag, a, b, c, d in blocks
                if tag != "equal"
                for w in (*e.expression.split()[a:b], *p.example.expression.split()[c:d])
            }
            reversed_ += changed in words
            other += changed not in words
    assert reversed_ > 2 * other > 0


def test_seeds_choose_and_the_same_seed_chooses_the_same() -> None:
    texts = {seed: [p.example.expression for e in DATA for p in made(e, seed=seed)] for seed in (0, 1)}
    assert texts[0] == [p.example.expression for e in DATA for p in made(e, seed=0)]
    assert texts[0] != texts[1]


def test_kinds_can_be_chosen_and_a_wrong_one_is_named() -> None:
    only = Counterfactual(kinds=["ordinal"])
    parts = Counter(p.part for e in DATA for p in made(e, only))
    assert set(parts) == {"ordinal", ""}
    assert {p.reason for e in DATA for p in made(e, only) if not p.part} >= {
        "it has no descriptor of the kinds ordinal"
    }
    with pytest.raises(UserError, match=r"'ordnal'.*ordinal"):
        Counterfactual(kinds=["ordnal"])  # type: ignore[list-item]
    with pytest.raises(UserError, match="empty"):
        Counterfactual(kinds=[])


@pytest.mark.parametrize("e", [example(1), DATA[0].saying("the ball"), DATA[0].saying("")])
def test_what_was_not_understood_is_left_alone_with_the_reason(e: Example) -> None:
    (p,) = made(e)
    assert (p.status, p.example) == ("not_perturbable", e)
    assert p.reason


# ── where nobody has drawn the scene ────────────────────────────────────────────────────────────


def job(expression: str, descriptor: str, head: str) -> Job:
    start = expression.index(descriptor)
    found = Descriptor(descriptor, "llm", ((start, start + len(descriptor)),))
    return Job(expression, Extraction(head, (found,)), found)


@pytest.mark.parametrize(
    ("descriptor", "text", "reason"),
    [
        ("in a red coat", "the tall man in a blue coat", ""),
        ("tall", "the short man in a red coat", ""),
        ("in a red coat", "the tall man in a red coat", "nothing in the place"),
        ("in a red coat", "the tall man", "nothing in the place"),
        ("in a red coat", "the tall woman in a blue coat", "'man'"),
        ("in a red coat", "the short man in a blue coat", "'tall'"),
        ("tall", "the tall old man in a red coat", "still there"),
        ("tall", "the man who is not short in a red coat", "negation"),
        ("tall", "the one and only very small happy man in a red coat", "adds"),
        ("tall", "", "nothing in the place"),
    ],
)
def test_a_change_must_touch_its_descriptor_and_nothing_else(descriptor: str, text: str, reason: str) -> None:
    finding = change_finding(job("the tall man in a red coat", descriptor, "man"), text)
    assert reason in finding.fault
    assert bool(finding.fault) == bool(reason)


def test_an_llm_changes_a_descriptor_and_what_it_makes_is_read_again(llm_url: str) -> None:
    operator = Counterfactual(rewriter=LLMRewriter("m", llm_url))
    data = [example(i).saying(text) for i, text in enumerate(("the red ball", "zebra", "the young elephant"))]
    told = [parts[0] for parts in operator.perturb_parts((e, generator(0, e.id)) for e in [*data, DATA[0]])]
    assert told[0].example.expression == "the blue ball"
    assert (told[0].expectation, told[0].example.target) == ("directional", data[0].target)
    assert told[0].trace["descriptor"] == "red"
    assert told[1].status == "not_perturbable"
    assert told[2].example.expression == "the old elephant"
    assert told[3] == made(DATA[0])[0], "drawn scenes need no LLM"
    assert operator.identity() != Counterfactual().identity()
    assert Counterfactual().identity() == Counterfactual(pipeline="other").identity()


def test_a_change_that_moves_another_descriptor_is_refused_when_read_again() -> None:
    found = verify_change([job("the tall man", "tall", "man")], ["the man tower"], None)
    assert found[0].fault


def test_without_an_llm_the_reason_says_what_would_help() -> None:
    (p,) = made(example(1))
    assert "rewriter=openai" in p.reason
