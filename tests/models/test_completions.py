"""What a chat completion says: which 200 is an answer, and which reports a failure or nothing at all."""

from __future__ import annotations

from typing import Any

import pytest

from refadv_ablate.models.servers.completion import FINISHES, ReportedFailure, reply_of
from refadv_ablate.types import Price, Reply


def completion(message: Any = None, finish: Any = "stop", usage: Any = None, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "[1, 2, 3, 4]"} if message is None else message
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage, **more}


def read(body: Any) -> Reply:
    return reply_of(body, Price(1.0, 1.0), 0.5, 2)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[1, 2, 3, 4]", "[1, 2, 3, 4]"),
        ([{"type": "text", "text": "[1, 2, "}, {"type": "text", "text": "3, 4]"}], "[1, 2, 3, 4]"),
        ([{"type": "thinking", "thinking": "[9, 9, 9, 9]"}, {"type": "text", "text": "it"}], "it"),
        (["[1, 2, 3, 4]"], "[1, 2, 3, 4]"),
        ([{"text": "[1, 2, 3, 4]"}], "[1, 2, 3, 4]"),
        ("", ""),
    ],
)
def test_content_is_text_or_its_parts(content: Any, text: str) -> None:
    assert read(completion({"content": content})).text == text


@pytest.mark.parametrize(("reason", "finish"), [*FINISHES.items(), ("STOP", "stop"), ("SAFETY", "refused")])
def test_known_finish_reasons(reason: str, finish: str) -> None:
    assert read(completion(finish=reason)).finish == finish


@pytest.mark.parametrize("reason", ["error", "abort", "cancelled", "load", "", None, 1, ["stop"]])
def test_a_finish_reason_that_ends_no_answer_is_a_failure(reason: Any) -> None:
    with pytest.raises(ReportedFailure, match="finish_reason"):
        read(completion(finish=reason))


@pytest.mark.parametrize(
    ("body", "words", "code"),
    [
        (completion(error={"message": "CUDA error", "code": 502}), "CUDA error", 502),
        ({"error": "overloaded"}, "overloaded", None),
        ({"error": {"type": "server_error"}}, "server_error", None),
        ({"object": "error", "message": "model is loading", "code": 40303}, "model is loading", None),
        ({"choices": [{"error": {"message": "upstream"}, "finish_reason": "stop"}]}, "upstream", None),
    ],
)
def test_a_200_that_reports_a_failure_is_one(body: Any, words: str, code: int | None) -> None:
    with pytest.raises(ReportedFailure, match=words) as caught:
        read(body)
    assert caught.value.code == code


NONSENSE: list[Any] = [
    None,
    [],
    "text",
    7,
    {},
    {"choices": None},
    {"choices": []},
    {"choices": {}},
    {"choices": [None]},
    {"choices": ["stop"]},
    {"choices": [{"message": None, "finish_reason": "stop"}]},
    {"choices": [{"message": [], "finish_reason": "stop"}]},
    {"choices": [{"finish_reason": "stop"}]},
    completion({}),
    completion({"content": None}),
    completion({"content": []}),
    completion({"content": 7}),
    completion({"content": {"text": "x"}}),
    completion({"content": [7]}),
    completion({"content": [{"type": "text", "text": 7}]}),
    completion({"content": "x", "refusal": 7}),
    completion({"content": "x", "reasoning_content": 7}),
    completion(usage="many"),
    completion(usage=[1, 2]),
    *(
        completion(usage={"prompt_tokens": count, "completion_tokens": 1})
        for count in ("ten", -1, 1.5, True, [1], float("nan"), 1e300)
    ),
]


@pytest.mark.parametrize("body", NONSENSE, ids=lambda body: str(body)[:60])
def test_a_body_that_is_no_completion_is_unreadable_and_nothing_else(body: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read(body)


def test_counts_may_be_absent_or_written_as_floats() -> None:
    assert read(completion()).usage.input_tokens == 0
    used = read(completion(usage={"prompt_tokens": 12.0, "completion_tokens": None})).usage
    assert (used.input_tokens, used.output_tokens) == (12, 0)
    assert isinstance(used.input_tokens, int)


def test_refusals_calls_and_traces_are_answers_without_text() -> None:
    refused = read(completion({"content": None, "refusal": "I can't."}))
    assert (refused.text, refused.finish) == ("I can't.", "refused")
    called = read(completion({"content": None, "tool_calls": [{"id": "1"}]}, finish="tool_calls"))
    assert (called.text, called.finish) == ("", "stop")
    thought = read(completion({"content": None, "reasoning": "long"}, finish="length"))
    assert (thought.text, thought.finish, thought.reasoning) == ("", "length", "long")
