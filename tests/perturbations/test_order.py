"""Bag of words."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from perturbations import BagOfWords
from perturbations.order import words
from perturbations.word_kinds import displaced
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import generator
from tests.scripted import example


def shuffled(text: str, seed: int = 0) -> str:
    return BagOfWords().perturb(example(0).saying(text), generator(seed, "e0", "bow", 0)).example.expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a red ball with yellow stripes", ["a", "red", "ball", "with", "yellow", "stripes"]),
        ("The left-most T-shirt, not the man's.", ["The", "left-most", "T-shirt", "not", "the", "man's"]),
        ("the dogs' bowl and the ‘big’ “Audi”", ["the", "dogs'", "bowl", "and", "the", "big", "Audi"]),
        ("'24 hour' sign", ["24", "hour", "sign"]),
        ("a 2.5 m pole (left), #3 at 50%", ["a", "2.5", "m", "pole", "left", "#3", "at", "50%"]),
        ("cat,dog;bird", ["cat", "dog", "bird"]),
        ("the one — with U.S. flag...", ["the", "one", "with", "U.S.", "flag"]),
        ("person(s) & dogs", ["person(s)", "&", "dogs"]),
        ("the 🐶 on the left", ["the", "🐶", "on", "the", "left"]),
        ("¿dónde está?", ["dónde", "está"]),
        ("guy w/ hat @ left -> door", ["guy", "w/", "hat", "@", "left", "->", "door"]),
        ("a w/ b, => c, w/o 'd'", ["a", "w/", "b", "=>", "c", "w/o", "d"]),
        ("  ", []),
        ("?!", []),
    ],
)
def test_a_word_keeps_what_belongs_to_it_and_punctuation_between_words_goes(
    text: str, expected: list[str]
) -> None:
    assert words(text) == expected


def test_the_papers_example_is_one_of_its_orders() -> None:
    target = "with yellow red ball stripes a"
    assert sorted(target.split()) == sorted(shuffled("a red ball with yellow stripes").split())
    drawn = {shuffled("a red ball with yellow stripes", s) for s in range(20_000)}
    assert target in drawn
    assert len(drawn) == 719, "every order but the original one"


@given(st.lists(st.sampled_from(["a", "b", "B", "c-c", "d's"]), min_size=0, max_size=6), st.integers(0, 99))
def test_the_words_are_kept_and_the_order_never_is_where_another_exists(old: list[str], seed: int) -> None:
    text = " ".join(old)
    new = shuffled(text, seed)
    assert Counter(new.split()) == Counter(old)
    assert (new != text) == (len(set(old)) > 1)


@pytest.mark.parametrize("text", ["zebra", "zebra zebra", "zebra, zebra.", "", " "])
def test_one_distinct_word_is_unchanged_to_the_letter(text: str) -> None:
    p = BagOfWords().perturb(example(0).saying(text), generator(0, "x"))
    assert (p.status, p.example.expression) == ("unchanged", text)
    assert p.reason


@pytest.mark.parametrize("text", ["a b c d", "a a b c", "a a a b b"])
def test_every_other_order_is_equally_likely(text: str) -> None:
    orders = {" ".join(p) for p in permutations(text.split())} - {text}
    n = 200 * len(orders)
    counts = Counter(shuffled(text, seed) for seed in range(n))
    assert set(counts) == orders
    assert chisquare([counts[o] for o in sorted(orders)]).pvalue > 1e-4


def test_draws_are_independent_and_more_of_them_keep_the_first() -> None:
    e = example(0).saying("the small red cup left of the big blue jar")
    operator = BagOfWords(n_shuffles=5)
    assert operator.draws == 5
    texts = [operator.perturb(e, generator(0, e.id, "bow", d)).example.expression for d in range(5)]
    assert len(set(texts)) == 5
    assert BagOfWords().perturb(e, generator(0, e.id, "bow", 0)).example.expression == texts[0]
    assert BagOfWords().identity() == operator.identity(), "how many are drawn changes no text"


def test_the_trace_says_where_each_word_came_from() -> None:
    e = example(0).saying("the man, in red")
    p = BagOfWords().perturb(e, generator(3, e.id))
    old = words(e.expression)
    assert [old[i] for i in p.trace["order"]] == p.example.expression.split()


@pytest.mark.parametrize("n", [0, -1])
def test_no_shuffles_is_a_mistake(n: int) -> None:
    with pytest.raises(UserError, match="n_shuffles"):
        BagOfWords(n_shuffles=n)


@pytest.mark.parametrize(
    ("old", "order", "kinds"),
    [
        ("the red cup not on the left", [0, 1, 2, 3, 4, 5, 6], []),
        # red stands between cup and left: still beside cup
        ("the red cup not on the left", [2, 1, 6, 4, 0, 3, 5], ["location", "negation", "relation"]),
        ("third cat", [1, 0], []),  # two words have no other neighbours
        ("third black cat behind", [2, 0, 3, 1], ["attribute", "ordinal", "relation"]),
        ("cat isn't here", [1, 0, 2], []),
        ("a b isn't c d", [2, 0, 3, 1, 4], ["negation"]),
    ],
)
def test_words_that_lost_both_neighbours_are_displaced(old, order, kinds):
    assert displaced(old.split(), order) == kinds


def test_the_trace_of_a_shuffle_names_the_kinds_that_it_displaced():
    p = BagOfWords().perturb(
        example(0).saying("the third red cup behind the plate on the left"), generator(3, "e0", "bow", 0)
    )
    assert p.trace["displaced"] == displaced(words(p.original.expression), p.trace["order"])
    assert p.trace["displaced"]
