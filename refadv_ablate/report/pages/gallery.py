"""A page of examples: images with boxes, both expressions, answers, filters; no network, all escaped.

The page builds what it shows from JSON with textContent alone, a page of cards at a time, so that no
text of a data set or a model is ever read as HTML.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refadv_ablate.boxes import Box, Size
from refadv_ablate.changes import Images
from refadv_ablate.changes import image_of as picture_of
from refadv_ablate.data.sample import whole
from refadv_ablate.errors import FieldError, UserError, printable
from refadv_ablate.parsing.scoring import on_old_place as on_old_place_of
from refadv_ablate.parsing.scoring import right
from refadv_ablate.report.pages.thumbnails import Thumbnails
from refadv_ablate.report.pages.words import changes, descriptors
from refadv_ablate.statistics.formatting import points, with_interval
from refadv_ablate.statistics.profile import NAMES, SIGNED, Finding, findings, on_old_place
from refadv_ablate.storage.jsonl import atomic, read_json, to_line
from refadv_ablate.storage.records import load, read_records, record_from_json, record_to_json
from refadv_ablate.storage.remembered import Remembered
from refadv_ablate.types import ORIGINAL, Comparison, Data, ImageRef, Json, Record

Pair = tuple[Record, Record]
Flip = Literal["rw", "wr", "rr", "ww", "na"]
FLIPS: Mapping[Flip, str] = {
    "rw": "right → wrong",
    "wr": "wrong → right",
    "ww": "wrong in both",
    "rr": "right in both",
    "na": "can't be compared",
}
LANDED: Mapping[str, str] = {
    "same category": "chose a distractor of its category",
    "another object": "chose an object of another category",
    "whole image": "took the whole image",
    "loosely": "near the referent, below IoU 0.5",
    "elsewhere": "on no object that is known",
}
"""What is said of a wrong box where the image's other objects are known; see parsing/landing.py."""
LONGEST = 4000
"""Characters of an answer or a reasoning trace that the page holds."""


WINDOW = 4_096
"""Originals that are held while their perturbed answers are looked for."""


def pairs_of(
    records: Iterable[Record], again: Callable[[], Iterable[Record]] | None = None
) -> Iterator[Pair]:
    """(original, perturbed) for every draw of every example, in the order of the perturbed records.

    again: reads the records once more. Then only the last originals are held, since a run writes those of one
    example together; where a perturbed answer is further off, all originals are kept on disk.
    """
    originals: dict[str, Record] = {}
    waiting: dict[str, list[Record]] = {}
    kept: Remembered | None = None
    dropped = False
    for record in records:
        name = record.example_id
        if record.condition == ORIGINAL:
            originals[name] = record
            yield from ((record, late) for late in waiting.pop(name, ()))
            if again is not None and len(originals) > WINDOW:
                del originals[next(iter(originals))]
                dropped = True
        elif name in originals:
            yield originals[name], record
        elif again is not None and (dropped or len(waiting) > WINDOW):
            kept = kept or _originals(again())
            if (line := kept.get(name)) is not None:
                yield record_from_json(json.loads(line)), record
        else:
            waiting.setdefault(name, []).append(record)


def _originals(records: Iterable[Record]) -> Remembered:
    kept = Remembered()
    for record in records:
        if record.condition == ORIGINAL:
            kept.setdefault(record.example_id, to_line(record_to_json(record)))
    return kept


def flip(original: Record, perturbed: Record) -> Flip:
    """What the perturbation did to this example: an answer is right by what it is expected to be."""
    before, after = right(original), right(perturbed)
    if before is None or after is None:
        return "na"
    if before and after:
        return "rr"
    if not before and not after:
        return "ww"
    return "rw" if before else "wr"


def choose(kinds: Iterable[Flip], n: int | None) -> list[int]:
    """Places of at most n pairs, in order: flips first, since they are what one argues about, then the

    rest evenly spaced.
    """
    flipped = np.fromiter((kind in ("rw", "wr") for kind in kinds), bool)
    if n is None or len(flipped) <= n:
        return list(range(len(flipped)))
    kept = _spaced(np.flatnonzero(flipped), n)
    return sorted(kept + _spaced(np.flatnonzero(~flipped), n - len(kept)))


