"""Expressions that nothing fits: none of the candidates, and by one word."""

from __future__ import annotations

from collections import Counter

import pytest

from perturbations import Absent, scenes
from refadv_ablate.data.shapes import Shapes
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import generator
from refadv_ablate.types import Example, Perturbed
from tests.scripted import example

DATA = tuple(Shapes(n=200))


def made(e: Example, operator: Absent | None = None) -> list[Perturbed]:
    return list((operator or Absent()).parts(e, generator(0, e.id)))


def test_no_candidate_has_the_attribute_or_is_of_the_category() -> None:
    asked = 0
    for e in DATA:
        scene = scenes.scene_of(e)
        assert isinstance(scene, scenes.Scene)
        for p in made(e):
            if p.status == "not_perturbable":
                continue
            sentence = scenes.read(p.example.expression)
            assert sentence is not None
            head = scenes.Meaning(sentence.meaning.head)
            assert scene.fits(sentence.meaning) == scene.fits(head) == []
            if p.part == "category":
                assert all(c.category != sentence.meaning.head.shape for c in e.candidates)
            else:
                assert sentence.meaning.head.shape == e.category
            assert p.expectation == "reject"
            assert p.example.target == e.target, "the old referent: hits on it are the prior"
            asked += 1
    assert asked > 390


def test_one_word_differs() -> None:
    for e in DATA:
        for p in made(e):
            old, new = Counter(e.expression.split()), Counter(p.example.expression.split())
            added, gone = new - old, old - new
            assert added.total() == 1, (e.expression, p.example.expression)
            assert gone.total() == (1 if p.trace["descriptor"] else 0)


def test_its_question_and_the_original_allow_none() -> None:
    assert Absent.or_none


def test_kinds_can_be_chosen_and_a_wrong_one_is_named() -> None:
    assert {p.part for e in DATA for p in made(e, Absent(kinds=["category"]))} == {"category"}
    with pytest.raises(UserError, match=r"'colour'.*attribute"):
        Absent(kinds=["colour"])  # type: ignore[list-item]
    with pytest.raises(UserError, match="empty"):
        Absent(kinds=[])


def test_without_drawn_candidates_nobody_knows_what_is_absent() -> None:
    (p,) = made(example(1))
    assert p.status == "not_perturbable"
    assert "look like" in p.reason
