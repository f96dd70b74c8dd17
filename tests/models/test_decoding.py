"""One declared decoding on every engine, whatever a checkpoint or a server would do by itself."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from refadv_ablate.models.openai import OpenAI
from refadv_ablate.models.servers.server_kind import ServerKind, decoding, find_out
from refadv_ablate.models.transformers import Transformers
from refadv_ablate.models.vllm import Vllm
from refadv_ablate.running.ask import Keys
from refadv_ablate.storage.records import reply_from_json, reply_to_json
from refadv_ablate.types import Json, Reply, Sampling
from tests.models.asking import ask, spec
from tests.models.server import Server

GREEDY = Sampling(max_new_tokens=12)
PENALTY = replace(GREEDY, repetition_penalty=1.7)
REQUESTS = [ask(n, text="a dog " * (n + 1), sampling=GREEDY) for n in range(6)]


def said(checkpoint: Path | str, sampling: Sampling = GREEDY) -> list[Reply]:
    model = Transformers(spec=spec(str(checkpoint)))
    replies = {r.id: reply for r, reply in model.answer([replace(r, sampling=sampling) for r in REQUESTS])}
    return [replies[request.id] for request in REQUESTS]


@pytest.fixture
def opinionated(checkpoint: Callable[[str], Path], tmp_path: Path) -> Path:
    """The same weights with a generation config that penalises, bans and draws."""
    folder = tmp_path / "own"
    shutil.copytree(checkpoint("qwen2_5_vl"), folder)
    path = folder / "generation_config.json"
    own = json.loads(path.read_text(encoding="utf-8"))
    told = {"repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "do_sample": True, "temperature": 0.3}
    path.write_text(json.dumps({**own, **told}), encoding="utf-8")
    return folder


def test_what_a_checkpoint_says_of_decoding_changes_no_answer(
    checkpoint: Callable[[str], Path], opinionated: Path
) -> None:
    plain = said(checkpoint("qwen2_5_vl"))
    assert [reply.text for reply in said(opinionated)] == [reply.text for reply in plain]
    assert plain[0].decoding == asdict(GREEDY)
    assert plain[0].engine.startswith("transformers 5.")


def test_a_declared_penalty_is_that_of_generate(checkpoint: Callable[[str], Path]) -> None:
    """Prompts of six lengths in one batch against transformers' own penalty on each alone."""
    import torch

    model = Transformers(spec=spec(str(checkpoint("qwen2_5_vl"))))
    loaded = model._load()
    for request, reply in zip(REQUESTS, said(checkpoint("qwen2_5_vl"), PENALTY), strict=True):
        prepared = loaded.preparer.prepare(request)
        inputs = {name: value[None] for name, value in prepared.tokens.items()}
        pixels = prepared.images[0].fields
        with torch.inference_mode():
            made = loaded.model.generate(
                **{**inputs, **prepared.other, **pixels}, do_sample=False, max_new_tokens=12,
                repetition_penalty=1.7, eos_token_id=sorted(loaded.eos), pad_token_id=loaded.pad,
            )  # fmt: skip
        new = [t for t in made[0, prepared.length :].tolist() if t not in loaded.eos]
        assert reply.text == loaded.tokenizer.decode(new)
    assert [r.text for r in said(checkpoint("qwen2_5_vl"), PENALTY)] != [
        r.text for r in said(checkpoint("qwen2_5_vl"))
    ]


