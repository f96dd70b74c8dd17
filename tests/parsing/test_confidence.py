"""How sure an answer is: the tokens of the box that was read, and of nothing else."""

from __future__ import annotations

import math

import pytest

from refadv_ablate.boxes import Box
from refadv_ablate.models.token_logprobs import aligned
from refadv_ablate.parsing.confidence import NOT_GIVEN, NOT_LOCATED, confidence, rounded
from refadv_ablate.parsing.dialects import BinBoxes, JsonBoxes, PlainBoxes, TaggedBoxes, read
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.parsing.rejection import with_none
from refadv_ablate.prompting.som import MarkNumbers
from refadv_ablate.types import Confidence, NoBox, Reading, Reply, Seen, TokenLogprobs

SEEN = Seen((1000, 1000), (1000, 1000))


def reply(text: str, sure: str, p: float = 0.5, **more) -> Reply:
    """A reply of one-character tokens that are certain, but for the characters of `sure`, each of p."""
    start = text.rindex(sure)
    values = [
        math.log(p) if start <= i < start + len(sure) and c in sure else -0.001 for i, c in enumerate(text)
    ]
    return Reply(text, logprobs=aligned(list(text), values, text), **more)


def of(answer: Reply, dialect: object = None, marks=(), first=False):
    reading = read(answer, dialect or JsonBoxes(), OriginalPixels(), SEEN)
    return confidence(answer, with_none(reading, answer), marks, first)


DIGITS = "12, 305, 480, 999"


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ('```json\n[{"bbox_2d": [12, 305, 480, 999], "label": "cup 7"}]\n```', JsonBoxes()),
        ("<box>[[12, 305, 480, 999]]</box>", TaggedBoxes()),
        ("First [1, 2, 3, 4] might be it, but no. Final answer: [12, 305, 480, 999]", PlainBoxes()),
        ("<think>[12, 305, 480, 999]?</think>[12, 305, 480, 999] and 5 more", PlainBoxes()),
        ('{"x1": 12, "y1": 305, "x2": 480, "y2": 999}', JsonBoxes()),
        ('{"bbox": [12, 305, 468, 694], "format": "xywh"}', JsonBoxes()),
    ],
)
def test_only_the_four_numbers_of_the_box_count(text: str, dialect: object) -> None:
    reading = read(Reply(text), dialect, OriginalPixels(), SEEN)
    assert reading.answer == Box(12, 305, 480, 999)
    half = [math.log(0.5) if c.isdigit() else math.log(0.999) for c in text]
    found = confidence(Reply(text, logprobs=aligned(list(text), half, text)), reading)
    assert isinstance(found, Confidence)
    assert (found.value, found.least, found.tokens) == (0.5, 0.5, 11)
    assert found.joint == pytest.approx(0.5**11, rel=1e-2)


def test_bins_and_whole_tokens() -> None:
    text = "<|box_start|><12><305><480><999><|box_end|>"
    tokens = ["<|box_start|>", "<12>", "<305>", "<480>", "<999>", "<|box_end|>"]
    values = [-9.0, *(math.log(p) for p in (0.9, 0.8, 0.7, 0.6)), -9.0]
    found = of(Reply(text, logprobs=aligned(tokens, values, text)), BinBoxes())
    assert isinstance(found, Confidence)
    assert found.joint == pytest.approx(0.9 * 0.8 * 0.7 * 0.6, rel=1e-2)
    assert found.value == pytest.approx((0.9 * 0.8 * 0.7 * 0.6) ** 0.25, abs=1e-3)
    assert (found.least, found.tokens) == (0.6, 4)


def test_the_last_of_equal_boxes_counts_and_the_first_where_the_family_takes_the_first() -> None:
    text = "[1, 2, 3, 4] so [1, 2, 3, 4]"
    late = reply(text, "1, 2, 3, 4", 0.5)
    assert of(late, PlainBoxes()) == Confidence(0.5, 0.0625, 0.5, 4)
    early = of(late, PlainBoxes(), first=True)
    assert isinstance(early, Confidence) and early.value > 0.99


def test_a_mark_is_its_number() -> None:
    marks = ((1.0, 2.0, 30.0, 40.0), (5.0, 6.0, 70.0, 80.0))
    dialect = MarkNumbers(tuple(Box(*m) for m in marks))
    found = of(reply("Mark 1 is a dog, so the answer is [2]", "2", 0.25), dialect, marks)
    assert found == Confidence(0.25, 0.25, 0.25, 1)


@pytest.mark.parametrize(("text", "tokens"), [("none", 4), ("```json\n[]\n```", 4), ("[]", 2)])
def test_the_answer_none_has_a_confidence_too(text: str, tokens: int) -> None:
    answer = Reply(text, logprobs=aligned(list(text), [math.log(0.5)] * len(text), text))
    found = of(answer)
    assert isinstance(found, Confidence) and found.value == 0.5
    assert found.tokens == tokens


def test_what_has_none_says_why_and_is_never_zero() -> None:
    box = "[1, 2, 30, 40]"
    assert of(Reply(box), PlainBoxes()) is None, "nobody asked"
    assert of(Reply(box, logprobs=TokenLogprobs(lacks="refused")), PlainBoxes()) == NOT_GIVEN
    assert of(Reply("no idea", logprobs=TokenLogprobs(0, (7,), (-1.0,)))) is None
    elsewhere = Reading(Box(9, 9, 99, 99), 1, (9.0, 9.0, 99.0, 99.0))
    assert confidence(reply(box, "1"), elsewhere) == NOT_LOCATED
    assert confidence(Reply(box), Reading(NoBox("empty"))) is None


def test_an_engines_own_score_goes_first() -> None:
    own = Reply("[1, 2, 30, 40]", confidence=Confidence(0.43))
    assert of(own, PlainBoxes()) == Confidence(0.43)


def test_rounding_tells_sure_answers_apart() -> None:
    assert [rounded(p) for p in (0.0, 1.0, 0.5, 0.99964321, 0.00041234, 0.93217)] == [
        0.0, 1.0, 0.5, 0.999643, 0.000412, 0.9322,
    ]  # fmt: skip
