"""Perturbed → Request: each model is asked in its own words, with text files as the only templates.

A text file holds the prompt as it is sent, with `{expression}` where the expression goes; nothing else
in it is special, so braces and `${` need no escapes. A final line break belongs to the file, not to
the prompt. A system text for one style lies beside it: `som.txt` and `som.system.txt`.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.prompting.som import Candidates, Marked, MarkNumbers
from refadv_ablate.seeding import digest
from refadv_ablate.types import (
    Dialect,
    Frame,
    ImageRef,
    Json,
    Message,
    ModelSpec,
    Perturbed,
    Reply,
    Request,
)

PLACEHOLDER = "{expression}"


@dataclass(frozen=True, slots=True)
class Style:
    """A way of asking: one YAML of conf/prompt.

    file: a text file of one's own in place of the family's (relative to the launch directory).
    follow_up: text of the one further turn after an unreadable answer, under conf/prompt_text.
    candidates: where Set-of-Marks takes its boxes from; None asks for a box.
    max_new_tokens: at least this many, for styles that ask the model to reason in its answer.
    suffix: added to the name; a protocol sets it.
    or_none: the prompt allows the answer "none", in the family's own words: `direct.none.txt` beside
    `direct.txt`, and `follow_up.none.txt` beside `follow_up.txt`.
    """

    style: str
    file: str | None = None
    follow_up: str = "shared/follow_up.txt"
    candidates: Candidates | None = None
    max_new_tokens: int | None = None
    suffix: str = ""
    or_none: bool = False

    @property
    def name(self) -> str:
        """As tables show it: the style, and what else tells it from its namesakes."""
        source = self.candidates.identity()["source"] if self.candidates else "data"
        more = (
            Path(self.file).stem if self.file else "",
            "" if source == "data" else str(source),
            self.suffix,
            "or_none" if self.or_none else "",
        )
        return "-".join([self.style, *filter(None, more)])

    def texts(self, spec: ModelSpec) -> tuple[str, str | None]:
        """The user's and the system's text for this model. Raises UserError."""
        if self.file:
            path = Path(self.file).expanduser()
        else:
            if self.style not in spec.prompts:
                raise UserError(
                    f"{spec.name} has no prompt of the style {self.style!r}; "
                    f"{nearest(self.style, spec.prompts)}; or give a text of your own as prompt.file=…"
                )
            path = shipped(spec.prompts[self.style])
        text, system = _templates(path, int(time.monotonic()), self.or_none)
        return text, spec.system if system is None else system

    def fingerprint(self, spec: ModelSpec) -> str:
        """A hash of every text and setting that this style sends: part of what identifies a result."""
        _templates.cache_clear()
        candidates = self.candidates.identity() if self.candidates else None
        further = ["or_none"] if self.or_none else []
        told = (self.style, self.texts(spec), self.follow_up_text(), candidates, self.max_new_tokens)
        return digest(*told, *further)

    def follow_up_text(self) -> str:
        """What the further turn says."""
        path = shipped(self.follow_up)
        return read_text(allowing_none(path) if self.or_none else path)


def allowing_none(path: Path) -> Path:
    """The text beside a prompt file that says the same and allows the answer "none"."""
    return path.with_suffix(".none.txt")


def shipped(name: str) -> Path:
    """A file of conf/prompt_text; an absolute path stays what it is."""
    from refadv_ablate.assets import asset_dir

    return asset_dir("conf") / "prompt_text" / name


@lru_cache(maxsize=64)
def _templates(path: Path, _second: int, or_none: bool) -> tuple[str, str | None]:
    """User's and system's text; looked for at most once a second, since a run asks for them at every turn."""
    system = path.with_suffix(".system.txt")
    if or_none:
        path = allowing_none(path)
        if not path.is_file():
            raise UserError(
                f"this needs a prompt that allows the answer none, and there is no {path}: write the text of "
                f"{path.name.replace('.none', '')} there, and how to answer when nothing matches"
            )
    text = read_text(path)
    if PLACEHOLDER not in text:
        raise UserError(f"the prompt file {path} lacks {PLACEHOLDER}, where the expression goes; add it")
    return text, read_text(system) if system.is_file() else None


def read_text(path: Path) -> str:
    """The file without its final line break. Raises UserError where it can't be read."""
    try:
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UserError(f"the prompt file {path} can't be read: {reason}; give another path") from error