def test_the_token_that_ends_an_answer_is_counted(
    checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As vLLM counts it, offline and as a server."""
    import torch

    model = Transformers(spec=spec(str(checkpoint("qwen2_5_vl"))))
    loaded = model._load()
    end = min(loaded.eos)
    rows = iter([[9, 9, 9, end, loaded.pad], [9] * 5])
    monkeypatch.setattr(
        loaded.model,
        "generate",
        lambda **given: torch.cat([given["input_ids"], torch.tensor([next(rows)])], dim=1),
    )
    asked = [ask(n, sampling=Sampling(max_new_tokens=5)) for n in range(2)]
    got = [reply for request in asked for _, reply in model.answer([request])]
    assert [(reply.usage.output_tokens, reply.finish) for reply in got] == [(4, "stop"), (5, "length")]


def test_vllm_is_told_the_decoding_and_is_shut_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    told: list[Any] = []
    ended: list[str] = []

    class LLM:
        llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: ended.append("core")))

        def __init__(self, **_: Any) -> None: ...

        def chat(self, messages: Any, sampling_params: Any, **_: Any) -> Any:
            told.extend(sampling_params)
            answer = SimpleNamespace(text="[1]", token_ids=[5, 6], finish_reason="stop")
            return [SimpleNamespace(prompt="", prompt_token_ids=[1], outputs=[answer]) for _ in messages]

    stub = ModuleType("vllm")
    stub.LLM, stub.SamplingParams = LLM, lambda **options: options  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", stub)
    model = Vllm(spec=spec(str(tmp_path)))
    drawn = Sampling(0.7, 0.9, 3, 8, 1.05, 20)
    ((_, reply),) = model.answer([ask(0, sampling=drawn)])
    assert (told[0]["repetition_penalty"], told[0]["top_k"], told[0]["temperature"]) == (1.05, 20, 0.7)
    assert (reply.decoding, reply.engine.split()[0]) == (asdict(drawn), "vllm")
    model.close()
    model.close()
    assert ended == ["core"]


@pytest.mark.parametrize(
    ("name", "sampling", "fields"),
    [
        ("vllm", GREEDY, {"repetition_penalty": 1.0}),
        ("sglang", PENALTY, {"repetition_penalty": 1.7}),
        ("lmdeploy", Sampling(0.7), {"repetition_penalty": 1.0, "top_k": -1, "min_p": 0.0}),
        ("vllm", Sampling(0.7, top_k=20), {"repetition_penalty": 1.0, "top_k": 20, "min_p": 0.0}),
        ("llamacpp", Sampling(0.7), {"repeat_penalty": 1.0, "top_k": 0, "min_p": 0.0}),
        ("transformers", Sampling(repetition_penalty=1.05), {"frequency_penalty": 0.05}),
        ("", GREEDY, {}),
        ("", PENALTY, {"repetition_penalty": 1.7}),
    ],
)
def test_each_server_is_told_in_its_own_words(name: str, sampling: Sampling, fields: dict[str, Json]) -> None:
    assert ServerKind(name).fields(sampling) == fields


def test_what_answers_says_so_and_is_told_the_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for owner, engine in (("vllm", "vllm 0.32.0"), ("", "OpenAI-compatible server (version not told)")):
        with Server(owner=owner) as server:
            model = OpenAI(spec=spec(), base_url=server.url)
            replies = [reply for _, reply in model.answer(REQUESTS[:2])]
        assert {reply.engine for reply in replies} == {engine}
        assert server.bodies[0].get("repetition_penalty") == (1.0 if owner else None)
        assert replies[0].decoding == decoding(server.bodies[0])
        assert replies[0].decoding["max_tokens"] == 12
        assert model.identity() == OpenAI(spec=spec(), base_url="http://localhost:1/v1").identity()


def test_a_field_that_the_user_leaves_out_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Server(owner="vllm") as server:
        model = OpenAI(spec=spec(), base_url=server.url, omit=("repetition_penalty",))
        ((_, reply),) = model.answer(REQUESTS[:1])
    assert "repetition_penalty" not in server.bodies[0] | dict(reply.decoding)


@pytest.mark.parametrize(
    ("pages", "kind"),
    [
        (
            {"/models": {"data": [{"owned_by": "sglang"}]}, "/get_server_info": {"version": "0.5"}},
            "sglang 0.5",
        ),
        ({"/models": {"data": [{"owned_by": "lmdeploy"}]}}, "lmdeploy (version not told)"),
        ({"/models": {"data": [{"owned_by": "llamacpp"}]}, "/props": {"build_info": "b9"}}, "llamacpp b9"),
        (
            {"/models": {"data": []}, "/openapi.json": {"paths": {"/load_model": 1, "/reset": 1}}},
            "transformers serve (version not told)",
        ),
        ({"/models": ["odd"], "/openapi.json": {}}, "OpenAI-compatible server (version not told)"),
        ({"/models": {"data": [7]}, "/openapi.json": []}, "OpenAI-compatible server (version not told)"),
    ],
)
def test_servers_are_known_by_what_they_say(pages: dict[str, Json], kind: str) -> None:
    async def get(path: str) -> Json:
        place = path.removeprefix("http://host:1")
        if place not in pages:
            raise ValueError("404")
        return pages[place]

    assert str(asyncio.run(find_out(get, "http://host:1/v1"))) == kind


def test_answers_stored_before_a_field_existed_are_still_found() -> None:
    keys = Keys({"engine": "x"})
    request = REQUESTS[0]
    assert set(GREEDY.key()) == {"temperature", "top_p", "seed", "max_new_tokens"}
    assert keys(request) == keys(replace(request, sampling=replace(GREEDY, repetition_penalty=1)))
    assert keys(request) != keys(replace(request, sampling=PENALTY))


def test_engine_and_decoding_are_kept_with_the_answer() -> None:
    reply = Reply("x", engine="vllm 0.32.0", decoding=PENALTY.declared())
    assert reply_from_json(json.loads(json.dumps(reply_to_json(reply)))) == reply
    assert reply_from_json({"text": "x", "finish": "stop"}).engine == ""
