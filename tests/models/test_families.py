"""Every family that runs here: its own YAML, a tiny checkpoint of its architecture and processor class,
the original and a shuffled expression."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate import assets
from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.models.detectors import as_phrase
from refadv_ablate.parsing import dialects
from refadv_ablate.prompting import prompts
from refadv_ablate.seeding import generator
from refadv_ablate.types import NoBox, Reply, Request, Seen

CHATS = [
    ("internvl3", "internvl", []),
    ("internvl3_5", "internvl", []),
    ("qwen2_5_vl", "qwen2_5_vl", ["model.resize.min_pixels=784", "model.resize.max_pixels=12544"]),
    ("qwen3_vl", "qwen3_vl", []),
    ("qwen3_vl_thinking", "qwen3_vl", []),
    ("qwen3_5", "qwen3_5", []),
    ("glm4_5v", "glm4v_moe", []),
]
DETECTORS = ["grounding_dino", "mm_grounding_dino", "owlv2", "florence2"]


def asked(parts: Any, examples: int = 3) -> list[Request]:
    """Original and shuffled, image by image."""
    requests = []
    for example in islice(parts.data, examples):
        for label, operator in parts.operators.items():
            perturbed = operator.perturb(example, generator(0, example.id, label, 0))
            requests.append(prompts.build(parts.spec, parts.style, perturbed, label, 0))
    return requests


def answers(parts: Any, requests: list[Request], **more: Any) -> dict[str, Reply]:
    model = assets.build({**parts.engine, **more}, "backend", spec=parts.spec)
    try:
        return {request.id: reply for request, reply in model.answer(requests)}
    finally:
        model.close()


def read(parts: Any, request: Request, reply: Reply) -> Box | NoBox:
    size = request.perturbed.example.image.size()
    seen = Seen(size, request.image.size(), reply.processed)
    return dialects.read(reply, parts.spec.dialect, parts.spec.frame, seen).answer


@pytest.mark.parametrize(("model", "architecture", "more"), CHATS, ids=[row[0] for row in CHATS])
def test_a_chat_family_answers_through_its_own_yaml(
    model: str,
    architecture: str,
    more: list[str],
    checkpoint: Callable[[str], Path],
    composed: Callable[..., Any],
) -> None:
    parts = composed(
        f"model={model}",
        f"model.checkpoint={checkpoint(architecture)}",
        "model.sampling.max_new_tokens=8",
        "backend=transformers",
        *more,
    )
    requests = asked(parts)
    got = answers(parts, requests, batch_size=4)
    alone = answers(parts, requests, batch_size=1, share_vision=False)
    assert got.keys() == {request.id for request in requests}
    assert {key: reply.text for key, reply in got.items()} == {k: r.text for k, r in alone.items()}
    assert len({reply.text for reply in got.values()}) > 1
    for request in requests:
        reply = got[request.id]
        assert (reply.finish == "length") == (reply.usage.output_tokens == 8)
        assert isinstance(read(parts, request, reply), Box | NoBox)
        if parts.spec.resize is not None:
            assert reply.processed == parts.spec.resize(request.image.size())


@pytest.mark.parametrize("model", DETECTORS)
def test_a_grounder_without_chat_gives_one_box_through_its_own_yaml(
    model: str, checkpoint: Callable[[str], Path], composed: Callable[..., Any]
) -> None:
    parts = composed(f"model={model}", f"model.checkpoint={checkpoint(model)}")
    requests = asked(parts)
    got, alone = answers(parts, requests), answers(parts, requests, batch_size=1)
    assert got.keys() == {request.id for request in requests}
    assert {reply.finish for reply in got.values()} == {"stop"}
    assert {reply.engine for reply in got.values()} == {f"transformers {version('transformers')}"}
    if model != "florence2":  # a random Florence-2 writes no location tokens
        for request in requests:
            box, other = (read(parts, request, replies[request.id]) for replies in (got, alone))
            assert isinstance(box, Box)
            assert isinstance(other, Box)
            assert box.as_list() == pytest.approx(other.as_list(), abs=0.02)


def test_florence_counts_the_first_phrase_it_grounds(
    checkpoint: Callable[[str], Path], composed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoTokenizer, Florence2ForConditionalGeneration

    folder = checkpoint("florence2")
    said = "</s><s>the dog<loc_100><loc_200><loc_500><loc_600>a hat<loc_1><loc_2><loc_3><loc_4></s>"
    tokens = AutoTokenizer.from_pretrained(folder)(said, return_tensors="pt", add_special_tokens=False)
    monkeypatch.setattr(
        Florence2ForConditionalGeneration, "generate", lambda self, **inputs: tokens["input_ids"]
    )
    parts = composed("model=florence2", f"model.checkpoint={folder}")
    (request,) = asked(parts, 1)[:1]
    reply = answers(parts, [request])[request.id]
    width, height = request.image.size()
    box = read(parts, request, reply)
    assert isinstance(box, Box)
    expected = [0.1 * width, 0.2 * height, 0.5 * width, 0.6 * height]
    assert box.as_list() == pytest.approx(expected, abs=0.01)
    assert reply.reasoning == "phrase: the dog"


def test_the_text_of_grounding_dino_is_one_phrase() -> None:
    assert as_phrase("The man, Dr. Who?  NOT in red.") == "the man, dr who not in red."


@pytest.mark.parametrize("backend", ["transformers", "openai", "vllm"])
def test_a_backend_composes_with_a_family_and_knows_itself_without_loading(
    backend: str, composed: Callable[..., Any]
) -> None:
    parts = composed("model=qwen3_vl", f"backend={backend}")
    model = assets.build(parts.engine, "backend", spec=parts.spec)
    identity = json.loads(json.dumps(dict(model.identity())))
    assert identity["checkpoint"] == "Qwen/Qwen3-VL-8B-Instruct"
    assert "http" not in json.dumps(identity)
    assert list(model.answer([])) == []
    model.close()
    model.close()


def test_replay_wants_its_file(composed: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="path"):
        composed("model=replay")
    (tmp_path / "p.jsonl").write_text('{"row_idx": 0, "box": [1, 2, 30, 40]}\n')
    parts = composed("model=replay", f"model.engine.path={tmp_path / 'p.jsonl'}")
    (request,) = asked(parts, 1)[:1]
    request = replace(request, condition="original")
    request = replace(
        request, perturbed=replace(request.perturbed, example=replace(request.perturbed.example, id="0"))
    )
    reply = answers(parts, [request])[request.id]
    assert read(parts, request, reply) == Box(1, 2, 30, 40)
