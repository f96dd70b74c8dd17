"""Local checkpoints through transformers' AutoProcessor and AutoModelForImageTextToText."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

from refadv_ablate.errors import ImageUnreadable, ModelUnavailable, UserError
from refadv_ablate.models.checkpoint import explain, fingerprint, lacking, locate, unavailable
from refadv_ablate.models.local.batching import BatchSize, arranged, collated, take, windows
from refadv_ablate.models.local.devices import (
    best_device,
    dtype_used,
    free_memory,
    out_of_memory,
    quiet,
    versioned,
)
from refadv_ablate.models.local.penalty import RepetitionPenalty
from refadv_ablate.models.local.preparing import Prepared, Preparer
from refadv_ablate.models.local.token_watch import TokenWatch
from refadv_ablate.models.local.vision_once import shared, vision_owner
from refadv_ablate.models.servers.budget import cost
from refadv_ablate.models.token_logprobs import aligned, pieces
from refadv_ablate.seeding import digest, generator
from refadv_ablate.types import Json, ModelSpec, Reply, Request

Answered = tuple[Request, Reply]
Waiting = tuple[Request, "Future[Prepared]"]
FIRST_FAILURES = 8


@dataclass(kw_only=True)
class Transformers:
    """Batches requests, prepares the next ones while a batch generates, and shares what one image's have.

    dtype: auto is the checkpoint's own on an accelerator and float32 on the CPU.
    device: cuda, mps, cpu, cuda:1 …; null picks the best there is. device_map: accelerate's, such as
    auto, which spreads a large model over several; it goes before device.
    attn_implementation: sdpa, eager, flash_attention_2; null leaves it to transformers.
    batch_size: auto grows up to max_batch_size and halves when memory runs out; nothing is lost.
    window: how many requests are prepared ahead, and sorted by length.
    share_vision: one vision pass for the requests of a batch that show the same image.
    Greedy answers in float32 are those of batch size 1. Answers that are drawn (temperature > 0) are
    made one at a time, each from its own seed, so that they don't depend on the batch.
    Raises ModelUnavailable for weights that can't be had.
    """

    spec: ModelSpec
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str | None = None
    device_map: str | None = None
    attn_implementation: str | None = None
    batch_size: int | Literal["auto"] = "auto"
    max_batch_size: int = 32
    window: int = 64
    workers: int = 2
    share_vision: bool = True
    _loaded: _Loaded | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.batch_size != "auto" and self.batch_size < 1:
            raise UserError(f"batch_size={self.batch_size} needs to be at least 1, or auto")
        own = self.batch_size if self.batch_size != "auto" else 8
        self._size = BatchSize(own, max(own, self.max_batch_size), grows=self.batch_size == "auto")

    def identity(self) -> Mapping[str, Json]:
        """A local folder is known by its content, wherever it lies."""
        content = fingerprint(self.spec.checkpoint)
        return {
            "engine": "transformers",
            "checkpoint": content or self.spec.checkpoint,
            "revision": self.spec.revision,
            "dtype": dtype_used(self.dtype, self.device, bool(self.device_map)),
            "attn_implementation": self.attn_implementation,
        }

    def lacks(self) -> Iterator[tuple[str, str, bool]]:
        """For a dry run: what is not there, why, and whether a run can't start so."""
        return lacking(self.spec)

    def answer(self, requests: Iterable[Request]) -> Iterator[Answered]:
        """Pulls two windows of requests ahead; answers come by length within a window."""
        waiting = iter(requests)
        first = next(waiting, None)
        if first is None:
            return
        model = self._load()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="prepare") as pool:

            def submitted(window: list[Request]) -> list[Waiting]:
                return [(request, pool.submit(model.preparer.prepare, request)) for request in window]

            ahead = submitted([first, *next(windows(waiting, self.window - 1), [])])
            try:
                while ahead:
                    now, ahead = ahead, submitted(next(windows(waiting, self.window), []))
                    yield from self._answer_window(model, now)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _answer_window(self, model: _Loaded, now: list[Waiting]) -> Iterator[Answered]:
        ready, failed = [], []
        for request, prepared in now:
            try:
                ready.append(prepared.result())
            except Exception as error:  # whatever image, template or processor raise is this request's
                kind = "" if isinstance(error, ImageUnreadable | ValueError) else f"{type(error).__name__}: "
                failed.append(kind + " ".join(str(error).split()))
                yield request, Reply(text="", finish="error", error=failed[-1])
        if len(failed) >= FIRST_FAILURES and not ready:
            raise ModelUnavailable(
                f"{self.spec.name} took none of {len(failed)} requests in a row; the last one: {failed[-1]}"
            )
        for same_kind in arranged(ready):
            todo = deque(same_kind)
            while todo:
                yield from self._next_batch(model, todo)

    def _next_batch(self, model: _Loaded, todo: deque[Prepared]) -> list[Answered]:
        batch = take(todo, self._size.value)
        try:
            replies = model.generate(batch, self.share_vision)
        except Exception as error:
            if not out_of_memory(error):
                raise
            reason = f"out of memory with {batch[0].length} tokens"
        else:
            self._size.fitted(len(batch))
            return [(item.request, reply) for item, reply in zip(batch, replies, strict=True)]
        # the memory of the failed batch is held by the traceback until here
        free_memory()
        if len(batch) == 1:
            return [(batch[0].request, Reply(text="", finish="error", error=reason))]
        self._size.too_many(len(batch))
        todo.extendleft(reversed(batch))
        return []

    def _load(self) -> _Loaded:
        if self._loaded is None:
            self._loaded = load(self)
        return self._loaded

    def check(self) -> None:
        """Raises ModelUnavailable where the checkpoint can't be had, before anything heavy is imported."""
        locate(self.spec)

    def close(self) -> None:
        """Frees the weights."""
        self._loaded = None
        free_memory()


