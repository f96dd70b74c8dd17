"""Category alone, capitals, typos."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from perturbations import CategoryOnly, LetterCase, Typos
from refadv_ablate.errors import UserError
from tests.scripted import example

E = example(0).saying("The small, red coffee-cup left of the jar")


def test_the_category_alone_is_asked_and_data_without_one_are_counted() -> None:
    assert CategoryOnly().perturb(E, random.Random(0)).example.expression == "the cup"
    unknown = CategoryOnly().perturb(replace(E, category=None), random.Random(0))
    assert unknown.status == "not_perturbable"
    with pytest.raises(UserError, match="perturb=fixed"):
        CategoryOnly(text="the one")


def test_capitals_change_nothing_else() -> None:
    assert LetterCase().perturb(E, random.Random(0)).example.expression == E.expression.upper()
    assert LetterCase(case="lower").perturb(E, random.Random(0)).example.expression == E.expression.lower()
    assert LetterCase().perturb(E.saying("左边的红色球"), random.Random(0)).status == "unchanged"


@pytest.mark.parametrize("seed", range(20))
def test_a_slip_keeps_letters_ends_and_everything_between_words(seed: int) -> None:
    new = Typos(rate=1.0).perturb(E, random.Random(seed)).example.expression
    assert len(new) == len(E.expression)
    slips = 0
    for old_word, new_word in zip(E.expression.split(), new.split(), strict=True):
        assert Counter(old_word) == Counter(new_word)
        assert (old_word[0], old_word[-1]) == (new_word[0], new_word[-1])
        slips += old_word != new_word
    assert slips == 3, "small, coffee-cup, left: every word of four letters or more, but none shorter"


def test_the_rate_says_how_many_words_and_at_least_one() -> None:
    many = E.saying("small yellow wooden chairs behind other tables")
    words = many.expression.split()
    for rate, expected in ((0.01, 1), (0.5, 4), (1.0, 7)):
        new = Typos(rate=rate).perturb(many, random.Random(1)).example.expression.split()
        assert sum(a != b for a, b in zip(words, new, strict=True)) == expected
    assert Typos().perturb(E.saying("a red cup"), random.Random(0)).status == "unchanged"
    assert Typos(n_draws=4).identity() == Typos().identity()


@pytest.mark.parametrize("bad", [{"rate": 0.0}, {"rate": 1.5}, {"n_draws": 0}])
def test_values_without_sense_are_mistakes(bad: dict[str, float]) -> None:
    with pytest.raises(UserError, match=next(iter(bad))):
        Typos(**bad)  # type: ignore[arg-type]
