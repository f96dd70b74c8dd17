"""Asks a model a handful, and shows how its answers were read before anyone pays for thousands.

For each example: the sizes of the image (stored, sent, as the processor made it), the numbers as they
were written, the frame, the pixels, an overlay. Then what looks wrong. Other frames are tried against
the gold boxes here, to name a likely mistake; no score ever does that.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refadv_ablate.boxes import Box, Size, iou
from refadv_ablate.errors import UserError
from refadv_ablate.parsing import dialects
from refadv_ablate.parsing.frame_check import ENOUGH, FrameCheck
from refadv_ablate.prompting import prompts
from refadv_ablate.prompting.marks import draw_marks
from refadv_ablate.report.figures.sheets import captioned, contact_sheet
from refadv_ablate.types import (
    ORIGINAL,
    Candidate,
    Example,
    Frame,
    Model,
    ModelSpec,
    NoBox,
    Perturbed,
    Reading,
    Reply,
    Request,
    Seen,
)

if TYPE_CHECKING:
    from PIL import Image

GOLD, PREDICTED = (0, 110, 40), (190, 0, 110)
LEAST = 4
"""Answers with numbers from which another frame is looked for."""


@dataclass(frozen=True, slots=True)
class SelfTestImage:
    """A drawn image whose box tells axes, orders and scales apart: off the middle, wider than high."""

    key: str = "self-test"

    def size(self) -> Size:
        """Not square, so that a mix-up of width and height shows."""
        return 720, 400

    def load(self) -> Image.Image:
        """RGB: a red rectangle, a blue disc and a green triangle on light grey."""
        from PIL import Image, ImageDraw

        image = Image.new("RGB", self.size(), (225, 225, 225))
        draw = ImageDraw.Draw(image)
        draw.rectangle((470, 50, 669, 129), fill=(205, 25, 25))
        draw.ellipse((60, 40, 179, 159), fill=(30, 60, 200))
        draw.polygon([(150, 370), (290, 370), (220, 230)], fill=(20, 140, 50))
        return image

    def digest(self) -> str:
        """SHA-256 of the name of this drawing."""
        return hashlib.sha256(b"refadv-ablate doctor self-test 1").hexdigest()


def self_test() -> Example:
    """The red rectangle among three drawn shapes."""
    target = Box(470, 50, 670, 130)
    shapes = (target, Box(60, 40, 180, 160), Box(150, 230, 291, 371))
    return Example(
        "self-test", SelfTestImage(), "the red rectangle", target, candidates=tuple(map(Candidate, shapes))
    )


@dataclass(frozen=True, slots=True)
class Case:
    """One example, asked and read. reading is None where the model never answered."""

    request: Request
    reply: Reply
    seen: Seen
    reading: Reading | None

    @property
    def example(self) -> Example:
        """What was asked."""
        return self.request.perturbed.example

    @property
    def score(self) -> float:
        """IoU with the gold box; 0 without a box."""
        answer = self.reading.answer if self.reading else None
        return iou(answer, self.example.target) if isinstance(answer, Box) else 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """What the doctor found. problems: one sentence each, empty where nothing looks wrong."""

    cases: tuple[Case, ...]
    frame: Frame
    problems: tuple[str, ...]
    files: tuple[Path, ...] = field(default=())

    def text(self) -> str:
        """For the terminal and report.txt."""
        lines = [line for case in self.cases for line in _lines(case, self.frame)]
        lines += ["what looks wrong:" if self.problems else "nothing looks wrong"]
        lines += [f"  - {problem}" for problem in self.problems]
        if self.files:
            lines += ["", f"pictures: {self.files[-1]} and {len(self.files) - 1} more beside it"]
        return "\n".join(lines)


def diagnose(
    examples: Iterable[Example],
    spec: ModelSpec,
    model: Model,
    style: prompts.Style,
    out_dir: Path | None,
    n: int = 8,
    with_self_test: bool = True,
) -> Report:
    """Asks the first n examples, draws overlays into out_dir (None: nowhere), and says what looks wrong."""
    chosen = [*([self_test()] if with_self_test else []), *islice(examples, n)]
    if not chosen:
        raise UserError("the doctor has nothing to ask: the data has no examples and self_test=false")
    requests = [
        prompts.build(spec, style, Perturbed(example, example, "unchanged"), ORIGINAL, 0)
        for example in chosen
    ]
    replies = {id(request): reply for request, reply in model.answer(requests)}
    cases = tuple(_case(spec, style, r, replies.get(id(r), _NEVER)) for r in requests)
    frame = prompts.reading(spec, style, requests[0])[1]
    files = _draw(cases, out_dir) if out_dir is not None else ()
    report = Report(cases, frame, _problems(cases, frame, spec), files)
    if out_dir is not None:
        (out_dir / "report.txt").write_text(report.text() + "\n", encoding="utf-8")
    return report


_NEVER = Reply("", finish="error", error="the model gave no reply to this request")


def _case(spec: ModelSpec, style: prompts.Style, request: Request, reply: Reply) -> Case:
    dialect, frame = prompts.reading(spec, style, request)
    seen = Seen(request.perturbed.example.image.size(), request.image.size(), reply.processed)
    reading = None if reply.finish == "error" else dialects.read(reply, dialect, frame, seen)
    return Case(request, reply, seen, reading)


# ── what looks wrong ────────────────────────────────────────────────────────────────────────────


def _problems(cases: Sequence[Case], frame: Frame, spec: ModelSpec) -> tuple[str, ...]:
    found: list[str] = []
    missing = [case for case in cases if case.reading is None]
    if missing:
        found.append(f"{len(missing)} of {len(cases)} requests failed (first: {missing[0].reply.error})")
    found += _unread(cases, spec)
    found += _resized_otherwise(cases, spec)
    check = FrameCheck(frame, least=LEAST)
    for case in cases:
        if case.reading is not None:
            check.add(case.reading, case.seen, case.example.id, case.example.target)
    found += check.warnings()
    boxes = [case for case in cases if case.reading is not None and isinstance(case.reading.answer, Box)]
    whole = [case for case in boxes if _covers(case)]
    if 3 <= len(boxes) < ENOUGH and len(whole) > len(boxes) / 2:
        found.append(
            f"{len(whole)} of {len(boxes)} boxes cover four fifths of the image or more: the answers may"
            " not be about the expression, the image may have arrived damaged, or the frame is another"
        )
    found += _all_alike(boxes)
    for case in boxes:
        if case.example.id == "self-test" and case.score < 0.5:
            found.append(
                f"the self-test's red rectangle was not found (IoU {case.score:.2f}): see its overlay; a"
                " small or untrained model may fail here, a trained one should not"
            )
    return tuple(found)


def _resized_otherwise(cases: Sequence[Case], spec: ModelSpec) -> list[str]:
    """Where a processor's own size shows that the model's resize rule would be wrong for a server."""
    for case in cases:
        if spec.resize is None or case.seen.processed is None:
            continue
        rule = spec.resize(case.seen.sent)
        if rule != case.seen.processed:
            return [
                f"the processor made {_by(case.seen.processed)} of {_by(case.seen.sent)} ({case.example.id}),"
                f" model.resize says {_by(rule)}: the processor's size is used here, but set"
                " model.resize.min_pixels and max_pixels to its own before you ask a server"
            ]
    return []


def _all_alike(boxes: Sequence[Case]) -> list[str]:
    """The same numbers for several images; a run of enough examples says so by itself."""
    numbers = Counter(case.reading.raw for case in boxes if case.reading is not None and case.reading.raw)
    if not numbers:
        return []
    quad, times = numbers.most_common(1)[0]
    if not 3 <= times <= len(boxes) < ENOUGH or times <= len(boxes) / 2:
        return []
    shown = ", ".join(f"{value:g}" for value in quad)
    return [f"{times} of {len(boxes)} boxes are the same, [{shown}]: the model may not see the images"]


def _covers(case: Case) -> bool:
    answer = case.reading.answer if case.reading else None
    width, height = case.seen.original
    return isinstance(answer, Box) and answer.area >= 0.8 * width * height


def _unread(cases: Sequence[Case], spec: ModelSpec) -> list[str]:
    answers = [case.reading.answer for case in cases if case.reading is not None]
    unread = [answer for answer in answers if isinstance(answer, NoBox)]
    found = [
        f"{count} of {len(cases)} answers hold no box: {kind}, {reason}"
        for (kind, reason), count in Counter((a.kind, a.reason) for a in unread).most_common()
    ]
    if any(answer.kind == "truncated" for answer in unread):
        found.append(
            f"answers were cut at {spec.sampling.max_new_tokens} tokens: raise model.sampling.max_new_tokens,"
            " or use retry=format"
        )
    return found


# ── showing ─────────────────────────────────────────────────────────────────────────────────────


def _lines(case: Case, frame: Frame) -> list[str]:
    seen, example = case.seen, case.example
    made = _by(seen.processed) if seen.processed else "not reported"
    lines = [
        f"{example.id}: {_short(example.expression)}",
        f"  image   stored {_by(seen.original)}, sent {_by(seen.sent)}, processed {made}",
    ]
    if case.reading is None:
        return [*lines, f"  answer  never came: {_short(case.reply.error)}", ""]
    lines.append(f"  answer  {_short(case.reply.text) or '(no text)'}")
    answer, raw = case.reading.answer, case.reading.raw
    if isinstance(answer, NoBox):
        lines.append(f"  read as no box: {answer.kind}, {answer.reason}")
    else:
        numbers = ", ".join(f"{value:g}" for value in raw or ())
        lines.append(
            f"  read as [{numbers}] in {frame} → pixels {_list(answer)}, first of {case.reading.n_boxes}"
        )
    notes = f"  ({', '.join(case.reading.notes)})" if case.reading.notes else ""
    return [*lines, f"  gold    {_list(example.target)}  IoU {case.score:.2f}{notes}", ""]


def _by(size: Size) -> str:
    return f"{size[0]}×{size[1]}"


def _list(box: Box) -> str:
    return "[" + ", ".join(f"{value:.1f}" for value in box.as_list()) + "]"


def _short(text: str, most: int = 160) -> str:
    """One line without control characters, cut in the middle: the end of an answer matters most."""
    line = re.sub(r"[^\S ]+|[\x00-\x1f\x7f-\x9f]", " ", text).strip()
    return line if len(line) <= most else f"{line[: most // 3]} … {line[-most * 2 // 3 :]}"


def _draw(cases: Sequence[Case], folder: Path) -> tuple[Path, ...]:
    """One overlay per case and a contact sheet of all, which comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    files, pictures = [], []
    for number, case in enumerate(cases):
        picture = overlay(case)
        path = folder / f"{number:02d}_{re.sub(r'[^A-Za-z0-9._-]+', '_', case.example.id)[:60]}.png"
        picture.save(path)
        files.append(path)
        pictures.append(picture)
    sheet = folder / "contact_sheet.png"
    contact_sheet(pictures).save(sheet)
    return (*files, sheet)


