"""The answer "none": what says so counts only where the prompt allowed it."""

from __future__ import annotations

import pytest

from refadv_ablate.parsing.dialects import JsonBoxes, PlainBoxes, TaggedBoxes, read
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.parsing.rejection import with_none
from refadv_ablate.types import NoBox, Reading, Reply, Seen

SEEN = Seen((640, 480), (640, 480))


def kind(text: str, dialect: object = None, **more) -> str:
    reply = Reply(text, **more)
    found: Reading = with_none(read(reply, dialect or JsonBoxes(), OriginalPixels(), SEEN), reply)
    return found.answer.kind if isinstance(found.answer, NoBox) else "box"


@pytest.mark.parametrize(
    "text",
    [
        "[]", "```json\n[]\n```", "[[]]", "null", '{"bbox_2d": null}', '{"bboxes": []}', "none", "None.",
        '"none"', "<answer>none</answer>", "<think>no box [1, 2, 30, 40] fits</think>none", "<box>[[]]</box>",
        "There is no red circle in the image.", "No object matches the description.", "none of them matches",
        "I'm sorry, but there is no such object in the picture.", "没有符合的物体",
    ],
)  # fmt: skip
def test_what_says_that_nothing_matches_is_none(text: str) -> None:
    assert kind(text) == kind(text, TaggedBoxes()) == kind(text, PlainBoxes()) == "none"
    reading = read(Reply(text), JsonBoxes(), OriginalPixels(), SEEN)
    assert isinstance(reading.answer, NoBox) and reading.answer.kind != "none", "not without such a prompt"


@pytest.mark.parametrize(
    ("text", "finish", "expected"),
    [
        ("", "stop", "empty"),
        ("<think>hm</think>", "stop", "empty"),
        ("I'm sorry, I can't help with that.", "stop", "refused"),
        ("", "refused", "refused"),
        ("There is no", "length", "truncated"),
        ("the circle on the left", "stop", "unparsable"),
        ("[1, 2, 30, 40]", "stop", "box"),
        ('There is no red one; the nearest is {"bbox_2d": [1, 2, 30, 40]}', "stop", "box"),
    ],
)
def test_what_does_not_say_so_stays_what_it_is(text: str, finish: str, expected: str) -> None:
    assert kind(text, finish=finish) == expected
