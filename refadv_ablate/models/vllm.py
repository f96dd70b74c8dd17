"""vLLM's offline engine (optional extra `vllm`): the same messages as for a server, no server.

vLLM batches, caches the prefix and the image of neighbouring requests, and spreads over GPUs itself.
It runs on GPUs, and on a CPU with a build for it: benchmarks/engines compares its answers with those of
transformers. The unit tests use a stub that records the calls.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from refadv_ablate.errors import ImageUnreadable, ModelUnavailable
from refadv_ablate.models.checkpoint import explain, fingerprint, lacking, locate, unavailable
from refadv_ablate.models.local.batching import windows
from refadv_ablate.models.local.devices import free_memory, versioned
from refadv_ablate.models.servers.budget import cost
from refadv_ablate.models.servers.wire import chat, data_url, images_of, seed_of, template_options
from refadv_ablate.models.token_logprobs import aligned
from refadv_ablate.seeding import canonical
from refadv_ablate.types import Json, ModelSpec, Reply, Request, TokenLogprobs


@dataclass(kw_only=True)
class Vllm:
    """Hands windows of requests to `LLM.chat`.

    tensor_parallel_size, data_parallel_size: GPUs that hold one copy, and copies. max_model_len: tokens
    of prompt and answer; null is the checkpoint's. engine: further keyword arguments of vllm.LLM, such
    as quantization or mm_processor_kwargs; what the model's YAML gives under engine_options.vllm goes
    first. window: requests handed over at once; bounds memory and how late an answer is stored.
    Raises ModelUnavailable where vLLM or the weights can't be had.
    """

    spec: ModelSpec
    dtype: str = "auto"
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    gpu_memory_utilization: float = 0.9
    max_model_len: int | None = None
    engine: Mapping[str, Json] = field(default_factory=dict)
    image_format: str = "png"
    image_quality: int = 95
    window: int = 256
    _llm: Any = field(default=None, init=False, repr=False)

    def identity(self) -> Mapping[str, Json]:
        """Parallelism and memory change no answer by design and are left out."""
        return {
            "engine": "vllm",
            "checkpoint": fingerprint(self.spec.checkpoint) or self.spec.checkpoint,
            "revision": self.spec.revision,
            "dtype": self.dtype,
            "max_model_len": self.max_model_len,
            "image": [self.image_format, self.image_quality],
            "options": {**self.spec.engine_options.get("vllm", {}), **self.engine},
        }

    def lacks(self) -> Iterator[tuple[str, str, bool]]:
        """For a dry run: what is not there, why, and whether a run can't start so."""
        return lacking(self.spec)

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Window by window, those with the same template options in one call."""
        for window in windows(iter(requests), self.window):
            llm = self._load()
            by_template: dict[str, list[tuple[Request, Any]]] = {}
            for request in window:
                try:
                    messages = self._messages(request)
                except ImageUnreadable as error:
                    yield request, Reply(text="", finish="error", error=str(error))
                    continue
                key = canonical(template_options(self.spec, request))
                by_template.setdefault(key, []).append((request, messages))
            for group in by_template.values():
                yield from self._ask(llm, group)

    def _messages(self, request: Request) -> Any:
        options = request.options
        how = (
            str(options.get("image_format", self.image_format)),
            int(options.get("image_quality", self.image_quality)),
        )
        urls = {id(image): data_url(image, *how) for image in images_of(request)}
        return chat(request.messages, lambda image: urls[id(image)])

    def _ask(self, llm: Any, group: list[tuple[Request, Any]]) -> Iterator[tuple[Request, Reply]]:
        start = time.monotonic()
        try:
            outputs = llm.chat(
                [messages for _, messages in group],
                sampling_params=[self._sampling(request) for request, _ in group],
                chat_template_kwargs=template_options(self.spec, group[0][0]) or None,
                use_tqdm=False,
            )
        except ValueError as error:  # one that is too long fails its whole call
            if len(group) == 1:
                yield group[0][0], Reply(text="", finish="error", error=" ".join(str(error).split())[:300])
                return
            for one in group:
                yield from self._ask(llm, [one])
            return
        seconds = (time.monotonic() - start) / len(group)
        for (request, _), output in zip(group, outputs, strict=True):
            yield request, self._reply(request, output, seconds)

    def _sampling(self, request: Request) -> Any:
        from vllm import SamplingParams

        sampling = request.sampling
        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            repetition_penalty=sampling.repetition_penalty,
            seed=seed_of(request),
            max_tokens=sampling.max_new_tokens,
            stop=list(request.options.get("stop") or ()),
            logprobs=0 if self.spec.logprobs else None,  # of the tokens that were taken alone
            skip_special_tokens=False,  # some carry the box
            spaces_between_special_tokens=False,
        )

    def _reply(self, request: Request, output: Any, seconds: float) -> Reply:
        answer = output.outputs[0]
        prompt = len(output.prompt_token_ids or ())
        opened = str(output.prompt or "").rstrip().endswith("<think>")
        lead, text = "<think>" if opened else "", _without_end(answer.text)
        return Reply(
            text=lead + text,
            finish="length" if answer.finish_reason == "length" else "stop",
            usage=cost(self.spec.price, prompt, len(answer.token_ids)),
            seconds=seconds,
            engine=versioned("vllm"),
            decoding=request.sampling.declared(),
            logprobs=_logprobs(answer, text, len(lead)) if self.spec.logprobs else None,
        )

    def _load(self) -> Any:
        if self._llm is None:
            try:
                import vllm
            except ImportError as error:
                remedy = "install it with: pip install 'refadv-ablate[vllm]', or use backend=transformers"
                raise unavailable(self.spec, "vLLM is not installed", remedy) from error
            source = locate(self.spec)
            options = {**self.spec.engine_options.get("vllm", {}), **self.engine}
            if self.data_parallel_size > 1:  # not every version of LLM takes it
                options["data_parallel_size"] = self.data_parallel_size
            try:
                self._llm = vllm.LLM(
                    model=source,
                    revision=self.spec.revision,
                    trust_remote_code=self.spec.trust_remote_code,
                    dtype=self.dtype,
                    tensor_parallel_size=self.tensor_parallel_size,
                    gpu_memory_utilization=self.gpu_memory_utilization,
                    max_model_len=self.max_model_len,
                    limit_mm_per_prompt={"image": 1},
                    **options,
                )
            except ModelUnavailable:
                raise
            except Exception as error:
                raise explain(self.spec, error) from error
        return self._llm

    def close(self) -> None:
        """Ends the engine's processes and frees its GPUs; without that the command would never end."""
        llm, self._llm = self._llm, None
        core = getattr(getattr(llm, "llm_engine", None), "engine_core", None)
        if core is not None:
            core.shutdown()
        free_memory()


def _logprobs(answer: Any, text: str, start: int) -> TokenLogprobs:
    """Those of the tokens that were taken, as vLLM gives them: for each place a mapping from token ids."""
    told = getattr(answer, "logprobs", None)
    if not told or len(told) != len(answer.token_ids):
        return TokenLogprobs(lacks="vLLM gave none")
    taken = [place.get(token) for place, token in zip(told, answer.token_ids, strict=True)]
    if any(one is None or one.decoded_token is None for one in taken):
        return TokenLogprobs(lacks="vLLM gave none for a token that it took")
    return aligned([one.decoded_token for one in taken], [one.logprob for one in taken], text, start)


ENDS = ("<|im_end|>", "<|endoftext|>", "<|user|>", "</s>")


def _without_end(text: str) -> str:
    """Without the token that ended the turn, which is kept in the text along with those that carry a box."""
    for end in ENDS:
        text = text.removesuffix(end)
    return text
