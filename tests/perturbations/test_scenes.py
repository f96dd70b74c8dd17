"""The reader of drawn scenes against the generator's own meanings, which it never sees."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import pytest

from perturbations import scenes
from refadv_ablate.data.shapes import Shapes, compose, language, scene, wording
from refadv_ablate.types import Candidate, Example
from tests.scripted import example

DATA = tuple(Shapes(n=240))


def test_the_vocabulary_is_that_of_the_drawn_scenes() -> None:
    assert scenes.SHAPES == scene.SHAPES
    assert scenes.VALUES == {"size": scene.SIZES, "fill": scene.FILLS, "colour": scene.COLOURS}
    assert scenes.MARGIN == language.MARGIN
    assert scenes.SIDES == wording.SIDES
    assert scenes.MOST == language.MOST
    assert scenes.EDGE == language.EDGE
    assert tuple(language.NTH.values()) == scenes.NTH


def test_every_expression_is_read_and_fits_its_target_alone() -> None:
    for e in DATA:
        found = scenes.resolved(e)
        assert isinstance(found, scenes.Resolved), (e.expression, found)
        assert found.target == e.attributes["target_index"]
        assert sorted(p.text.replace(" … ", " ") for p in found.sentence.pieces) == sorted(
            e.attributes["descriptors"]
        )


def as_ours(meaning: language.Meaning) -> scenes.Meaning:
    """The generator's meaning in the reader's types."""
    modifier = meaning.modifier
    ours: scenes.Relation | scenes.Rank | scenes.Without | None = None
    if isinstance(modifier, language.Relation):
        ours = scenes.Relation(modifier.side, phrase(modifier.landmark))
    elif isinstance(modifier, language.Rank):
        ours = scenes.Rank(modifier.side, modifier.n)
    elif isinstance(modifier, language.Without):
        ours = scenes.Without(modifier.value)
    return scenes.Meaning(phrase(meaning.head), ours)


def phrase(own: language.Phrase) -> scenes.Phrase:
    said = ((name, getattr(own, name)) for name in language.ATTRIBUTES)
    return scenes.Phrase(own.shape, tuple((name, value) for name, value in said if value))


def test_meanings_and_what_they_fit_are_those_of_the_generator() -> None:
    """Also of meanings that fit several or none: the sayings reduced and swapped."""
    compared = 0
    for seed in range(60):
        rng = random.Random(seed)
        drawn, sayings = compose(rng, 420, 2)
        theirs = language.Denotation(drawn)
        things = tuple(
            {"shape": i.shape, "colour": i.colour, "size": i.size, "fill": i.fill} for i in drawn.items
        )
        ours = scenes.Scene(things, tuple((x, y) for x, y in theirs.places))
        for saying in sayings:
            for meaning in (saying.meaning, *saying.meaning.reduced(), *saying.meaning.swapped()):
                text, _ = wording.say(meaning, rng)
                read = scenes.read(text)
                assert read is not None, text
                assert read.meaning == as_ours(meaning), text
                assert ours.fits(read.meaning) == theirs.of(meaning), text
                assert ours.clear(read.meaning) == theirs.clear(meaning), text
                compared += 1
    assert compared > 300


def test_keeping_descriptors_gives_a_sentence_with_those_and_no_others() -> None:
    for e in DATA[:60]:
        sentence = scenes.read(e.expression)
        assert sentence is not None
        count = len(sentence.pieces)
        for kept in (k for size in range(count + 1) for k in combinations(range(count), size)):
            less = sentence.keeping(kept)
            assert [p.text for p in less.pieces] == [sentence.pieces[i].text for i in kept]
            assert less.meaning.head.shape == sentence.meaning.head.shape
        assert sentence.keeping(range(count)) == sentence
        assert sentence.keeping(()).text == f"the {e.category}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "red circle",
        "the red",
        "the circle red",
        "the second circle",
        "the circle from the left",
        "the leftmost circle from the left",
        "the leftmost circle left of the star",
        "the red blue circle",
        "the circle that is not circle",
        "the circle left of the",
        "the red circle.",
        "the man in a red hat",
    ],
)
def test_what_is_no_sentence_means_nothing(text: str) -> None:
    assert scenes.read(text) is None


def test_an_example_that_cannot_be_resolved_says_why() -> None:
    e = DATA[0]
    bare = tuple(Candidate(c.box, c.category) for c in e.candidates)
    other = next(c.box for c in e.candidates if c.box != e.target)
    cases: list[tuple[Example, str]] = [
        (replace(e, candidates=()), "no candidate boxes"),
        (replace(e, candidates=bare), "look like"),
        (example(1), "look like"),
        (e.saying("that one over there"), "no sentence"),
        (e.saying(f"the {e.category}"), "fits"),
        (replace(e, target=other), "another one than the target"),
    ]
    for broken, reason in cases:
        found = scenes.resolved(broken)
        assert isinstance(found, str)
        assert reason in found


def test_places_are_in_the_frame_of_the_image_that_is_asked_about() -> None:
    """Candidates mirrored with their picture: the same object is meant by the swapped words."""
    seen = 0
    for e in DATA:
        if "left" not in e.expression and "right" not in e.expression:
            continue
        width = e.image.size()[0]

        def flipped(box: scenes.Box, width: int = width) -> scenes.Box:
            return scenes.Box(width - box.x2, box.y1, width - box.x1, box.y2)

        text = e.expression.replace("left", "\0").replace("right", "left").replace("\0", "right")
        mirrored = replace(
            e,
            expression=text,
            target=flipped(e.target),
            candidates=tuple(replace(c, box=flipped(c.box)) for c in e.candidates),
        )
        found = scenes.resolved(mirrored)
        assert isinstance(found, scenes.Resolved), (text, found)
        assert found.target == e.attributes["target_index"]
        seen += 1
    assert seen > 50