@dataclass(frozen=True, eq=False)
class _Loaded:
    model: Any
    tokenizer: Any
    preparer: Preparer
    spec: ModelSpec
    eos: frozenset[int]
    pad: int

    def generate(self, items: list[Prepared], share: bool) -> list[Reply]:
        """One call of generate; replies in the order of the items."""
        import torch

        start = time.monotonic()
        owner = vision_owner(self.model) if share else None
        batch = collated(items, self.pad, share=owner is not None)
        inputs = {name: value.to(self.model.device) for name, value in batch.inputs.items()}
        options = self._options(items[0].request)
        factor = items[0].request.sampling.repetition_penalty
        if factor != 1:
            options["logits_processor"] = [RepetitionPenalty(factor, inputs["attention_mask"])]
        watch = TokenWatch() if self.spec.logprobs else None
        if watch is not None:  # first, so that it sees what the model says before a penalty
            options["logits_processor"] = [watch, *options.get("logits_processor", ())]
        vision = shared(owner, batch) if owner is not None and batch.shares else nullcontext()
        with torch.inference_mode(), self._drawn(items[0]), vision:
            made = self.model.generate(**inputs, **options)
        new = made[:, inputs["input_ids"].shape[1] :].tolist()
        seconds = (time.monotonic() - start) / len(items)
        chosen = watch.chosen(made).tolist() if watch is not None else [None] * len(items)
        return [
            self._reply(item, row, seconds, values)
            for item, row, values in zip(items, new, chosen, strict=True)
        ]

    def _options(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        drawn = sampling.temperature > 0
        config = copy.deepcopy(self.model.generation_config)
        config.update(
            do_sample=drawn,
            temperature=sampling.temperature if drawn else None,
            top_p=sampling.top_p if drawn else None,
            top_k=sampling.top_k if drawn else None,
            repetition_penalty=1.0,  # ours leaves the padding out
            num_beams=1,
            max_new_tokens=sampling.max_new_tokens,
            max_length=None,
            eos_token_id=sorted(self.eos) or None,
            pad_token_id=self.pad,
        )
        stop = request.options.get("stop")
        return {"generation_config": config} | (
            {"stop_strings": list(stop), "tokenizer": self.tokenizer} if stop else {}
        )

    def _drawn(self, item: Prepared) -> Any:
        """For answers that are drawn: a generator of the request's own; torch's state is put back after.

        Its seed comes from what is sent, as the store's key does, and not from the example's id: two
        examples that ask the same share one answer, whichever is asked first.
        """
        request = item.request
        if request.sampling.temperature <= 0:
            return nullcontext()
        import torch

        sent = digest(item.tokens["input_ids"].tolist(), [pixels.key for pixels in item.images])
        seed = generator(request.sampling.seed or 0, sent, request.repeat).getrandbits(63)
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        forked = torch.random.fork_rng(devices=devices)
        return _Seeded(forked, seed)

    def _reply(
        self, item: Prepared, new: list[int], seconds: float, values: list[float] | None = None
    ) -> Reply:
        count = next((i for i, token in enumerate(new) if token in self.eos), len(new))
        while count == len(new) and new and new[-1] == self.pad:  # what ended by a stop string is padded
            new.pop()
            count -= 1
        text = self._decoded(new[:count])
        sampling = item.request.sampling
        ended = count < len(new)
        stopped = any(text.endswith(stop) for stop in item.request.options.get("stop") or ())
        opened = "<think>" if item.opens_thinking else ""
        logprobs = None
        if values is not None:
            written = pieces(new[:count], self._decoded)
            logprobs = aligned(written, values[:count], text, start=len(opened))
        return Reply(
            text=opened + text,
            finish="length" if count >= sampling.max_new_tokens and not stopped else "stop",
            processed=item.processed,
            usage=cost(self.spec.price, item.length, count + ended),
            seconds=seconds,
            engine=versioned("transformers"),
            decoding=sampling.declared(),
            logprobs=logprobs,
        )

    def _decoded(self, tokens: list[int]) -> str:
        """Special tokens stay: some carry the box."""
        return str(
            self.tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )


class _Seeded:
    """A forked random state with a seed."""

    def __init__(self, forked: Any, seed: int) -> None:
        self.forked, self.seed = forked, seed

    def __enter__(self) -> None:
        import torch

        self.forked.__enter__()
        torch.manual_seed(self.seed)

    def __exit__(self, *error: object) -> None:
        self.forked.__exit__(*error)


KEPT = ("bos_token_id", "decoder_start_token_id", "use_cache", "cache_implementation", "cache_config")
"""What a checkpoint's generation config says besides its decoding; eos and pad are set with each call."""


def _without_decoding(own: Any) -> Any:
    """A generation config without the checkpoint's penalties, bans and forced tokens.

    generate fills what a call leaves open from the model's own config, so that they would return.
    """
    return type(own)(**{name: value for name in KEPT if (value := getattr(own, name, None)) is not None})


def load(engine: Transformers) -> _Loaded:
    """Processor and model. Raises ModelUnavailable with one sentence."""
    spec = engine.spec
    source = locate(spec)
    import torch
    import transformers

    quiet()
    common = {"revision": spec.revision, "trust_remote_code": spec.trust_remote_code}
    device = engine.device or best_device()
    placed = {"device_map": engine.device_map} if engine.device_map else {}
    dtype = dtype_used(engine.dtype, device, bool(engine.device_map))
    try:
        transformers.AutoConfig.from_pretrained(source, **common)  # first: what it says is plainest
        processor = transformers.AutoProcessor.from_pretrained(source, **common)
        model = transformers.AutoModelForImageTextToText.from_pretrained(
            source, dtype=dtype, attn_implementation=engine.attn_implementation, **common, **placed
        )
        model = model.eval() if placed else model.eval().to(torch.device(device))
    except Exception as error:
        raise explain(spec, error) from error
    tokenizer = getattr(processor, "tokenizer", None)
    if tokenizer is None or not hasattr(processor, "image_processor") or not processor.chat_template:
        raise unavailable(spec, "its processor has no tokenizer, image processor or chat template")
    ends = model.generation_config.eos_token_id
    ends = [tokenizer.eos_token_id] if ends is None else ends if isinstance(ends, list) else [ends]
    eos = frozenset(int(token) for token in ends if token is not None)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else min(eos, default=0)
    model.generation_config = _without_decoding(model.generation_config)
    return _Loaded(model, tokenizer, Preparer(processor, spec), spec, eos, pad)