def _spaced(items: NDArray[np.intp], n: int) -> list[int]:
    if len(items) <= n:
        return [int(place) for place in items]
    return [int(items[i * len(items) // n]) for i in range(n)]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pairs that a page shows, and of which kinds all were."""

    pairs: Sequence[Pair]
    counts: Mapping[Flip, int]

    @classmethod
    def of(cls, pairs: Iterable[Pair], most: int | None) -> Chosen:
        """At most so many (see `choose`). Pairs that can be iterated twice aren't all held."""
        again = list(pairs) if isinstance(pairs, Iterator) else pairs
        known = list(FLIPS)
        kinds = bytearray(known.index(flip(*pair)) for pair in again)
        places = set(choose((known[code] for code in kinds), most))
        shown = [pair for place, pair in enumerate(again) if place in places]
        return cls(shown, {kind: kinds.count(code) for code, kind in enumerate(known)})


def write(
    path: Path,
    pairs: Iterable[Pair] | Chosen,
    image_of: Callable[[str], ImageRef | None],
    *,
    title: str,
    subtitle: str = "",
    back: str = "",
    arms: tuple[str, str] = ("original", "perturbed"),
    most: int | None = None,
    images: Literal["inline", "folder"] = "inline",
    others: Images | None = None,
) -> Path:
    """Writes the page and, for images="folder", `<name>_images/` beside it.

    `back` is the relative address of the report that the page belongs to.
    `most` limits the examples (see `choose`); the page says how many there were. An image that can't
    be had leaves an empty frame with the boxes. A picture that was changed is made from its edits and stands
    beside the original; `others` has the images of the data by key, for questions about another.
    """
    chosen = pairs if isinstance(pairs, Chosen) else Chosen.of(pairs, most)
    folder = path.with_name(f"{path.stem}_images") if images == "folder" else None
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    thumbnails = Thumbnails(folder)
    cards = [
        _card(original, perturbed, *_pictures(perturbed, image_of(original.example_id), others, thumbnails))
        for original, perturbed in chosen.pairs
    ]
    about = {
        "arms": arms,
        "total": sum(chosen.counts.values()),
        "kinds": {kind: [name, chosen.counts[kind]] for kind, name in FLIPS.items()},
        "conditions": sorted({card["cond"] for card in cards}),
    }
    with atomic(path) as file:
        for part in _page(title, (subtitle, back), about, cards, thumbnails.sources):
            file.write(part.encode("utf-8", "backslashreplace"))
    return path


@dataclass(frozen=True, slots=True)
class Records:
    """Pairs of records that can be read again, each time they are iterated."""

    read: Callable[[], Iterable[Record]]

    def __iter__(self) -> Iterator[Pair]:
        return pairs_of(self.read(), self.read)


def from_cell(
    folder: Path, data: Data, *, most: int | None = 200, images: Literal["inline", "folder"] = "inline"
) -> Path:
    """gallery.html of a cell's folder, from its predictions.jsonl and the data they were made on."""
    chosen = Chosen.of(Records(lambda: read_records(folder / "predictions.jsonl")), most)
    wanted = {original.example_id for original, _ in chosen.pairs}
    keys = {str(r.picture["of"]) for _, r in chosen.pairs if "of" in r.picture}
    refs: dict[str, ImageRef] = {}
    others: dict[str, ImageRef] = {}
    for example in whole(data):
        if example.id in wanted:
            refs[example.id] = example.image
        if example.image.key in keys:
            others.setdefault(example.image.key, example.image)
    title = " · ".join(_names(folder)) or folder.name
    page, about = folder / "gallery.html", _delta(folder)
    return write(
        page,
        chosen,
        refs.get,
        title=title,
        subtitle=about,
        images=images,
        others=others.__getitem__,
    )


def _delta(folder: Path) -> str:
    """What the cell found, where it has a result already."""
    path = folder / "summary.json"
    try:
        return told(load(path)) if path.is_file() else ""
    except UserError:  # a page of answers needs no summary
        return ""


def told(comparison: Comparison) -> str:
    """Accuracies and Δ in a line; where accuracy has nothing to fall from, the scores that stand for it."""
    if on_old_place(comparison):
        return " ".join(map(_headline, findings([comparison])))
    delta = comparison.deltas.get("acc50")
    if delta is None or delta.delta.value is None:
        return ""
    before, after = (points(each.value or 0.0) for each in (delta.original, delta.perturbed))
    change = with_interval(delta.delta, signed=True)
    return (
        f"Acc@0.5 {before} → {after}, Δ {change}, {comparison.paired:,} pairs on {comparison.images:,} images"
    )


def _headline(f: Finding) -> str:
    score = with_interval(f.headline.estimate, signed=f.headline.name in SIGNED)
    return f"{NAMES[f.headline.name]} {score}. {f.sentence}"


def _names(folder: Path) -> list[str]:
    path = folder / "summary.json"
    summary = read_json(path) if path.is_file() else {}
    return [summary[key] for key in ("operator", "model", "data", "prompt") if summary.get(key)]


# ── one card ────────────────────────────────────────────────────────────────────────────────────


def _pictures(
    perturbed: Record, own: ImageRef | None, others: Images | None, thumbnails: Thumbnails
) -> tuple[int | None, tuple[int | None, Size] | None]:
    """Index of the original picture; index and size of the one that was asked about if it is another."""
    shown = thumbnails.add(own)
    if not perturbed.picture or own is None:
        return shown, None
    try:
        made = picture_of(own, perturbed.picture, others)
        return shown, (thumbnails.add(made), made.size())
    except (FieldError, UserError, KeyError):  # a gallery without one picture is better than none
        return shown, None


def _card(
    original: Record, perturbed: Record, image: int | None, made: tuple[int | None, Size] | None = None
) -> dict[str, Json]:
    """What the page's script shows of a pair; keys are short because there are thousands."""
    before, after = changes(original.expression, perturbed.expression)
    card: dict[str, Json] = {
        "id": original.example_id,
        "img": image,
        "size": _size(original, perturbed),
        "flip": flip(original, perturbed),
        "cond": " ".join(filter(None, (perturbed.condition, perturbed.part))),
        "draw": perturbed.draw,
        "status": perturbed.status,
        "words": [descriptors(original.expression, perturbed.trace) or before, after],
        "target": _corners(original.target),
        "o": _answer(original),
        "p": _answer(perturbed),
        "n": original.distractors,
        "neg": original.negation,
        "cat": original.category,
    }
    if made is not None and made[0] is not None:
        box = _corners(perturbed.predicted) if perturbed.predicted else None
        target = None if on_old_place_of(perturbed) else _corners(perturbed.target)
        card["made"] = {"img": made[0], "size": list(made[1]), "target": target, "box": box}
    return {key: _spelled(value) for key, value in card.items()}


def _spelled(value: Json) -> Json:
    """The same with control characters written out in every text."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    return value


def _answer(record: Record) -> dict[str, Json]:
    elsewhere = on_old_place_of(record)
    return {
        "ok": right(record),
        "old": elsewhere,
        # on the original picture, whatever the picture that was asked about: boxes go back to its frame
        "box": _corners(record.frame.inverse()(record.predicted)) if record.predicted else None,
        # nothing that is asked for is known to be there: an IoU would be that with another object
        "iou": None if record.iou is None or elsewhere else round(record.iou, 4),
        "out": record.outcome,
        "why": record.reason[:300],
        "text": _cut(record.text),
        "think": _cut(record.reasoning),
        "notes": list(record.notes),
        "land": "" if elsewhere else LANDED.get(record.landed, ""),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"


def _corners(box: Box) -> list[float]:
    return [round(v, 1) for v in box.as_list()]


def _size(original: Record, perturbed: Record) -> list[float]:
    """Of the image; where no record knows it, what holds all boxes."""
    for record in (original, perturbed):
        if all(record.size):
            return [float(v) for v in record.size]
    boxes = [b for b in (original.target, original.predicted, perturbed.predicted) if b]
    return [max(b.x2 for b in boxes), max(b.y2 for b in boxes)]


# ── the page ────────────────────────────────────────────────────────────────────────────────────


def _page(
    title: str,
    head_lines: tuple[str, str],
    about: Mapping[str, Json],
    cards: Sequence[Json],
    sources: Sequence[str],
) -> Iterator[str]:
    script = static("gallery.js")
    policy = (
        "default-src 'none'; img-src data: file: 'self'; style-src 'unsafe-inline'; "
        f"script-src '{script_hash(script)}'"
    )
    head, rest = static("gallery.html").split("@@DATA@@")
    subtitle, back = head_lines
    below = f'<p class="soft">{html.escape(subtitle)}</p>' if subtitle else ""
    if back:
        below += f'<p><a href="{html.escape(back, quote=True)}">Back to the report</a></p>'
    for name, markup in (
        ("SUBTITLE", below),
        ("POLICY", html.escape(policy)),
        ("STYLE", static("page.css") + static("gallery.css")),
        ("TITLE", html.escape(printable(title))),  # last: a title may contain the other marks
    ):
        head = head.replace(f"@@{name}@@", markup)
    yield head
    yield _data("about", about)
    for index, chunk in enumerate(_chunks(cards, 200)):
        yield _data(f"cards-{index}", chunk)
    for index, source in enumerate(sources):
        # one inert block an image: read when its card is shown, never parsed before
        yield f'<script type="text/plain" id="img-{index}">{html.escape(source)}</script>\n'
    yield rest.replace("@@SCRIPT@@", script)


def _chunks(items: Sequence[Json], size: int) -> Iterator[Sequence[Json]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def _data(name: str, value: Json) -> str:
    return f'<script type="application/json" id="{name}">{embedded(value)}</script>\n'


def embedded(value: Json) -> str:
    """JSON that no HTML parser can leave early: <, > and & are escapes, and so are JavaScript's breaks."""
    text = to_line(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def static(name: str) -> str:
    """A file of report/pages/static."""
    return (files("refadv_ablate.report.pages") / "static" / name).read_text(encoding="utf-8")


def script_hash(script: str) -> str:
    """For a Content-Security-Policy that runs this script and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
