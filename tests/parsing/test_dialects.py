"""Answers as models write them, each with the boxes it holds or the reason why it holds none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refadv_ablate.boxes import Box
from refadv_ablate.parsing.dialects import BinBoxes, BracketBoxes, JsonBoxes, PlainBoxes, TaggedBoxes, read
from refadv_ablate.parsing.frames import OriginalPixels, Relative, ResizedPixels, SmartResize
from refadv_ablate.prompting.protocol import RefAdvJson
from refadv_ablate.prompting.som import MarkNumbers
from refadv_ablate.types import NoBox, Reply, Seen

JSON, TAGGED, BRACKETS, PLAIN = JsonBoxes(), TaggedBoxes(), BracketBoxes(), PlainBoxes()
ALL = (JSON, TAGGED, BRACKETS, PLAIN)
SEEN = Seen((640, 480), (640, 480))
A, B, C = (11.0, 22.0, 33.0, 44.0), (55.0, 66.0, 77.0, 88.0), (1.0, 2.0, 3.0, 4.0)

BOXES = [
    # JSON, fenced and bare
    (JSON, '```json\n[\n\t{"bbox_2d": [11, 22, 33, 44], "label": "the cat"}\n]\n```', [A]),
    (JSON, '```\n{"bbox": [11, 22, 33, 44]}\n```', [A]),
    (JSON, '{"bbox_2d": [11, 22, 33, 44]}', [A]),
    (JSON, '{"bboxes": [[11, 22, 33, 44], [55, 66, 77, 88]]}', [A, B]),
    (JSON, '{"boxes": [{"box": [11, 22, 33, 44]}]}', [A]),
    (JSON, '[{"box_2d": [11, 22, 33, 44], "label": "left zebra"}]', [A]),
    (JSON, '{"objects": [{"name": "a", "coordinates": [11, 22, 33, 44]}]}', [A]),
    (JSON, 'The cat is on the left, so:\n\n{"bbox_2d": [11, 22, 33, 44]}', [A]),
    (JSON, '{"bbox_2d": [11, 22, 33, 44]}\nThis is the cat on the left.', [A]),
    (JSON, '<answer>{\n "bbox_2d": [11, 22, 33, 44],\n "label": 3}</answer>', [A]),
    (JSON, '"[{\\"bbox_2d\\": [11, 22, 33, 44]}]"', [A]),
    (JSON, "[{'bbox_2d': [11, 22, 33, 44], 'label': 'the man\\'s hat'}]", [A]),
    (JSON, '{"bbox_2d": [11, 22, 33, 44,], "label": "x",}', [A]),
    (JSON, '{"bbox_2d": "[11, 22, 33, 44]"}', [A]),
    (JSON, '{"x1": 11, "y1": 22, "x2": 33, "y2": 44}', [A]),
    (JSON, '{"bbox": {"xmin": 11, "ymin": 22, "xmax": 33, "ymax": 44}}', [A]),
    (JSON, "[x1: 11, y1: 22, x2: 33, y2: 44]", [A]),
    (JSON, '{"score": [0.1, 0.2, 0.3, 0.4], "bbox": [11, 22, 33, 44]}', [A]),
    (JSON, '{"bbox": [[11, 22], [33, 44]]}', [A]),
    (JSON, "\\boxed{[11, 22, 33, 44]}", [A]),
    (JsonBoxes(order="yxyx"), '{"xmin": 11, "ymin": 22, "xmax": 33, "ymax": 44}', [(22.0, 11.0, 44.0, 33.0)]),
    # the last fence that holds a box, the last of several corrected answers
    (JSON, '```json\n{"bbox": [1,2,3,4]}\n```\nWait:\n```json\n{"bbox": [11,22,33,44]}\n```', [A]),
    (JSON, '```json\n{"bbox": [11,22,33,44]}\n```\nNot to be taken for {"bbox": [1,2,3,4]}', [A]),
    (JSON, '```json\n{"bbox": [11,22,33,44]}\n```\n```python\nprint("done")\n```', [A]),
    (JSON, 'First {"bbox": [1,2,3,4]}. Looking again, that is the other one: {"bbox": [11,22,33,44]}', [A]),
    (TAGGED, "The dog is at [1,2,3,4]. No, wait: [11,22,33,44]", [A]),
    (TAGGED, "The dog is at [1,2,3,4] and the cat I was asked for is at [11,22,33,44]", [A]),
    (TAGGED, "Answer: [11,22,33,44]. The dog, on the other hand, is over there at [1,2,3,4].", [A]),
    (JSON, 'Answer: {"bbox": [11,22,33,44]}', [A]),
    (JSON, '{"answer": [11,22,33,44]}\n{"answer": [55,66,77,88]}', [A, B]),
    # several boxes of one answer: all are kept, the first comes first
    (TAGGED, "1. Person: [11,22,33,44]\n2. Person: [55,66,77,88]", [A, B]),
    (TAGGED, "[11,22,33,44], [55,66,77,88]", [A, B]),
    (TAGGED, "[11,22,33,44] [11,22,33,44]", [A]),
    # box tokens
    (TAGGED, "<ref>the cat</ref><box>[[11, 22, 33, 44]]</box>", [A]),
    (TAGGED, "<ref>a [1,2,3,4]</ref><box>[[11,22,33,44], [55,66,77,88]]</box>", [A, B]),
    (TAGGED, "<ref>a</ref><box>[[11,22,33,44]]</box><ref>b</ref><box>[[55,66,77,88]]</box>", [A, B]),
    (TAGGED, "<box>(11,22),(33,44)</box>", [A]),
    (TAGGED, "<|object_ref_start|>cat<|object_ref_end|><|box_start|>(11,22),(33,44)<|box_end|>", [A]),
    (TAGGED, "The cat is here: <|begin_of_box|>[[11,22,33,44]]<|end_of_box|>", [A]),
    (TAGGED, "<|begin_of_box|>[11,22,33,44]<|end_of_box|>", [A]),
    (TAGGED, "<|begin_of_box|>(11,22,33,44)<|end_of_box|>", [A]),
    (TAGGED, "<|begin_of_box|><11,22,33,44><|end_of_box|>", [A]),
    (TAGGED, '<|begin_of_box|>{"bbox": [11,22,33,44]}<|end_of_box|>', [A]),
    (TAGGED, "<|ref|>cat<|/ref|><|det|>[[11,22,33,44]]<|/det|>", [A]),
    (TAGGED, "[[11,22,33,44]]", [A]),  # the tokens are lost where special tokens are skipped
    (JSON, "<|box_start|>(11,22),(33,44)<|box_end|>", [A]),
    # CogVLM
    (BRACKETS, "[[011,022,033,044]]", [A]),
    (BRACKETS, "The cat [[011,022,033,044;055,066,077,088]] sits.", [A, B]),
    # numbers as they come
    (JSON, "[11.0, 22.00, 33.0, 4.4e1]", [A]),
    (JSON, "[11 22 33 44]", [A]),
    (JSON, "[11., 22., 33., 44.]", [A]),
    (JSON, "[11px, 22px, 33px, 44px]", [A]),
    (JSON, '["11", "22", "33", "44"]', [A]),
    (JSON, "［１１，２２，３３，４４］", [A]),
    (JSON, "【11、22、33、44】", [A]),
    (JSON, "[-5, 22, 33, 44]", [(-5.0, 22.0, 33.0, 44.0)]),
    (JSON, "[[[11, 22, 33, 44]]]", [A]),
    (TAGGED, "(11, 22, 33, 44)", [A]),
    (JSON, "11, 22, 33, 44", [A]),  # the whole answer: nothing else that they could be
    (PLAIN, "11 22 33 44", [A]),
    (PLAIN, "11, 22, 33, 44", [A]),
    # only what follows the thinking trace
    (JSON, '<think>[1,2,3,4]</think>{"bbox": [11,22,33,44]}', [A]),
    (JSON, 'it could be [1,2,3,4]\n</think>\n\n{"bbox": [11,22,33,44]}', [A]),
    (JSON, '<think>a</think> [1,2,3,4] <think>b</think> {"bbox": [11,22,33,44]}', [A]),
    (TAGGED, "◁think▷[1,2,3,4]◁/think▷[11,22,33,44]", [A]),
    (TAGGED, "<think>[1,2,3,4]</think><answer>[11,22,33,44]</answer>", [A]),
    # labels with brackets
    (JSON, '{"label": "the sign [1, 2, 3, 4]", "bbox": [11, 22, 33, 44]}', [A]),
    (JSON, "It looks :( but [11, 22, 33, 44]", [A]),
]

NONE = [
    (JSON, "", "empty", "nothing"),
    (JSON, "[]", "empty", "no box"),
    (JSON, '{"bbox_2d": null}', "empty", "no box"),
    (JSON, '{"bboxes": []}', "empty", "no box"),
    (JSON, "[x1, y1, x2, y2]", "unparsable", "placeholder"),
    (TAGGED, "<box>[[x1, y1, x2, y2]]</box>", "unparsable", "placeholder"),
    (JSON, '{"bbox": [NaN, 1, 2, 3]}', "unparsable", "finite"),
    (JSON, '{"bbox": [Infinity, 1, 2, 3]}', "unparsable", "finite"),
    (JSON, '{"bbox": [true, false, true, 3]}', "unparsable", "truth value"),
    (JSON, "[10%, 20%, 30%, 40%]", "unparsable", "percent"),
    (JSON, "There are 4 people in rows 1 2 3 and 4", "unparsable", "no box"),
    (JSON, "x from 11 to 33 and y from 22 to 44", "unparsable", "no box"),
    (PLAIN, "the box is 11 22 33 44", "unparsable", "no box"),
    (JSON, "[11, 22, 33, 44, 0.9]", "unparsable", "no box"),
    (JSON, "[11, 22, 33]", "unparsable", "no box"),
    (JSON, "[11,22,33,22,33,44,11,44]", "unparsable", "no box"),
    (JSON, "[1,234, 2,345, 3,456, 4,567]", "unparsable", "no box"),
    (JSON, "<loc_12><loc_34><loc_56><loc_78>", "unparsable", "location tokens"),
    (TAGGED, "The region is the sheep in the middle.", "unparsable", "no box"),
    (JSON, "I'm sorry, but I can't identify people in images.", "refused", "prose"),
    (JSON, "I am unable to locate the object.", "refused", "prose"),
    (TAGGED, "There is no red ball in the image.", "empty", "nothing matches"),
    (TAGGED, "The region is the sheep that is not black.", "unparsable", "no box"),
    (TAGGED, "抱歉，图中没有这个物体。", "refused", "prose"),
    (JSON, "<think>It is [11,22,33,44], I am sure", "truncated", "trace"),
    (JSON, '<think>{"bbox": [11,22,33,44]}', "truncated", "trace"),
    (JSON, "</think>", "empty", "nothing"),
    (JSON, '[{"bbox_2d": [11, 22, 3', "truncated", "within a list"),
]


@pytest.mark.parametrize(("dialect", "text", "boxes"), BOXES, ids=[case[1][:40] for case in BOXES])
def test_answers_with_boxes(dialect, text, boxes):
    assert dialect.read(text) == tuple(boxes)


@pytest.mark.parametrize(("dialect", "text", "kind", "reason"), NONE, ids=[case[1][:40] for case in NONE])
def test_answers_without_a_box(dialect, text, kind, reason):
    answer = dialect.read(text)
    assert isinstance(answer, NoBox), answer
    assert answer.kind == kind
    assert reason in answer.reason


def reading(text, dialect=JSON, frame=None, seen=SEEN, **reply):
    return read(Reply(text, **reply), dialect, frame or OriginalPixels(), seen)


class TestFinish:
    def test_a_failed_request_is_never_read(self):
        with pytest.raises(ValueError, match="not an answer"):
            reading("[11, 22, 33, 44]", finish="error")

    def test_empty_reply(self):
        assert reading("  \n").answer == NoBox("empty", "the reply has no text")

    def test_filtered_reply_is_refused_whatever_it_says(self):
        assert reading("[11, 22, 33, 44]", finish="refused").answer.kind == "refused"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "I see a man at [11, 22, 33, 44] next to a",
            "Let me think about where the",
            '{"bbox_2d": [11, 22, 3',
            "<think>[11, 22, 33, 44]",
        ],
    )
    def test_cut_before_the_answer_is_truncated(self, text):
        assert reading(text, finish="length").answer.kind == "truncated"

    def test_cut_within_a_list_keeps_the_complete_boxes_before_the_cut(self):
        text = '```json\n[{"bbox_2d": [11, 22, 33, 44], "label": "a"}, {"bbox_2d": [55, 66'
        found = reading(text, finish="length")
        assert found.answer == Box(*A)
        assert found.n_boxes == 1
        assert found.notes == ("salvaged",)

    @pytest.mark.parametrize(
        "text",
        [
            '```json\n{"bbox": [11, 22, 33, 44]}\n```\nThe cat is grey and sits on the',
            "[11, 22, 33, 44] is where the cat",
            "I think it is here: [11, 22, 33, 44]",
            "<box>[[11, 22, 33, 44]]</box> and some more wo",
        ],
    )
    def test_cut_after_a_whole_answer_keeps_it(self, text):
        assert reading(text, TAGGED, finish="length").answer == Box(*A)

    def test_a_template_that_opens_the_trace_makes_a_cut_reply_all_trace(self):
        text = 'so ```json\n{"bbox": [11, 22, 33, 44]}\n``` hmm, but the other'
        assert reading(text, JsonBoxes(opens_thinking=True), finish="length").answer.kind == "truncated"
        assert reading(text, JsonBoxes(), finish="length").answer == Box(*A)
        apart = reading(
            '{"bbox": [11, 22, 33, 44]}', JsonBoxes(opens_thinking=True), finish="length", reasoning="so"
        )
        assert apart.answer == Box(*A)

    def test_reasoning_is_never_parsed(self):
        found = reading("", reasoning="it is [11, 22, 33, 44]", finish="length")
        assert found.answer.kind == "truncated"

    def test_numbers_in_strings_are_noted(self):
        assert reading('["11", "22", "33", "44"]').notes == ("numbers_as_text",)
        assert reading('{"bbox": ["11", "22", "33", "44"], "label": "7"}').answer == Box(*A)


# Each dialect in each frame, the box worked out by hand: image 640×480, sent as it is.
# Qwen2.5-VL's processor makes 644×476 of it: x·640/644, y·480/476.
QWEN = ResizedPixels(SmartResize(28, 3136, 12845056))
YXYX = Relative(1000, "yxyx")
GOLDEN = [
    (JSON, '{"bbox_2d": [250, 500, 750, 750]}', Relative(1000), Box(160, 240, 480, 360)),
    (JSON, '{"bbox_2d": [161, 119, 322, 357]}', QWEN, Box(160, 120, 320, 360)),
    (JSON, '{"bbox_2d": [161, 119, 322, 357]}', OriginalPixels(), Box(161, 119, 322, 357)),
    (JSON, '[{"box_2d": [500, 250, 750, 750], "label": "x"}]', YXYX, Box(160, 240, 480, 360)),
    (JSON, '{"bbox_2d": [0.25, 0.5, 0.75, 0.75]}', Relative(1), Box(160, 240, 480, 360)),
    (TAGGED, "<box>[[250, 500, 750, 750]]</box>", Relative(1000), Box(160, 240, 480, 360)),
    (TAGGED, "<|begin_of_box|>[250,500,750,750]<|end_of_box|>", Relative(1000), Box(160, 240, 480, 360)),
    (TAGGED, "<|box_start|>(161,119),(322,357)<|box_end|>", QWEN, Box(160, 120, 320, 360)),
    (TAGGED, "<|det|>[[0, 333, 999, 666]]<|/det|>", Relative(999), Box(0, 160, 640, 320)),
    (BRACKETS, "[[025,050,750,100]]", Relative(1000), Box(16, 24, 480, 48)),
    (PLAIN, "16 24 480 48", OriginalPixels(), Box(16, 24, 480, 48)),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "text", "frame", "box"), GOLDEN)
def test_golden_answers_in_original_pixels(dialect, text, frame, box):
    found = reading(text, dialect, frame)
    assert found.answer.as_list() == pytest.approx(box.as_list(), abs=1e-9)
    assert found.notes == ()


PIECES = st.sampled_from(
    ["[", "]", "{", "}", "(", ")", "<box>", "</box>", "<think>", "</think>", "```json", "```", '"bbox_2d"',
     ":", ",", ";", "1", "22.5", "-3", "NaN", "true", "null", " ", "\n", "'", '"', "\\", "answer:", "and",
     "No, wait", "［", "１", "<|begin_of_box|>", "<|box_end|>", "<answer>", "</answer>", "%", "1e999",
     "x1", "[1,2,3,4]"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map("".join))


@given(
    TEXTS, st.sampled_from(["stop", "length"]), st.sampled_from([*ALL, RefAdvJson(), MarkNumbers((Box(*A),))])
)
@settings(max_examples=250, deadline=None)
def test_reading_is_total(text, finish, dialect):
    for frame in (Relative(1000), Relative(1, "yxyx"), QWEN):
        found = read(Reply(text, finish=finish), dialect, frame, SEEN)
        if isinstance(found.answer, Box):
            assert found.answer.inside(SEEN.original)
            assert found.n_boxes >= 1
        else:
            assert found.answer.kind in ("empty", "unparsable", "refused", "truncated")
            assert found.answer.reason


@given(
    st.tuples(*[st.integers(0, 999) | st.floats(0, 999).map(lambda v: round(v, 3))] * 4),
    st.sampled_from(
        [
            "{}",
            "({})",
            "<box>[{}]</box>",
            "```json\n{}\n```",
            'Here: {{"bbox_2d": {}}}',
            "<answer>{}</answer>",
        ]
    ),
)
def test_any_list_of_four_numbers_is_read_as_written(numbers, template):
    text = template.format("[" + ", ".join(map(str, numbers)) + "]")
    assert TAGGED.read(text) == (tuple(map(float, numbers)),)


@pytest.mark.timeout(60)  # milliseconds each; where work grows with the square of the length, minutes
@pytest.mark.parametrize(
    "text",
    ["[" * 30_000, '["' * 20_000, "['\\" * 5_000, "[1;" * 10_000, '["\\' * 30_000, "<box>" * 50_000,
     "<answer>" * 30_000, "```" * 50_000, "(1" * 10_000, "[1,2,3,4] no " * 3_000,
     "answer: [1,2,3,4] " * 3_000],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_long_replies_end(text):
    assert JSON.read(text) is not None


@pytest.mark.parametrize(
    ("same", "others", "loops"), [(10, 0, True), (9, 0, False), (5, 5, False), (6, 5, True), (6, 4, True)]
)
def test_one_box_over_and_over_is_noted(same, others, loops):
    boxes = ["[11, 22, 33, 44]"] * same + [f"[{n}, 1, 99, 99]" for n in range(others)]
    text = "\n".join(f'{{"bbox_2d": {box}, "label": "a"}}' for box in boxes)
    found = read(Reply(f"```json\n[{text.replace(chr(10), ',')}]\n```"), JSON, OriginalPixels(), SEEN)
    assert found.answer == Box(*A)
    assert found.raw == A
    assert ("repeated" in found.notes) is loops


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        (TAGGED, "<box>[[11, 22, 33, 44]]</box>"),
        (TAGGED, "[11, 22, 33, 44]\n"),
        (PLAIN, '{"bbox_2d": [11, 22, 33, 44]}\n'),
        (BinBoxes(), "<11><22><33><44>,"),
        (JsonBoxes(pairs=True), "<|box_start|>(11,22),(33,44)<|box_end|>"),
    ],
)
def test_a_loop_is_noted_in_any_spelling(dialect, said):
    found = [read(Reply(said * times), dialect, OriginalPixels(), SEEN) for times in (1, 9, 30)]
    assert [one.raw for one in found] == [A, A, A]
    assert ["repeated" in one.notes for one in found] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("It may be [1, 2, 3, 4], or", "truncated"),
        ("<think>It may be [1, 2, 3, 4], or", "truncated"),
        ('It may be another.</think>\n{"bbox": [11, 22, 33, 44]}', "box"),
    ],
)
def test_a_cut_trace_that_the_template_opened_is_no_answer(text, kind):
    dialect = JsonBoxes(opens_thinking=True)
    found = read(Reply(text, finish="length"), dialect, OriginalPixels(), SEEN).answer
    assert (found.kind if isinstance(found, NoBox) else "box") == kind
