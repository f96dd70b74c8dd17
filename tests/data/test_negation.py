"""The cue rule for negation, and its agreement with people's flags."""

from __future__ import annotations

import pytest

from refadv_ablate.data.negation import Agreement, agreement, cues, cues_of, negated, tokenised

NEGATED = [
    ("the man not wearing a hat", "negator"),
    ("the man who isn't red", "negator"),
    ("the man who isn’t red", "negator"),
    ("person that doesnt sit", "negator"),
    ("what you cannot see", "negator"),
    ("no hat", "negator"),
    ("the one without glasses", "negator"),
    ("neither red nor blue", "negator"),
    ("NOT THE RED ONE", "negator"),
    ("Not the left guy", "negator"),
    ("never seen before", "negator"),
    ("none of the left ones", "negator"),
    ("the left rather than the right cup", "contrast"),
    ("cup instead of glass", "contrast"),
    ("a digit other than one", "contrast"),
    ("everyone except him", "contrast"),
    ("the car lacking a plate", "absence"),
    ("the non-white cup", "affix"),
    ("non foreground performer", "affix"),
    ("the less visible cup", "inferiority"),
    ("the one with the fewest dots", "inferiority"),
]

PLAIN = [
    "the red cup",
    "shirt no. 5",
    "No. 5 bus",
    "bus no 12",
    "at least two magnets",
    "more or less red",
    "not only the cap",
    "nothing but water",
    "the no parking sign",
    "car by the no-entry sign",
    "the white Do Not Enter sign",
    'the cup that says "no"',
    "the cup that says “not mine”",
    "the knot in the northern notebook",
    "a sleeveless shirt",
    "",
]


@pytest.mark.parametrize(("text", "kind"), NEGATED)
def test_cues_are_found_with_their_kind_and_place(text: str, kind: str) -> None:
    found = cues(text)
    assert found[0].kind == kind
    assert all(text[cue.start : cue.end] == cue.text for cue in found)
    assert negated(text)


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_looks_like_a_cue_is_none(text: str) -> None:
    assert cues(text) == ()
    assert not negated(text)


def test_a_stream_gives_what_single_calls_give() -> None:
    texts = [text for text, _ in NEGATED] + PLAIN
    assert [cues_of(doc) for doc in tokenised(texts)] == [cues(text) for text in texts]


def test_strange_texts_are_no_trouble() -> None:
    for text in (
        "…",
        "  ",
        "🐶 not 🐱",
        "не тот",
        "no" * 500,
        'a " not',
        "b;ack keyboard",
        "rightest guyin black",
    ):
        cues(text)


def test_agreement_counts() -> None:
    found = agreement([(True, True), (True, False), (False, True), (True, True), (False, False)])
    assert found == Agreement(n=5, both=2, rule_only=1, flag_only=1)
    assert (found.precision, found.recall) == (2 / 3, 2 / 3)
    assert (agreement([]).precision, agreement([(False, False)]).recall) == (None, None)
