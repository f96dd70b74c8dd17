"""The JSON of what a perturbation changed besides the text: image, boxes, candidates, expectation.

Only what differs is written, so that the lines of operators that change the text alone are what they
always were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from refadv_ablate import edits
from refadv_ablate.boxes import SAME_FRAME, Box, BoxMap
from refadv_ablate.errors import FieldError, shown
from refadv_ablate.types import Candidate, Example, Expectation, ImageRef, Json, Perturbed

Images = Callable[[str], ImageRef]
"""Image key → an image of the data set; for questions about another image than the example's."""

_EXPECTATIONS = frozenset(get_args(Expectation))
_FACTS = ("category", "distractors", "negation")


def to_json(p: Perturbed) -> dict[str, Json]:
    """The changed parts of a perturbed example, by name."""
    example, moved = p.example, in_frame(p.original, p.frame)
    found: dict[str, Json] = {
        "expectation": p.expectation if p.expectation != "drop" else None,
        "part": p.part or None,
        "placebo": p.placebo or None,
        "frame": p.frame.as_list() if p.frame != SAME_FRAME else None,
        "picture": picture(p) or None,
        "target": example.target.as_list() if example.target != moved.target else None,
    }
    if example.candidates != moved.candidates:
        found["candidates"] = [[c.box.as_list(), c.category, dict(c.attributes)] for c in example.candidates]
    changed = {name: value for name, value in found.items() if value is not None}
    facts = {name: getattr(example, name) for name in _FACTS}
    return changed | {name: value for name, value in facts.items() if value != getattr(p.original, name)}


def in_frame(example: Example, frame: BoxMap) -> Example:
    """The example with all boxes where the map puts them; its image stays."""
    if frame == SAME_FRAME:
        return example
    candidates = tuple(replace(c, box=frame(c.box)) for c in example.candidates)
    return replace(example, target=frame(example.target), candidates=candidates)


def picture(p: Perturbed) -> dict[str, Json]:
    """How the image is made: the key of another one of the data under `of`, and the edits. May be empty."""
    image, own = p.example.image, p.original.image
    if image is own or image == own:
        return {}
    source = image.of if isinstance(image, edits.Edited) else image
    done = edits.to_json(image.edits) if isinstance(image, edits.Edited) else []
    if isinstance(own, edits.Edited) and source == own.of:
        raise ValueError("edits of an image that was edited already can't be told apart; edit the source")
    return {"edits": done} if source == own else {"of": source.key, "edits": done}


def image_of(own: ImageRef, made: Mapping[str, Json], images: Images | None) -> ImageRef:
    """The image that a `picture` describes, from the example's own. Raises FieldError."""
    try:
        source = own
        if "of" in made:
            if images is None:
                raise FieldError(f"'picture' is made of image {made['of']!r}, which is not at hand here")
            source = images(made["of"])
        return edits.edited(source, *edits.from_json(made.get("edits") or ()))
    except (ValueError, TypeError) as error:
        raise FieldError(f"'picture' can't be read: {error}") from error


def applied(
    d: Mapping[str, Json], original: Example, images: Images | None
) -> tuple[Example, dict[str, Any]]:
    """The example that a line asks about, without its text, and the line's fields of `Perturbed`.

    Raises FieldError naming the field.
    """
    frame = map_from_json(d["frame"], "frame") if d.get("frame") is not None else SAME_FRAME
    example = in_frame(original, frame)
    changed: dict[str, Any] = {name: d[name] for name in _FACTS if name in d}
    if d.get("picture"):
        changed["image"] = image_of(original.image, d["picture"], images)
    if d.get("target") is not None:
        changed["target"] = box_from_json(d["target"], "target")
    if "candidates" in d:
        changed["candidates"] = tuple(_candidate(row) for row in d["candidates"])
    told = {"expectation": expectation(d), "frame": frame}
    more = {"part": str(d.get("part") or ""), "placebo": bool(d.get("placebo", False))}
    return (replace(example, **changed) if changed else example), told | more


def expectation(d: Mapping[str, Json]) -> Expectation:
    """The line's, or `drop`. Raises FieldError."""
    value = d.get("expectation", "drop")
    if value not in _EXPECTATIONS:
        raise FieldError(f"'expectation' needs one of {', '.join(sorted(_EXPECTATIONS))}, not {shown(value)}")
    return cast("Expectation", value)


def _candidate(row: Json) -> Candidate:
    if not isinstance(row, Sequence) or len(row) != 3 or not isinstance(row[2], Mapping):
        raise FieldError(f"'candidates' needs rows of box, category, attributes, not {shown(row)}")
    return Candidate(box_from_json(row[0], "candidates"), row[1], dict(row[2]))


def box_from_json(value: Json, name: str) -> Box:
    """Raises FieldError for what is no [x1, y1, x2, y2]."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 4:
        raise FieldError(f"{name!r} needs [x1, y1, x2, y2], not {shown(value)}")
    try:
        return Box(*value)
    except (TypeError, ValueError) as error:
        raise FieldError(f"{name!r} is no box: {error}") from error


def map_from_json(value: Json, name: str) -> BoxMap:
    """Raises FieldError for what is no [across, down, dx, dy]."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 4:
        raise FieldError(f"{name!r} needs [across, down, dx, dy], not {shown(value)}")
    try:
        return BoxMap(*value)
    except (TypeError, ValueError) as error:
        raise FieldError(f"{name!r} is no map of boxes: {error}") from error
