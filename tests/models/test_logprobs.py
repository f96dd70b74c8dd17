"""Log-probabilities of the tokens: what each engine gives, beside the characters that they made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from refadv_ablate.models.openai import OpenAI
from refadv_ablate.models.token_logprobs import UNLIKE, aligned, pieces
from refadv_ablate.models.transformers import Transformers, _Loaded
from refadv_ablate.models.vllm import _logprobs
from refadv_ablate.types import Reply, Sampling, TokenLogprobs
from tests.models.asking import ask, spec
from tests.models.server import Fail, Raw, Say, Server
from tests.models.test_completions import completion


def shown(found: TokenLogprobs, text: str) -> list[tuple[str, float]]:
    """Each token's characters with its value."""
    place, told = found.start, []
    for count, value in zip(found.chars, found.values, strict=True):
        told.append((text[place : place + count], value))
        place += count
    return told


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        (["[", "12", "]", "<|im_end|>"], "[12]", ["[", "12", "]"]),
        (["<box>", "[", "12", "]", "</box>", "</s>"], "[12]", ["[", "12", "]"]),
        (["hm", " [12]", "</think>", "\n\n", "[", "12", "]"], "[12]", ["[", "12", "]"]),
        (["a", b"\xe4\xbd", b"\xa0", "b"], "a你b", ["a", "", "你", "b"]),
        (["  [", "7", "]\n"], "[7]", ["[", "7", "]"]),
        (["[", "7", "]"], "\n[7] ", ["[", "7", "]"]),
    ],
)
def test_tokens_find_their_characters(tokens: list[Any], text: str, expected: list[str]) -> None:
    values = [-(i + 1) / 8 for i in range(len(tokens))]
    assert [part for part, _ in shown(aligned(tokens, values, text), text)] == expected


def test_values_are_rounded_and_nonsense_is_said() -> None:
    found = aligned(["a", "b", "c"], [-0.123456789, -1e-8, 1e-7], "abc")
    assert found.values == (-0.1235, 0.0, 0.0)
    for bad in (math.nan, -math.inf, 0.5, None, "x", True):
        assert "not numbers" in aligned(["a"], [bad], "a").lacks  # type: ignore[list-item]
    assert aligned(["a"], [-1.0], "other").lacks == UNLIKE
    assert aligned([], [], "").lacks


def test_a_character_of_several_tokens_belongs_to_the_last() -> None:
    parts = [b"a", "你".encode()[:2], "你".encode()[2:], b" b"]

    def decode(ids: list[int]) -> str:
        return b"".join(parts[i] for i in ids).decode(errors="replace")

    assert pieces(range(4), decode) == ["a", "", "你", " b"]
    assert pieces(range(2), decode) == ["a", "\ufffd"], "cut within a character"


