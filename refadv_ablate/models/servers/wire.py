"""Requests in the words of the OpenAI chat protocol, which servers and vLLM itself speak."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence

from refadv_ablate.data.images import encode
from refadv_ablate.types import EMPTY, ImageRef, Json, Message, ModelSpec, Request

Chat = list[dict[str, Json]]


def data_url(image: ImageRef, image_format: str = "png", quality: int = 95) -> str:
    """The image as a data URL: PNG keeps every pixel, JPEG is smaller."""
    data = encode(image.load(), "jpeg" if image_format == "jpeg" else "png", quality)
    return f"data:image/{image_format};base64,{base64.b64encode(data).decode()}"


def chat(messages: Sequence[Message], url: Callable[[ImageRef], str]) -> Chat:
    """The turns with their parts in the order given; a turn of one text is sent as plain text."""
    return [{"role": turn.role, "content": _content(turn, url)} for turn in messages]


def sendable(text: str) -> str:
    """The text as UTF-8 can carry it: half a surrogate pair becomes a question mark."""
    return text.encode(errors="replace").decode()


def _content(turn: Message, url: Callable[[ImageRef], str]) -> Json:
    if len(turn.parts) == 1 and isinstance(turn.parts[0], str):
        return sendable(turn.parts[0])
    return [
        {"type": "text", "text": sendable(part)}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": url(part)}}
        for part in turn.parts
    ]


def images_of(request: Request) -> list[ImageRef]:
    """Every image of the conversation, in order."""
    return [part for turn in request.messages for part in turn.parts if not isinstance(part, str)]


def template_options(spec: ModelSpec, request: Request) -> dict[str, Json]:
    """What the chat template is told besides the messages: the request's word goes before the model's."""
    thinking = {} if spec.thinking is None else {"enable_thinking": spec.thinking}
    return {**thinking, **spec.template_options, **request.options.get("template_options", {})}


def seed_of(request: Request) -> int | None:
    """The seed of the call; another one for each repetition of an answer that is drawn."""
    sampling = request.sampling
    if sampling.seed is None or sampling.temperature <= 0:
        return sampling.seed
    return sampling.seed + request.repeat


def body(
    spec: ModelSpec,
    request: Request,
    url: Callable[[ImageRef], str],
    option: Callable[[str, Json], Json],
    further: Mapping[str, Json] = EMPTY,
) -> dict[str, Json]:
    """The JSON of a chat completion call; `option` looks an engine option up, with its default.

    further: fields of the decoding that this server has and OpenAI's protocol lacks.
    """
    sampling = request.sampling
    sent: dict[str, Json] = {
        "model": option("served_name", spec.checkpoint),
        "messages": chat(request.messages, url),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        option("token_limit", "max_tokens"): sampling.max_new_tokens,
        **further,
    }
    if sampling.seed is not None:
        sent["seed"] = seed_of(request)
    if "stop" in request.options:
        sent["stop"] = list(request.options["stop"])
    extra = {**option("extra_body", {}), **request.options.get("extra_body", {})}
    if told := template_options(spec, request):
        extra["chat_template_kwargs"] = {**extra.get("chat_template_kwargs", {}), **told}
    kept = {name: value for name, value in sent.items() if name not in option("omit", ())}
    return {**kept, **extra}
