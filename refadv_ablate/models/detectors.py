"""Grounders without a chat, through transformers: what a model without language reasoning does.

Each answers with its one best box for the expression, in pixels of the original image, as JSON.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from refadv_ablate.boxes import Size
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.models.checkpoint import explain, fingerprint, lacking, locate
from refadv_ablate.models.local.batching import windows
from refadv_ablate.models.local.devices import best_device, dtype_used, free_memory, quiet, versioned
from refadv_ablate.models.local.preparing import as_sent
from refadv_ablate.types import Confidence, Json, ModelSpec, Reply, Request


@dataclass(frozen=True, slots=True)
class Found:
    """A box (x1, y1, x2, y2 in pixels of the image that was sent), its score where the model gives one."""

    box: Sequence[float]
    score: float | None = None
    note: str = ""


@dataclass(kw_only=True)
class Detector(ABC):
    """Takes the requests of one image together: one image preparation and, where it can, one vision pass.

    The text asked about is that of the last user turn, so the prompt's file holds the family's form.
    batch_size: texts about one image in one pass. dtype: as torch names it; null is float32 on the CPU
    and the checkpoint's own elsewhere.
    """

    spec: ModelSpec
    dtype: str | None = None
    device: str | None = None
    batch_size: int = 8
    _parts: tuple[Any, Any] | None = field(default=None, init=False, repr=False)

    def identity(self) -> Mapping[str, Json]:
        """A local folder is known by its content, wherever it lies."""
        return {
            "engine": type(self).__name__,
            "checkpoint": fingerprint(self.spec.checkpoint) or self.spec.checkpoint,
            "revision": self.spec.revision,
            "dtype": dtype_used(self.dtype, self.device),
        }

    def check(self) -> None:
        """Raises ModelUnavailable where the checkpoint can't be had, before anything heavy is imported."""
        locate(self.spec)

    def lacks(self) -> Iterator[tuple[str, str, bool]]:
        """For a dry run: what is not there, why, and whether a run can't start so."""
        return lacking(self.spec)

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """In the order asked; neighbours on the same image go together."""
        for _, same in groupby(requests, key=lambda request: request.image.digest()):
            for group in windows(same, self.batch_size):
                yield from zip(group, self._replies(group), strict=True)

    def _replies(self, group: list[Request]) -> list[Reply]:
        start = time.monotonic()
        try:
            options = group[0].options
            image = as_sent(group[0].image, options.get("image_format"), options.get("image_quality"))
            found = self._detect(image, [_text(request) for request in group])
        except (ImageUnreadable, ValueError) as error:
            failed = Reply(text="", finish="error", error=" ".join(str(error).split()))
            return [failed] * len(group)
        seconds = (time.monotonic() - start) / len(group)
        engine = versioned("transformers")
        return [
            Reply(
                text=_as_json(best),
                reasoning=best.note if best else "",
                seconds=seconds,
                engine=engine,
                confidence=_confidence(best),
            )
            for best in found
        ]

    def _detect(self, image: Any, texts: list[str]) -> list[Found | None]:
        import torch

        processor, model = self._load()
        with torch.inference_mode():
            return self.best(processor, model, image, texts)

    @abstractmethod
    def best(self, processor: Any, model: Any, image: Any, texts: list[str]) -> list[Found | None]:
        """The best box for each text on a PIL image; None where the model gives no box."""

    @abstractmethod
    def model_class(self) -> Any:
        """The auto class that loads the architecture."""

    def _load(self) -> tuple[Any, Any]:
        if self._parts is None:
            source = locate(self.spec)
            from transformers import AutoConfig, AutoProcessor

            quiet()
            device = self.device or best_device()
            dtype = dtype_used(self.dtype, device)
            common = {"revision": self.spec.revision, "trust_remote_code": self.spec.trust_remote_code}
            try:
                AutoConfig.from_pretrained(source, **common)  # first: what it says is plainest
                processor = AutoProcessor.from_pretrained(source, **common)
                model = self.model_class().from_pretrained(source, dtype=dtype, **common).eval().to(device)
            except Exception as error:
                raise explain(self.spec, error) from error
            self._parts = processor, model
        return self._parts

    def close(self) -> None:
        """Frees the weights."""
        self._parts = None
        free_memory()


def _text(request: Request) -> str:
    user = [message for message in request.messages if message.role == "user"][-1]
    return " ".join(part for part in user.parts if isinstance(part, str))


def _as_json(found: Found | None) -> str:
    if found is None:
        return "[]"
    box = [round(float(value), 2) for value in found.box]
    answer: dict[str, Json] = {"bbox": box}
    if found.score is not None:
        answer["score"] = round(found.score, 4)
    return json.dumps(answer)


def _confidence(found: Found | None) -> Confidence | None:
    """The model's score of its box; no box has none."""
    return None if found is None or found.score is None else Confidence(round(found.score, 4))


