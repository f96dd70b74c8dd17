"""Paraphrases by rule: what each rule says, and what it must leave alone."""

from __future__ import annotations

import pytest

from perturbations import Paraphrase
from perturbations.paraphrase import RULES, article, contraction, frame, punctuation, relative
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.models.listeners.meaning import listen
from refadv_ablate.seeding import generator
from tests.scripted import example


@pytest.mark.parametrize(
    ("rule", "text", "new"),
    [
        (article, "the red circle", "red circle"),
        (article, "red circle", "the red circle"),
        (article, "a man in red", "the man in red"),
        (article, "An old dog", "The old dog"),
        (article, "A RED BALL", "THE RED BALL"),
        (article, "two men", "the two men"),
        (article, "second from left", "the second from left"),
        (relative, "the man who is wearing a hat", "the man wearing a hat"),
        (relative, "a woman that is in the building", "a woman in the building"),
        (relative, "the woman who is not holding a cup", "the woman not holding a cup"),
        (relative, "the dog that is not on the couch", "the dog not on the couch"),
        (relative, "a man wearing a hat", "a man that is wearing a hat"),
        (relative, "men wearing hats", "men that are wearing hats"),
        (relative, "the one not wearing a hat", "the one that is not wearing a hat"),
        (contraction, "the circle that isn't red", "the circle that is not red"),
        (contraction, "the circle that is not red", "the circle that isn't red"),
        (contraction, "the man who’s wearing a tie", "the man who is wearing a tie"),
        (punctuation, "the red circle", "the red circle."),
        (punctuation, "the red circle.", "the red circle"),
        (frame, "the red circle", "please find the red circle"),
        (frame, "The red circle", "please find the red circle"),
        (frame, "left guy", "please find left guy"),
    ],
)
def test_what_a_rule_says(rule, text: str, new: str) -> None:
    assert rule(text) == new


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (article, "his left hand"),
        (article, "on the left"),
        (article, "not the man, the woman"),
        (article, "someone in red"),
        (article, "sitting on the bench"),
        (article, "Chris in a hat"),
        (article, "the one on the left"),
        (article, "the other dog"),
        (article, "this man"),
        (article, "find the dog"),
        (article, "الكرة الحمراء"),
        (relative, "the baby in the stroller wearing blue"),
        (relative, "the horse ridden by the man wearing red"),
        (relative, "the boy and girl wearing hats"),
        (relative, "Chris wearing red"),
        (relative, "the woman sitting wearing red"),
        (relative, "wearing a hat"),
        (relative, "the one that is clothing"),
        (relative, "who is wearing a hat"),
        (relative, "the circle that is red"),
        (contraction, "the man's hat"),
        (contraction, "the red circle"),
        (punctuation, "what is this?"),
        (punctuation, "the flag of the U.S."),
        (punctuation, "the man..."),
        (frame, "find the dog"),
        (frame, "on the left"),
        (frame, "which one is red"),
        (frame, "the dog?"),
        (frame, "5"),
    ],
)
def test_what_a_rule_leaves_alone(rule, text: str) -> None:
    assert rule(text) is None


def test_drawn_expressions_are_heard_as_before() -> None:
    operator, asked = Paraphrase(), 0
    for e in Shapes(n=150):
        for p in operator.parts(e, generator(0, e.id)):
            assert p.status == "changed"
            assert p.expectation == "invariant"
            assert listen(p.example.expression) == listen(e.expression)
            assert p.example.saying(e.expression) == e
            asked += 1
    assert asked >= 450


def test_rules_can_be_chosen_and_a_wrong_one_is_named() -> None:
    e = example(1).saying("the man wearing a hat")
    parts = [p.part for p in Paraphrase(rules=["frame", "article"]).parts(e, generator(0))]
    assert parts == ["article", "frame"], "in the order of the rules"
    assert [p.part for p in Paraphrase().parts(e, generator(0))] == [r for r in RULES if r != "contraction"]
    with pytest.raises(UserError, match=r"'articel'.*article"):
        Paraphrase(rules=["articel"])
    with pytest.raises(UserError, match="empty"):
        Paraphrase(rules=[])


@pytest.mark.parametrize("text", ["", "左边的红色球", "?!", "what is it?", "a\nb"])
def test_a_text_to_which_no_rule_applies_says_so(text: str) -> None:
    (p,) = Paraphrase().parts(example(1).saying(text), generator(0))
    assert p.status == "not_perturbable"
    assert p.reason
