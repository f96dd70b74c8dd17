"""What a chat completion says: the JSON of a 200, taken for an answer only where it is one.

Servers and gateways report failures inside a 200 as well: a top-level `error`, a choice without a message,
a finish reason such as "error" or "abort". None of these is an answer, and none is ever scored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from refadv_ablate.errors import shown
from refadv_ablate.models.servers.budget import cost
from refadv_ablate.models.token_logprobs import aligned
from refadv_ablate.types import Json, Price, Reply, TokenLogprobs, Usage

Finish = Literal["stop", "length", "refused"]

FINISHES: Mapping[str, Finish] = {
    "stop": "stop",  # OpenAI, vLLM, SGLang, LMDeploy
    "eos_token": "stop",  # Text Generation Inference
    "stop_sequence": "stop",  # Text Generation Inference, Anthropic
    "end_turn": "stop",  # Anthropic
    "tool_calls": "stop",  # the model ended its turn by a call; its text, if any, is what it said
    "function_call": "stop",
    "tool_use": "stop",  # Anthropic
    "length": "length",
    "max_tokens": "length",  # Anthropic, Gemini
    "model_length": "length",  # Mistral
    "model_context_window_exceeded": "length",  # Anthropic
    "content_filter": "refused",
    "refusal": "refused",  # Anthropic
    "safety": "refused",  # Gemini, as are the next
    "prohibited_content": "refused",
    "recitation": "refused",
    "blocklist": "refused",
}
"""Finish reason, in lower case → what it means here. One that isn't listed is no end of an answer."""


class Unreadable(ValueError):
    """A 200 whose body is no chat completion."""


class ReportedFailure(ValueError):
    """A 200 whose body says that the request failed; `code` is the HTTP status that it names, if any."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


def reply_of(body: Json, price: Price, seconds: float, attempts: int, logprobs: bool = False) -> Reply:
    """A chat completion as a Reply; with the log-probabilities of its tokens, where they were asked for.

    Raises ReportedFailure for a body that tells of a failure, Unreadable for one that is none.
    """
    if not isinstance(body, Mapping):
        raise Unreadable(f"no JSON object but {shown(body)}")
    _check_error(body)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise Unreadable(f"no choices in it: {shown(choices)}")
    choice = choices[0]
    _check_error(choice)
    finish, message = _finish(choice.get("finish_reason")), choice.get("message")
    if not isinstance(message, Mapping):
        raise Unreadable(f"the choice has no message: {shown(message)}")
    content, refusal = _text(message.get("content")), _text(message.get("refusal"))
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    if finish == "stop" and content is None and not (refusal or reasoning or message.get("tool_calls")):
        raise Unreadable("the choice is empty")
    return Reply(
        text=content or refusal or "",
        finish="refused" if refusal and not content else finish,
        reasoning=reasoning or "",
        usage=_usage(body.get("usage"), price),
        seconds=seconds,
        attempts=attempts,
        logprobs=_logprobs(choice.get("logprobs"), content or "") if logprobs else None,
    )


NONE_GIVEN = "the server gave no log-probabilities"


def _logprobs(told: Json, text: str) -> TokenLogprobs:
    """Of a choice, as OpenAI's protocol has them; an answer is an answer whatever stands there."""
    content = told.get("content") if isinstance(told, Mapping) else None
    if not isinstance(content, list) or not content or not all(isinstance(one, Mapping) for one in content):
        return TokenLogprobs(lacks=NONE_GIVEN)
    tokens = [_token(one) for one in content]
    if any(token is None for token in tokens):
        return TokenLogprobs(lacks="the server gave log-probabilities without their tokens")
    return aligned([t for t in tokens if t is not None], [one.get("logprob") for one in content], text)


def _token(one: Mapping[str, Json]) -> str | bytes | None:
    """Its bytes where the server tells them, since a token may be a part of a character; else its text."""
    raw, token = one.get("bytes"), one.get("token")
    if isinstance(raw, list) and all(type(b) is int and 0 <= b < 256 for b in raw) and (raw or not token):
        return bytes(raw)
    return token if isinstance(token, str) else None


def _check_error(part: Mapping[str, Json]) -> None:
    """Raises ReportedFailure where the body or a choice reports an error."""
    error = part.get("error")
    if part.get("object") == "error":  # FastChat and early vLLM
        error = error or part
    if not error:
        return
    told = error if isinstance(error, Mapping) else {"message": error}
    text, code = str(told.get("message") or shown(error))[:300], str(told.get("code", ""))
    raise ReportedFailure(text, int(code) if re.fullmatch("[45][0-9][0-9]", code) else None)


def _finish(reason: Json) -> Finish:
    known = FINISHES.get(reason.lower()) if isinstance(reason, str) else None
    if known is None:
        raise ReportedFailure(f"finish_reason is {shown(reason)}, which ends no answer")
    return known


def _text(value: Json) -> str | None:
    """Content as text: a string, or the text parts of a list; None where there is none."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise Unreadable(f"the content is neither text nor parts: {shown(value)}")
    return "".join(_part(part) for part in value) if value else None


def _part(part: Json) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise Unreadable(f"a part of the content can't be read: {shown(part)}")
    if part.get("type", "text") not in ("text", "output_text"):
        return ""  # reasoning, an image: not what was said
    text = part.get("text")
    if not isinstance(text, str):
        raise Unreadable(f"a part of the content has no text: {shown(part)}")
    return text


def _usage(counted: Json, price: Price) -> Usage:
    """Tokens as the server counted them, 0 where it counts none."""
    if counted is not None and not isinstance(counted, Mapping):
        raise Unreadable(f"usage is no object: {shown(counted)}")
    told = counted or {}
    return cost(price, *(_count(told, name) for name in ("prompt_tokens", "completion_tokens")))


def _count(told: Mapping[str, Json], name: str) -> int:
    """A body whose counts are nonsense is not trusted: its price would be wrong, and so might the rest be."""
    value = told.get(name)
    if value is None:
        return 0
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < 1e12 or value != int(value):
        raise Unreadable(f"usage.{name} is {shown(value)}, no number of tokens")
    return int(value)