def _corners(box: Any, size: Size) -> list[float]:
    """Pixels x1, y1, x2, y2 of a (center x, center y, width, height) relative to a frame of this size."""
    cx, cy, w, h = (float(value) for value in box)
    width, height = size
    return [(cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height]


def _inputs(made: Any, model: Any) -> dict[str, Any]:
    import torch

    moved = {name: value.to(model.device) for name, value in made.items()}
    return {
        name: value.to(model.dtype) if torch.is_floating_point(value) else value
        for name, value in moved.items()
    }


@dataclass(kw_only=True)
class GroundingDino(Detector):
    """Grounding DINO and MM-Grounding-DINO: the query with the highest text similarity.

    Text: lower case, one phrase, ending in a full stop (full stops within would split it into phrases).
    Score: the highest token similarity of a query, for REC as the author says (IDEA-Research/
    GroundingDINO#44).
    Boxes are relative to the image itself, not to the padded batch.
    """

    def model_class(self) -> Any:
        """Zero-shot detection."""
        from transformers import AutoModelForZeroShotObjectDetection

        return AutoModelForZeroShotObjectDetection

    def best(self, processor: Any, model: Any, image: Any, texts: list[str]) -> list[Found | None]:
        """All texts in one pass: the image is repeated, so nothing is padded but the texts."""
        phrases = [as_phrase(text) for text in texts]
        made = processor(images=[image] * len(texts), text=phrases, padding=True, return_tensors="pt")
        output = model(**_inputs(made, model))
        scores = output.logits.float().sigmoid().amax(dim=-1)
        found: list[Found | None] = []
        for score, boxes in zip(scores, output.pred_boxes, strict=True):
            best = int(score.argmax())
            found.append(Found(_corners(boxes[best], image.size), float(score[best])))
        return found


def as_phrase(text: str) -> str:
    """The text as one phrase of Grounding DINO's caption."""
    words = text.lower().replace(".", " ").replace("?", " ").split()
    return f"{' '.join(words)}."


@dataclass(kw_only=True)
class Owlv2(Detector):
    """OWLv2: the patch whose class embedding is most like the text's; one vision pass for all texts.

    The text encoder reads 16 tokens: what is longer is cut, which the reply's reasoning says. Boxes are
    relative to the image padded at the bottom or right to a square (huggingface/transformers#30131);
    patches of the padding don't count.
    """

    def model_class(self) -> Any:
        """Zero-shot detection."""
        from transformers import AutoModelForZeroShotObjectDetection

        return AutoModelForZeroShotObjectDetection

    def best(self, processor: Any, model: Any, image: Any, texts: list[str]) -> list[Found | None]:
        """Each text is a query of the same image."""
        longest = int(model.config.text_config.max_position_embeddings)
        tokens = processor.tokenizer(
            texts, padding="max_length", truncation=True, max_length=longest, return_tensors="pt"
        )
        full = processor.tokenizer(texts, verbose=False)["input_ids"]
        pixels = processor.image_processor(image, return_tensors="pt")
        wanted = {name: tokens[name] for name in ("input_ids", "attention_mask")}
        output = model(**_inputs({**wanted, "pixel_values": pixels["pixel_values"]}, model))
        side = max(image.size)
        found: list[Found | None] = []
        centers = output.pred_boxes[0, :, :2].float() * side
        padding = (centers[:, 0] > image.size[0]) | (centers[:, 1] > image.size[1])
        for query, ids in enumerate(full):
            score = output.logits[0, :, query].float().sigmoid().masked_fill(padding, 0.0)
            best = int(score.argmax())
            cut = f"the expression was cut from {len(ids)} to {longest} tokens" if len(ids) > longest else ""
            box = _corners(output.pred_boxes[0, best], (side, side))
            found.append(Found(box, float(score[best]), cut))
        return found


@dataclass(kw_only=True)
class Florence2(Detector):
    """Florence-2 (transformers' own code, `florence-community/*` checkpoints), by phrase grounding.

    The text begins with a task token; of the phrases that the model grounds the first counts, since it
    gives no scores and the expression's head usually comes first. Greedy; no box is an empty list.
    """

    max_new_tokens: int = 256

    def model_class(self) -> Any:
        """An encoder-decoder behind the image-text-to-text class."""
        from transformers import AutoModelForImageTextToText

        return AutoModelForImageTextToText

    def best(self, processor: Any, model: Any, image: Any, texts: list[str]) -> list[Found | None]:
        """All texts in one pass."""
        made = processor(images=[image] * len(texts), text=texts, padding=True, return_tensors="pt")
        new = model.generate(
            **_inputs(made, model), max_new_tokens=self.max_new_tokens, do_sample=False, num_beams=1
        )
        answers = processor.tokenizer.batch_decode(new, skip_special_tokens=False)
        found: list[Found | None] = []
        for text, answer in zip(texts, answers, strict=True):
            task = text[: text.index(">") + 1] if text.startswith("<") else "<OPEN_VOCABULARY_DETECTION>"
            read = processor.post_process_generation(text=answer, task=task, image_size=image.size)[task]
            boxes = read["bboxes"]
            label = next(iter(read.get("labels") or read.get("bboxes_labels") or [""]), "")
            found.append(Found(boxes[0], None, f"phrase: {label}") if boxes else None)
        return found
