"""The offline vLLM engine against a stub of vllm that records how it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from refadv_ablate.errors import ImageUnreadable, ModelUnavailable
from refadv_ablate.models.vllm import Vllm
from refadv_ablate.types import Sampling
from tests.models.asking import Drawn, ask, spec


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the stub was asked for: `made` (LLM's arguments) and `chats`."""
    seen: dict[str, Any] = {"chats": []}

    class LLM:
        def __init__(self, **options: Any) -> None:
            seen["made"] = options

        def chat(self, messages: Any, **options: Any) -> Any:
            seen["chats"].append((messages, options))
            return [
                SimpleNamespace(
                    prompt="user …<think>\n" if options["chat_template_kwargs"] else "user …",
                    prompt_token_ids=[1, 2, 3],
                    outputs=[
                        SimpleNamespace(
                            text=f"<|box_start|>{n}<|im_end|>",
                            token_ids=[5, 6],
                            finish_reason="length" if n == 1 else "stop",
                        )
                    ],
                )
                for n, _ in enumerate(messages)
            ]

    stub = ModuleType("vllm")
    stub.LLM = LLM  # type: ignore[attr-defined]
    stub.SamplingParams = lambda **options: options  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", stub)
    return seen


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text("{}")
    return str(tmp_path)


def test_requests_become_one_chat_call_and_its_outputs_replies(calls: dict[str, Any], folder: str) -> None:
    options = {"vllm": {"mm_processor_kwargs": {"max_pixels": 9}}}
    model = Vllm(spec=spec(folder, engine_options=options), tensor_parallel_size=2, engine={"seed": 1})
    requests = [ask(n, sampling=Sampling(0.0, 1.0, 7, 33), stop=["\n\n"]) for n in range(3)]
    got = list(model.answer(requests))
    assert [request for request, _ in got] == requests
    assert [reply.text for _, reply in got] == ["<|box_start|>0", "<|box_start|>1", "<|box_start|>2"]
    assert [reply.finish for _, reply in got] == ["stop", "length", "stop"]
    assert (got[0][1].usage.input_tokens, got[0][1].usage.output_tokens) == (3, 2)
    made = calls["made"]
    assert (made["model"], made["tensor_parallel_size"], made["seed"]) == (folder, 2, 1)
    assert made["mm_processor_kwargs"] == {"max_pixels": 9}
    assert made["trust_remote_code"] is False
    ((messages, told),) = calls["chats"]
    content = messages[0][0]["content"]
    assert content[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert content[1] == {"type": "text", "text": "Where is the red box number 0?"}
    sampling = told["sampling_params"][0]
    assert (sampling["temperature"], sampling["seed"], sampling["max_tokens"]) == (0.0, 7, 33)
    assert (sampling["stop"], sampling["skip_special_tokens"]) == (["\n\n"], False)
    assert told["chat_template_kwargs"] is None


def test_template_options_get_a_call_of_their_own_and_an_opened_trace_is_marked(
    calls: dict[str, Any], folder: str
) -> None:
    requests = [ask(n, template_options={"enable_thinking": True} if n else {}) for n in range(3)]
    got = {request.id: reply for request, reply in Vllm(spec=spec(folder)).answer(requests)}
    assert [len(messages) for messages, _ in calls["chats"]] == [1, 2]
    assert got["1|original|0"].text == "<think><|box_start|>0"


def test_a_broken_image_is_missing_and_windows_bound_what_is_handed_over(
    calls: dict[str, Any], folder: str
) -> None:
    class Broken(Drawn):
        def load(self) -> Any:
            raise ImageUnreadable("broken.jpg is truncated")

    requests = [ask(n, image=Broken("x") if n == 2 else None) for n in range(5)]
    got = list(Vllm(spec=spec(folder), window=2).answer(requests))
    assert [request.id for request, reply in got if reply.finish == "error"] == ["2|original|0"]
    assert [len(messages) for messages, _ in calls["chats"]] == [2, 1, 1]


def test_without_vllm_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ModelUnavailable, match=r"vLLM is not installed; install it with: pip install"):
        list(Vllm(spec=spec(folder)).answer([ask(0)]))


def test_weights_that_vllm_refuses_are_one_sentence(
    calls: dict[str, Any], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**options: Any) -> None:
        raise ValueError("No available memory for the cache blocks")

    monkeypatch.setattr(sys.modules["vllm"], "LLM", refuse)
    with pytest.raises(ModelUnavailable, match="No available memory"):
        list(Vllm(spec=spec(folder)).answer([ask(0)]))


def test_identity_leaves_out_how_the_work_is_spread() -> None:
    one, two = (Vllm(spec=spec("org/name"), tensor_parallel_size=n).identity() for n in (1, 8))
    assert one == two != Vllm(spec=spec("org/name"), dtype="float16").identity()


def test_a_prompt_that_is_too_long_fails_alone(
    calls: dict[str, Any], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = sys.modules["vllm"].LLM
    chat = stub.chat

    def refusing(self: Any, messages: Any, **told: Any) -> Any:
        if any("number 1?" in str(m[0]["content"][1]) for m in messages):
            raise ValueError("The decoder prompt (length 9000) is longer than the maximum model length")
        return chat(self, messages, **told)

    monkeypatch.setattr(stub, "chat", refusing)
    got = {request.id: reply for request, reply in Vllm(spec=spec(folder)).answer([ask(n) for n in range(3)])}
    assert [reply.finish for reply in got.values()] == ["stop", "error", "stop"]
    assert "longer than the maximum" in got["1|original|0"].error