def overlay(case: Case) -> Image.Image:
    """The image with gold and predicted box in original pixels, and a caption."""
    answer = case.reading.answer if case.reading else None
    boxes = [case.example.target, *([answer] if isinstance(answer, Box) else [])]
    labels = ["gold", "predicted"][: len(boxes)]
    image = draw_marks(case.example.image.load(), boxes, labels, colors=(GOLD, PREDICTED))
    said = f"IoU {case.score:.2f}" if isinstance(answer, Box) else "no box" if answer else "no answer"
    return captioned(image, f"{said} · {_short(case.example.expression, 90)} · {case.example.id}")


def run(config: Any) -> int:
    """The doctor command. Exit status 0 where nothing looks wrong, else 1."""
    from refadv_ablate.running.loaded_model import model_of, release
    from refadv_ablate.running.parts import parts_of
    from refadv_ablate.running.sweep import slugify

    parts = parts_of(config)
    own = config.command
    if not isinstance(own.n, int) or own.n < 0:
        raise UserError(f"n={own.n}: give a number of examples, 0 for the self-test alone")
    folder = Path(own.folder) if own.folder else parts.settings.out / "doctor" / slugify(parts.spec.name)
    try:
        model = model_of(parts)
        report = diagnose(parts.data, parts.spec, model, parts.style, folder, own.n, bool(own.self_test))
    finally:
        release()
    print(f"{parts.spec.name} · {parts.data.name} · {parts.style.name}\n")
    print(report.text())
    return 1 if report.problems else 0
