"""Fixed text, identity, repeat."""

from __future__ import annotations

import random

import pytest

from perturbations import Fixed, Identity, Repeat
from refadv_ablate.errors import UserError
from tests.scripted import example


def test_the_fixed_text_is_the_papers_and_can_be_another() -> None:
    e = example(0)
    assert Fixed().perturb(e, random.Random(0)).example.expression == "the one"
    assert Fixed(text="it").perturb(e, random.Random(0)).example.expression == "it"
    assert Fixed().perturb(e.saying("the one"), random.Random(0)).status == "unchanged"


def test_an_empty_fixed_text_is_a_mistake() -> None:
    with pytest.raises(UserError, match="empty"):
        Fixed(text="  ")


def test_identity_and_repeat_leave_the_text_and_only_repeat_asks_again() -> None:
    e = example(0)
    for operator in (Identity(), Repeat(n=3)):
        p = operator.perturb(e, random.Random(0))
        assert (p.status, p.example) == ("unchanged", e)
    assert (Repeat.repeat, Repeat(n=3).draws, Identity.repeat, Fixed.repeat) == (True, 3, False, False)


def test_repeating_less_than_once_is_a_mistake() -> None:
    with pytest.raises(UserError, match=r"repeat\.n"):
        Repeat(n=0)
