"""Requests as tensors: the text of each, the pixels of each distinct image once."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refadv_ablate.boxes import Size
from refadv_ablate.models.servers.wire import images_of, template_options
from refadv_ablate.types import ImageRef, Json, Message, ModelSpec, Request

if TYPE_CHECKING:
    from PIL import Image

PIXELS = "pixel_values"
KEPT_IMAGES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Pixels:
    """An image as the processor made it. fields: name → tensor with the image's rows first."""

    key: str
    picture: Image.Image
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A request ready for a batch. tokens: name → 1-D tensor of one length; other: further model inputs."""

    request: Request
    tokens: dict[str, Any]
    other: dict[str, Any]
    images: tuple[Pixels, ...]
    processed: Size | None
    opens_thinking: bool
    """The template itself opened the thinking trace, so the answer begins inside it."""

    @property
    def length(self) -> int:
        """Tokens of the prompt, image tokens among them."""
        return int(self.tokens["input_ids"].shape[0])


class _Remembering:
    """Stands before an image processor: gives out what was made before, or lets through and notes how."""

    def __init__(self, real: Any) -> None:
        self.real, self.options, self.ready = real, dict[str, Any](), None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __call__(self, images: Any, *args: Any, **options: Any) -> Any:
        if self.ready is not None:
            return self.ready
        self.options = options
        return self.real(images, *args, **options)


class Preparer:
    """Turns requests into Prepared, from several threads at once.

    Image work runs in parallel, once per distinct image; the tokenizer (which is not for several
    threads) runs under a lock.
    """

    def __init__(self, processor: Any, spec: ModelSpec) -> None:
        self.processor, self.spec = processor, spec
        self.images = _Remembering(processor.image_processor)
        processor.image_processor = self.images
        self._lock = threading.Lock()
        self._made: OrderedDict[str, Future[Pixels]] = OrderedDict()
        self._making = threading.Lock()

    def prepare(self, request: Request) -> Prepared:
        """Raises ImageUnreadable, or ValueError for an image or a text that the processor refuses."""
        import torch

        prompt = self.prompt(request)
        pixels = tuple(self._pixels(image, request, prompt) for image in images_of(request))
        with self._lock:
            self.images.ready = _joined(pixels)
            try:
                made = self.processor(text=[prompt], images=[[p.picture for p in pixels]] if pixels else None)
            finally:
                self.images.ready = None
        fields = {name: torch.as_tensor(value) for name, value in made.items() if name != PIXELS}
        length = fields["input_ids"].shape[1]
        tokens = {name: value[0] for name, value in fields.items() if value.shape == (1, length)}
        other = {name: value for name, value in fields.items() if name not in tokens}
        opens = prompt.rstrip().endswith("<think>")
        return Prepared(request, tokens, other, pixels, self._processed(pixels), opens)

    def prompt(self, request: Request) -> str:
        """The conversation as the chat template writes it."""
        turns = [_turn(message) for message in request.messages]
        told = template_options(self.spec, request)
        return str(
            self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **told)
        )

    def _pixels(self, image: ImageRef, request: Request, prompt: str) -> Pixels:
        how = [request.options.get(name) for name in ("image_format", "image_quality")]
        key = f"{image.digest()} {how}"
        with self._making:
            found = self._made.get(key)
            if found is None:
                mine = self._made[key] = Future[Pixels]()
                while len(self._made) > KEPT_IMAGES:
                    self._made.popitem(last=False)
        if found is not None:
            return found.result()
        try:
            mine.set_result(self._process(key, as_sent(image, *how), prompt))
        except BaseException as error:
            mine.set_exception(error)
            raise
        return mine.result()

    def _process(self, key: str, picture: Image.Image, prompt: str) -> Pixels:
        if not self.images.options:  # how the processor calls its image processor: seen once, then repeated
            with self._lock:
                self.processor(text=[_first_image_only(prompt, self.processor)], images=[[picture]])
        made = self.images.real([picture], **{**self.images.options, "return_tensors": "pt"})
        return Pixels(key, picture, dict(made))

    def _processed(self, pixels: Sequence[Pixels]) -> Size | None:
        """(width, height) after the processor's own resize, where it tells: Qwen and GLM do."""
        grid = pixels[0].fields.get("image_grid_thw") if pixels else None
        patch = getattr(self.images.real, "patch_size", None)
        if grid is None or not isinstance(patch, int):
            return None
        _, height, width = (int(n) for n in grid[0])
        return width * patch, height * patch


def _turn(message: Message) -> dict[str, Json]:
    parts = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
        for part in message.parts
    ]
    return {"role": message.role, "content": parts}


def as_sent(image: ImageRef, image_format: Json, quality: Json) -> Image.Image:
    """The pixels a server would get: JPEG changes them."""
    from PIL import Image

    from refadv_ablate.data.images import encode

    picture = image.load()
    if image_format != "jpeg":
        return picture
    data = encode(picture, "jpeg", int(quality or 95))
    with Image.open(io.BytesIO(data)) as sent:
        return sent.convert("RGB")


def _first_image_only(prompt: str, processor: Any) -> str:
    token = getattr(processor, "image_token", None)
    if not token or prompt.count(token) < 2:
        return prompt
    head, *rest = prompt.split(str(token))
    return f"{head}{token}{''.join(rest)}"


def _joined(pixels: Sequence[Pixels]) -> Any:
    """The fields of several images as the image processor would have given them in one call."""
    import torch
    from transformers import BatchFeature

    if not pixels:
        return None
    joined: dict[str, Any] = {}
    for name in pixels[0].fields:
        values = [p.fields[name] for p in pixels]
        if torch.is_tensor(values[0]):
            joined[name] = torch.cat(values)
        else:
            joined[name] = [item for value in values for item in value]
    return BatchFeature(joined)