def build(
    spec: ModelSpec, style: Style | str, perturbed: Perturbed, condition: str, draw: int, repeat: int = 0
) -> Request:
    """The request for one perturbed example. Raises UserError for a style the model lacks.

    `options` holds what else changes the answer: `template_options`, `thinking`, the image's encoding.
    `options["or_none"]` says that the prompt allows the answer "none".
    `options["marks"]` holds the candidate boxes of Set-of-Marks, pixels of the original image, in the
    order of their numbers.
    """
    style = Style(style) if isinstance(style, str) else style
    text, system = style.texts(spec)
    options: dict[str, Json] = dict(spec.image_options)
    if spec.template_options:
        options["template_options"] = dict(spec.template_options)
    if spec.thinking is not None:
        options["thinking"] = spec.thinking
    if style.or_none:
        options["or_none"] = True
    image = _image(spec, style, perturbed, options)
    expression = perturbed.example.expression
    text = text.replace(PLACEHOLDER, expression.lower() if spec.lowercase else expression)
    parts: tuple[str | ImageRef, ...] = (image, text) if spec.image_first else (text, image)
    messages = (Message("system", (system,)),) if system else ()
    sampling = spec.sampling
    if style.max_new_tokens is not None:
        sampling = replace(sampling, max_new_tokens=max(sampling.max_new_tokens, style.max_new_tokens))
    return Request(
        perturbed, condition, draw, (*messages, Message("user", parts)), image, sampling, repeat, options
    )


def _image(spec: ModelSpec, style: Style, perturbed: Perturbed, options: dict[str, Json]) -> ImageRef:
    """The image as it is sent: marked, then resized, where asked for or needed. Raises ImageUnreadable."""
    image = perturbed.example.image
    if style.candidates is not None:
        boxes = style.candidates.boxes(perturbed.example)
        options["marks"] = [box.as_list() for box in boxes]
        image = Marked(image, boxes)
    elif style.style.startswith("som"):
        raise UserError(
            f"prompt.style={style.style} marks candidate boxes, but prompt.candidates is not set;"
            " use prompt=som"
        )
    if spec.resize_before_sending and spec.resize is None:
        raise UserError(
            f"{spec.name}: resize_before_sending needs the model's resize rule; set model.resize, such as"
            " model.resize._target_=refadv_ablate.parsing.frames.SmartResize"
        )
    if spec.limits is None and spec.resize is None:
        return image
    from refadv_ablate.data.images import resized

    size = spec.limits(image.size()) if spec.limits else image.size()
    seen = spec.resize(size) if spec.resize else size  # refuses here what could not be read later
    return resized(image, seen if spec.resize_before_sending else size)


def follow_up(request: Request, reply: Reply, text: str | Style) -> Request:
    """The same conversation with the reply and one more turn, which asks for the answer alone."""
    said = reply.text.strip() or "(no answer)"
    if re.search(r"<think>(?!.*</think>)", said, re.DOTALL):
        said += "\n</think>"  # else chat templates take all that follows for more of the trace
    if isinstance(text, Style):
        text = replace(text, or_none=bool(request.options.get("or_none"))).follow_up_text()
    further = (Message("assistant", (said,)), Message("user", (text,)))
    return replace(request, messages=(*request.messages, *further))


def reading(spec: ModelSpec, style: Style, request: Request) -> tuple[Dialect, Frame]:
    """How the reply to this request is read: mark numbers for Set-of-Marks, else as the family answers."""
    if "marks" in request.options:
        return MarkNumbers(tuple(Box(*quad) for quad in request.options["marks"])), OriginalPixels()
    return spec.dialect, spec.frame