@pytest.mark.parametrize("name", ["internvl", "qwen2_5_vl", "qwen3_vl"])
def test_local_logprobs_are_those_of_one_forward_pass_over_the_answer(
    name: str, checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batched and padded, against the whole answer given to the model at once, alone; with a penalty too."""
    import torch

    wanted = spec(str(checkpoint(name)), logprobs=True)
    penalty = Sampling(max_new_tokens=7, repetition_penalty=1.3)
    requests = [ask(n, text="a dog " * (1 + 3 * n), sampling=penalty) for n in range(4)]
    plain = Transformers(spec=replace(wanted, logprobs=False), batch_size=4)
    texts = {r.id: reply.text for r, reply in plain.answer(requests)}
    taken: dict[str, tuple[list[int], list[float]]] = {}
    real = _Loaded._reply

    def noting(self: Any, item: Any, new: list[int], seconds: float, values: list[float]) -> Reply:
        taken[item.request.id] = list(new), values
        return real(self, item, new, seconds, values)

    monkeypatch.setattr(_Loaded, "_reply", noting)
    model = Transformers(spec=wanted, batch_size=4)
    loaded = model._load()
    for request, reply in model.answer(requests):
        assert reply.text == texts[request.id], "asking for them changes no answer"
        assert reply.logprobs is not None and not reply.logprobs.lacks
        assert "".join(part for part, _ in shown(reply.logprobs, reply.text)) == reply.text.strip()
        new, values = taken[request.id]
        item = loaded.preparer.prepare(request)
        ids = torch.cat([item.tokens["input_ids"], torch.tensor(new)])[None]
        fields = {k: v for k, v in item.images[0].fields.items() if torch.is_tensor(v)}
        kinds = item.tokens.get("mm_token_type_ids")
        if kinds is not None:
            fields["mm_token_type_ids"] = torch.cat([kinds, torch.zeros(len(new), dtype=kinds.dtype)])[None]
        with torch.inference_mode():
            logits = loaded.model(input_ids=ids, attention_mask=torch.ones_like(ids), **fields).logits
        steps = logits[0, -len(new) - 1 : -1].log_softmax(-1)
        expected = steps[torch.arange(len(new)), torch.tensor(new)].tolist()
        count = next((i for i, token in enumerate(new) if token in loaded.eos), len(new))
        assert count and values[:count] == pytest.approx(expected[:count], abs=1e-4)


def test_batches_of_any_size_give_the_same_up_to_rounding(checkpoint: Callable[[str], Path]) -> None:
    wanted = spec(str(checkpoint("qwen2_5_vl")), logprobs=True)
    requests = [ask(n, text="dog " * (n % 4 + 1), sampling=Sampling(max_new_tokens=5)) for n in range(6)]
    found = [
        {r.id: reply for r, reply in Transformers(spec=wanted, batch_size=size).answer(requests)}
        for size in (1, 4)
    ]
    for key, alone in found[0].items():
        together = found[1][key]
        assert alone.text == together.text
        assert alone.logprobs is not None and together.logprobs is not None
        assert alone.logprobs.chars == together.logprobs.chars
        assert alone.logprobs.values == pytest.approx(together.logprobs.values, rel=2e-3, abs=2e-5)


# ── servers ─────────────────────────────────────────────────────────────────────────────────────


def answers(server: Server, *numbers: int, logprobs: bool = True) -> list[Reply]:
    model = OpenAI(spec=spec(logprobs=logprobs), base_url=server.url, backoff_base=0.01)
    found = {request.id: reply for request, reply in model.answer([ask(n) for n in numbers])}
    return [found[ask(n).id] for n in numbers]


def with_logprobs(content: list[Any]) -> Raw:
    body = completion({"role": "assistant", "content": "[1, 20]"})
    body["choices"][0]["logprobs"] = {"content": content}
    return Raw(body)


TOKENS = [
    {"token": "[", "logprob": -0.5, "bytes": [91], "top_logprobs": []},
    {"token": "1", "logprob": -0.25, "bytes": None},
    {"token": ", ", "logprob": 0.0},
    {"token": "20", "logprob": -1.0, "bytes": [50, 48]},
    {"token": "]", "logprob": -2.0},
    {"token": "<|im_end|>", "logprob": -0.1, "bytes": []},
]


def test_a_server_is_asked_for_them_only_where_they_are_wanted() -> None:
    with Server(lambda n, body: with_logprobs(TOKENS)) as server:
        (reply,) = answers(server, 0)
        (plain,) = answers(server, 0, logprobs=False)
    assert [body.get("logprobs") for body in server.bodies] == [True, None]
    assert plain.logprobs is None
    assert reply.logprobs == TokenLogprobs(0, (1, 1, 2, 2, 1), (-0.5, -0.25, 0.0, -1.0, -2.0))
    assert reply.text == plain.text == "[1, 20]"


@pytest.mark.parametrize("content", [None, [], "x", [None], [{"token": 3, "logprob": -1}], [{"token": "9"}]])
def test_a_server_that_gives_none_or_nonsense_has_answered_all_the_same(content: Any) -> None:
    with Server(lambda n, body: with_logprobs(content)) as server:
        (reply,) = answers(server, 0)
    assert (reply.text, reply.finish) == ("[1, 20]", "stop")
    assert reply.logprobs is not None and reply.logprobs.lacks and not reply.logprobs.values


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_server_that_refuses_them_is_asked_without_and_once_is_said(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    def script(n: int, body: dict[str, Any]) -> Any:
        return Fail(status, "logprobs are not supported with this model") if "logprobs" in body else Say()

    with Server(script) as server:
        found = answers(server, *range(6))
    assert {reply.finish for reply in found} == {"stop"}
    assert all(reply.logprobs and "refuses log-probabilities" in reply.logprobs.lacks for reply in found)
    assert len([r for r in caplog.records if "refuses log-probabilities" in r.message]) == 1


def test_another_refusal_is_no_refusal_of_logprobs() -> None:
    with Server(lambda n, body: Fail(400, "the image is too large") if n == 0 else Say()) as server:
        found = answers(server, 0, 1)
    assert sorted(reply.finish for reply in found) == ["error", "stop"]
    assert all("logprobs" in body for body in server.bodies)


# ── vLLM ────────────────────────────────────────────────────────────────────────────────────────


def test_vllm_gives_one_mapping_for_each_place() -> None:
    def place(token: int, text: str | None, value: float) -> dict[int, Any]:
        other = SimpleNamespace(logprob=-0.01, decoded_token="x")
        return {99: other, token: SimpleNamespace(logprob=value, decoded_token=text)}

    told = [place(1, "[", -0.5), place(2, "12", -0.25), place(3, "]", -0.125), place(4, "<|im_end|>", -1.0)]
    answer = SimpleNamespace(token_ids=[1, 2, 3, 4], logprobs=told)
    assert _logprobs(answer, "[12]", 7) == TokenLogprobs(7, (1, 2, 1), (-0.5, -0.25, -0.125))
    assert _logprobs(SimpleNamespace(token_ids=[1], logprobs=None), "[", 0).lacks
    assert _logprobs(SimpleNamespace(token_ids=[1], logprobs=[place(1, None, -1.0)]), "[", 0).lacks
