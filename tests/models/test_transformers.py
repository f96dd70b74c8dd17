"""The local engine: nothing lost, nothing computed twice, one sentence where weights can't be had."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate.errors import ImageUnreadable, ModelUnavailable, UserError
from refadv_ablate.models.checkpoint import fingerprint
from refadv_ablate.models.local.batching import BatchSize
from refadv_ablate.models.transformers import Transformers
from refadv_ablate.types import Message, Perturbed, Reply, Request, Sampling
from tests.models.asking import Drawn, ask, spec

Checkpoint = Callable[[str], Path]


def answers(model: Transformers, *requests: Request) -> dict[str, Reply]:
    return {request.id: reply for request, reply in model.answer(requests)}


def texts(replies: dict[str, Reply]) -> dict[str, str]:
    return {key: reply.text for key, reply in sorted(replies.items())}


def engine(
    checkpoint: Checkpoint, name: str = "qwen3_vl", spec_more: Any = None, **more: Any
) -> Transformers:
    return Transformers(spec=spec(str(checkpoint(name)), **(spec_more or {})), **more)


SHORT = Sampling(max_new_tokens=6)
MIXED = [ask(n, text="a dog " * (n % 5 + 1), sampling=SHORT) for n in range(14)]


@pytest.mark.parametrize("name", ["internvl", "qwen2_5_vl", "qwen3_vl"])
def test_one_vision_pass_for_each_image_of_a_batch(
    name: str, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images of several sizes; Qwen3-VL also hands out its features of other depths."""
    shapes = [(96, 64), (64, 96), (64, 64)]
    requests = [
        ask(n, image=Drawn(f"i{n // 4}", shapes[n // 4]), text="dog " * (n + 1), sampling=SHORT)
        for n in range(12)
    ]
    plain = engine(checkpoint, name, batch_size=12, share_vision=False)
    expected = texts(answers(plain, *requests))
    model = engine(checkpoint, name, batch_size=12)
    owner = model._load().model.model
    seen: list[int] = []
    real = type(owner).get_image_features

    def counted(self: Any, pixel_values: Any, *args: Any, **options: Any) -> Any:
        seen.append(pixel_values.shape[0])
        return real(self, pixel_values, *args, **options)

    counted.__signature__ = __import__("inspect").signature(real)  # type: ignore[attr-defined]
    monkeypatch.setattr(type(owner), "get_image_features", counted)
    assert texts(answers(model, *requests)) == expected
    shared_rows = sum(seen)
    seen.clear()
    assert texts(answers(plain, *requests)) == expected
    assert shared_rows * 4 == sum(seen)


def test_memory_that_runs_out_halves_the_batch_and_loses_nothing(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    expected = texts(answers(engine(checkpoint, batch_size=1), *MIXED))
    model = engine(checkpoint, max_batch_size=16)
    loaded = model._load()
    sizes: list[int] = []
    real = type(loaded).generate

    def tight(self: Any, items: Any, share: bool) -> Any:
        sizes.append(len(items))
        if len(items) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return real(self, items, share)

    monkeypatch.setattr(type(loaded), "generate", tight)
    assert texts(answers(model, *MIXED)) == expected
    assert sizes[0] > 3
    assert sum(size for size in sizes if size <= 3) == len(MIXED)
    assert max(sizes[1:]) <= sizes[0] // 2  # a size that failed is not tried again


def test_a_single_request_that_does_not_fit_is_its_own_error(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = engine(checkpoint, batch_size=4)
    loaded = model._load()
    real = type(loaded).generate

    def tight(self: Any, items: Any, share: bool) -> Any:
        if any(item.request.id.startswith("2|") for item in items):
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return real(self, items, share)

    monkeypatch.setattr(type(loaded), "generate", tight)
    got = answers(model, *MIXED[:6])
    assert [key for key, reply in got.items() if reply.finish == "error"] == ["2|original|0"]
    assert "out of memory" in got["2|original|0"].error
    monkeypatch.setattr(type(loaded), "generate", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # anything else is a bug and says so
        answers(model, *MIXED[:1])


def test_the_batch_grows_while_it_fits() -> None:
    size = BatchSize(4, 32)
    seen = []
    for _ in range(5):
        seen.append(size.value)
        size.fitted(size.value)
    size.too_many(32)
    size.fitted(16)
    assert (seen, size.value) == ([4, 8, 16, 32, 32], 16)
    fixed = BatchSize(4, 32, grows=False)
    fixed.fitted(4)
    assert fixed.value == 4


def test_a_broken_image_is_missing_and_requests_are_pulled_two_windows_ahead(checkpoint: Checkpoint) -> None:
    class Broken(Drawn):
        def load(self) -> Any:
            raise ImageUnreadable("broken.jpg is truncated")

    pulled = 0

    def requests() -> Iterator[Request]:
        nonlocal pulled
        for n in range(40):
            pulled += 1
            yield ask(n, image=Broken("x") if n == 1 else None, sampling=SHORT)

    model = engine(checkpoint, window=8, batch_size=8)
    stream = model.answer(requests())
    first = [next(stream) for _ in range(8)]
    assert pulled == 16
    assert [reply.error for _, reply in first if reply.finish == "error"] == ["broken.jpg is truncated"]
    rest = list(stream)
    assert len({q.id for q, _ in first + rest}) == 40
    with pytest.raises(ModelUnavailable, match=r"took none of 8 requests in a row; .*truncated"):
        answers(model, *(ask(n, image=Broken("x")) for n in range(8)))


def test_finish_special_tokens_and_an_opened_trace(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    model = engine(checkpoint, batch_size=4)
    loaded = model._load()
    tokens = loaded.tokenizer
    said = ["<|box_start|>(1,2),(3,4)<|box_end|><|im_end|>", "a long dog", "<|im_end|>"]
    rows = [tokens(text)["input_ids"] for text in said]
    longest = max(map(len, rows))
    new = torch.tensor([row + [loaded.pad] * (longest - len(row)) for row in rows])
    given: list[Any] = []

    def scripted(**inputs: Any) -> Any:
        given.append(inputs)
        return torch.cat([inputs["input_ids"], new], dim=1)

    monkeypatch.setattr(loaded.model, "generate", scripted)
    limits = [Sampling(max_new_tokens=len(rows[1]))] * 3
    requests = [ask(n, text="dog " * (n + 1), sampling=limit) for n, limit in enumerate(limits)]
    got = list(answers(model, *requests).values())
    assert [reply.text for reply in got] == ["<|box_start|>(1,2),(3,4)<|box_end|>", "a long dog", ""]
    assert got[1].finish == "length"
    assert got[2].finish == "stop"
    assert given[0]["generation_config"].do_sample is False
    thinking = [ask(n, template_options={"enable_thinking": True}, sampling=limits[0]) for n in range(3)]
    assert "<think>a long dog" in texts(answers(model, *thinking)).values()


def test_the_conversation_is_written_as_the_messages_say(checkpoint: Checkpoint) -> None:
    request = ask(0, image_first=False)
    longer = Request(
        **{
            **{name: getattr(request, name) for name in request.__slots__},
            "messages": (
                Message("system", ("Be brief.",)),
                *request.messages,
                Message("assistant", ("[1]",)),
                Message("user", ("Box only.",)),
            ),
        }
    )
    model = engine(checkpoint)
    assert model._load().preparer.prompt(longer) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nWhere is the red box number 0?"
        "<|vision_start|><|image_pad|><|vision_end|><|im_end|>\n"
        "<|im_start|>assistant\n[1]<|im_end|>\n<|im_start|>user\nBox only.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert answers(model, longer)[longer.id].usage.input_tokens > 20


def test_drawn_answers_depend_on_their_request_alone(checkpoint: Checkpoint) -> None:
    import torch

    hot = Sampling(temperature=5.0, max_new_tokens=6, seed=3)
    requests = [ask(n, sampling=hot) for n in range(4)]
    model = engine(checkpoint)
    before = torch.random.get_rng_state()
    once = texts(answers(model, *requests))
    assert once == texts(answers(model, *reversed(requests)))
    assert len(set(once.values())) == 4
    assert torch.equal(before, torch.random.get_rng_state())
    e = requests[0].perturbed.example
    twin = replace(requests[0], perturbed=Perturbed(replace(e, id="twin"), e, "changed"), condition="bow")
    assert texts(answers(model, twin))[twin.id] == once[requests[0].id], "equal questions, equal keys"
    again = replace(requests[0], repeat=1)
    assert texts(answers(model, again))[again.id] != once[requests[0].id]


def test_jpeg_is_what_the_model_sees_where_jpeg_is_what_a_server_would_get(checkpoint: Checkpoint) -> None:
    preparer = engine(checkpoint)._load().preparer
    png, jpeg = (
        preparer.prepare(ask(0, image_format=f, image_quality=20)).images[0] for f in ("png", "jpeg")
    )
    assert png.picture.tobytes() == Drawn("image0").load().tobytes()
    assert png.picture.tobytes() != jpeg.picture.tobytes()


def test_an_image_is_prepared_once_for_all_its_requests(checkpoint: Checkpoint) -> None:
    loads: list[str] = []

    class Counted(Drawn):
        def load(self) -> Any:
            loads.append(self.key)
            return super().load()

    answers(engine(checkpoint), *(ask(n, image=Counted(f"i{n // 4}"), sampling=SHORT) for n in range(12)))
    assert sorted(loads) == ["i0", "i1", "i2"]


def test_what_the_template_refuses_is_missing_and_not_a_crash(checkpoint: Checkpoint) -> None:
    from jinja2 import TemplateError

    model = engine(checkpoint)
    preparer = model._load().preparer
    known = preparer.prompt

    def prompt(request: Request) -> str:
        if request.id.startswith("1|"):
            raise TemplateError("System role not supported")
        return known(request)

    preparer.prompt = prompt  # type: ignore[method-assign]
    got = answers(model, *(ask(n, sampling=SHORT) for n in range(3)))
    assert [r.error for r in got.values() if r.finish == "error"] == [
        "TemplateError: System role not supported"
    ]


def test_the_identity_tells_float32_on_the_cpu_from_the_checkpoints_own() -> None:
    def dtype(**more: Any) -> Any:
        return Transformers(spec=spec("org/name"), **more).identity()["dtype"]

    assert dtype(device="cpu") == dtype(device="cuda", dtype="float32") == "float32"
    assert dtype(device="cuda:1") == dtype(device_map="auto", device="cpu") == "auto"
    assert dtype(device="cpu", dtype="bfloat16") == "bfloat16"


def test_identity_is_the_content_of_a_folder(checkpoint: Checkpoint, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(checkpoint("qwen3_vl"), copy)
    same = Transformers(spec=spec(str(copy))).identity()
    assert same == engine(checkpoint).identity()
    assert str(copy) not in json.dumps(dict(same))
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert fingerprint(str(copy)) != same["checkpoint"]
    big = bytearray(8 << 20)
    (copy / "model.safetensors").write_bytes(big)
    base = fingerprint(str(copy))
    big[4 << 20 : 5 << 20] = b"x" * (1 << 20)  # as a fine-tuned layer in the middle
    (copy / "model.safetensors").write_bytes(big)
    assert fingerprint(str(copy)) != base
    assert Transformers(spec=spec("org/name")).identity()["checkpoint"] == "org/name"


def test_weights_that_cannot_be_had_are_one_quick_sentence(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(where: str, words: str, **more: Any) -> None:
        with pytest.raises(ModelUnavailable, match=words) as caught:
            answers(Transformers(spec=spec(where, **more)), ask(0))
        text = str(caught.value)
        assert where in text and "\n" not in text and ("model." in text or "backend" in text)

    says(str(tmp_path / "none"), "no such folder")
    says(str(tmp_path), r"no config\.json")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # whatever it was when the library was imported
    says("org/some-model", "HF_HUB_OFFLINE")
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "from_the_future"}')
    says(str(folder), "does not know its architecture")
    code = {"AutoConfig": "odd_code.Odd", "AutoModelForCausalLM": "odd_code.Odd"}
    (folder / "config.json").write_text(json.dumps({"model_type": "odd", "auto_map": code}))
    (folder / "odd_code.py").write_text("from transformers.gone_since import something\n")
    says(str(folder), "trust_remote_code=true")
    says(str(folder), "its own code does not run with transformers", trust_remote_code=True)
    shutil.copytree(checkpoint("qwen3_vl"), tmp_path / "bare")
    (tmp_path / "bare" / "model.safetensors").unlink()
    says(str(tmp_path / "bare"), "model.safetensors")
    with pytest.raises(UserError, match="batch_size=0"):
        Transformers(spec=spec(), batch_size=0)


def test_a_hub_out_of_reach_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from huggingface_hub import HfApi, constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def no_route(self: Any, *args: Any, **options: Any) -> None:
        assert options["timeout"] <= 10
        raise ConnectionError("no route to host")

    monkeypatch.setattr(HfApi, "model_info", no_route)
    start = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"hub at .* can't be reached"):
        answers(Transformers(spec=spec("org/some-model")), ask(0))
    assert time.monotonic() - start < 30
