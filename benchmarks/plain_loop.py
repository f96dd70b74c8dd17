"""What one would write in a notebook: processor, generate, one request at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refadv_ablate.types import Request


class PlainLoop:
    """Greedy answers of a folder or hub id. dtype, device: as from_pretrained and `to` take them."""

    def __init__(
        self, checkpoint: str, dtype: str = "float32", device: str = "cpu", revision: str | None = None
    ) -> None:
        from transformers import AutoModelForImageTextToText, AutoProcessor

        self.processor = AutoProcessor.from_pretrained(checkpoint, revision=revision)
        model = AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=dtype, revision=revision)
        self.model = model.eval().to(device)
        ends = self.model.generation_config.eos_token_id
        self.ends = set(ends if isinstance(ends, list) else [ends])

    def answer(self, request: Request, options: Mapping[str, Any] | None = None) -> str:
        """The text with its special tokens, without the token that ends it. options: of the chat template."""
        import torch

        images: list[Any] = []
        turns = [
            {"role": message.role, "content": [self._part(part, images) for part in message.parts]}
            for message in request.messages
        ]
        prompt = self.processor.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **(options or {})
        )
        inputs = self.processor(text=[prompt], images=[images], return_tensors="pt").to(self.model.device)
        for name, value in inputs.items():  # pixels in the weights' precision
            if torch.is_tensor(value) and torch.is_floating_point(value):
                inputs[name] = value.to(self.model.dtype)
        sampling = request.sampling
        with torch.inference_mode():
            made = self.model.generate(
                **inputs, max_new_tokens=sampling.max_new_tokens, do_sample=False, temperature=None,
                top_p=None, top_k=None, repetition_penalty=sampling.repetition_penalty,
            )  # fmt: skip
        new = made[0, inputs["input_ids"].shape[1] :].tolist()
        count = next((i for i, token in enumerate(new) if token in self.ends), len(new))
        opened = "<think>" if prompt.rstrip().endswith("<think>") else ""
        return opened + str(self.processor.tokenizer.decode(new[:count], clean_up_tokenization_spaces=False))

    @staticmethod
    def _part(part: Any, images: list[Any]) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        images.append(part.load())
        return {"type": "image"}
