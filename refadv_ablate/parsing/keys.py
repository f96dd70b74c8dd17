"""What the keys of a JSON answer say: a box, corners by name, width and height; or a point, a crop."""

from __future__ import annotations

import re
from collections.abc import Sequence

from refadv_ablate.boxes import Quad
from refadv_ablate.parsing.brackets import NUMBER, Group, Value, Word

TARGET_KEYS = ("target", "referent", "final_bbox", "final_box", "final_answer", "answer")
BOX_KEYS = (
    "bbox_2d", "bbox", "box_2d", "box", "bboxes", "boxes", "bounding_box", "bounding_boxes",
    "bbox_xyxy", "bboxes_2d", "boxes_2d", "coordinates", "coord", "coords", "location", "position",
    "predictions", "results", "objects", "final_bbox", "final_box", "target", "referent", "answer",
    "final_answer",
)  # fmt: skip
"""Keys under which models write boxes: published prompts and the parsers of public evaluators."""

_NO_BOX = re.compile(
    r"points?\b|points?_|point2d|key_?points?|segment|polygon|poly(?:_|$)|(?:^|_)(?:poly)?lines?(?:$"
    r"|_)|mask|contour|(?:^|_)quad|rotat"
    r"|(?:^|_)obb|skeleton|vertices|vertex|score|conf|logit|cent(?:er|re|roid)s?$|trajectory"
    r"|path$|circle|ellipse|color|colour"
    r"|^(?:image|img|picture|full|whole)_?(?:bbox|box|size|bounds|extent|image|shape"
    r"|dims?|dimensions)|resolution|^size$|thinking|reasoning"
)
_OTHERS = re.compile(
    r"reference|landmark|anchor|distractor|others?(?:_|$)|reject|wrong|candidates?|context"
    r"|negative|not_|excluded|alternatives?"
)
_SIDES = (
    {"x1", "xmin", "x_min", "left", "x0", "x_1", "minx", "min_x", "x_left", "left_x", "x_start"},
    {"y1", "ymin", "y_min", "top", "y0", "y_1", "miny", "min_y", "y_top", "top_y", "y_start"},
    {"x2", "xmax", "x_max", "right", "x_2", "maxx", "max_x", "x_right", "right_x", "x_end"},
    {"y2", "ymax", "y_max", "bottom", "y_2", "maxy", "max_y", "y_bottom", "bottom_y", "y_end"},
)
_FIRST = re.compile(r"(?:top|upper)_?left(?:_\w+)?|tl|lt|left_?(?:top|upper)|top_?left_?corner")
_SECOND = re.compile(r"(?:bottom|lower)_?right(?:_\w+)?|br|rb|right_?(?:bottom|lower)")
SIDE = r"[xy][_ ]?(?:min|max|[012])"
_NUMBER = re.compile(rf"\s*({NUMBER})\s*")


def name(key: str) -> str:
    """A key without its case, quotes, blanks and hyphens."""
    return re.sub(r"[\s-]+", "_", key.strip(" \"'`*").lower())


def entries(group: Group) -> dict[str, Value]:
    """The named values of an object; the last of duplicate keys counts, as in every JSON reader."""
    found: dict[str, Value] = {}
    for key, value in group.items:
        if key is not None:
            found.pop(name(key), None)
            found[name(key)] = value
    return found


def is_tool_call(named: dict[str, Value]) -> bool:
    """`{"name": …, "arguments": {…}}`: a request to a tool, whose box is a crop."""
    return ("name" in named or "function" in named or "tool" in named) and bool(
        {"arguments", "parameters", "tool_input", "input"} & set(named)
    )


def where_boxes_are(named: dict[str, Value]) -> list[tuple[str, Value]]:
    """(key, value) of an object that may hold its boxes, the most telling keys alone."""
    for keys in (TARGET_KEYS, BOX_KEYS):
        known = [(key, named[key]) for key in keys if key in named and _holds(named[key])]
        if known:
            return known
    lists: list[tuple[str, Value]] = [
        (k, v) for k, v in named.items() if isinstance(v, Group) and not _NO_BOX.search(k)
    ]
    boxes = [(k, v) for k, v in named.items() if re.search(r"b?box", k) and not _NO_BOX.search(k)]
    own = [item for item in boxes if not _OTHERS.search(item[0])]
    own = own or [item for item in lists if not _OTHERS.search(item[0])]
    return own or lists


def _holds(value: Value) -> bool:
    if isinstance(value, Group):
        return bool(value.items)
    return isinstance(value, str) and not isinstance(value, Word)


def says_none(group: Group) -> bool:
    """Whether an object's box is null or an empty list."""
    named = entries(group)
    values = [named[key] for key in BOX_KEYS if key in named]
    return bool(values) and all(
        (isinstance(v, Group) and v.closed and not v.items)
        or (isinstance(v, str) and v.strip().lower() in ("null", "none", "n/a", ""))
        for v in values
    )


def number(value: Value) -> float | None:
    """A finite number, also where it is written as text ("12"); never a truth value."""
    if isinstance(value, float):
        return value
    if isinstance(value, str) and not isinstance(value, Word):
        found = _NUMBER.fullmatch(value)
        return float(found[1]) if found and abs(float(found[1])) < float("inf") else None
    return None


def numbers(values: Sequence[Value]) -> Quad | None:
    """Four numbers, or None where there are others or something else."""
    if len(values) != 4:
        return None
    a, b, c, d = map(number, values)
    return None if a is None or b is None or c is None or d is None else (a, b, c, d)


def corners(named: dict[str, Value]) -> Quad | None:
    """x1, y1, x2, y2 of an object that names its corners, its sides or its width and height."""
    sides = [next((number(named[k]) for k in named if k in side), None) for side in _SIDES]
    first = next((_pair(v) for k, v in named.items() if _FIRST.fullmatch(k)), None)
    second = next((_pair(v) for k, v in named.items() if _SECOND.fullmatch(k)), None)
    if first and second:
        return (*first, *second)
    x1, y1, x2, y2 = sides
    if x1 is not None and y1 is not None and x2 is not None and y2 is not None:
        return x1, y1, x2, y2
    width, height = (_of(named, key, key[0]) for key in ("width", "height"))
    if width is None or height is None:
        return None
    middle = _pair(named.get("center", named.get("centre", 0.0)))
    cx, cy = middle or (_of(named, "cx", "x_center"), _of(named, "cy", "y_center"))
    if cx is not None and cy is not None:
        return cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2
    x = x1 if x1 is not None else _of(named, "x")
    y = y1 if y1 is not None else _of(named, "y")
    return None if x is None or y is None else (x, y, x + width, y + height)


def _of(named: dict[str, Value], *keys: str) -> float | None:
    return next((number(named[key]) for key in keys if key in named), None)


def _pair(value: Value) -> tuple[float, float] | None:
    if not isinstance(value, Group):
        return None
    named = entries(value)
    values = [named[k] for k in ("x", "y") if k in named] if named else value.values()
    if len(values) != 2:
        return None
    a, b = map(number, values)
    return None if a is None or b is None else (a, b)


def stated_form(key: str, named: dict[str, Value]) -> str:
    """xywh, cxcywh, xyxy or yxyx where the key or a "format" beside it says so, else ""."""
    said = f"{key} " + " ".join(
        str(named[k])
        for k in ("format", "bbox_format", "box_format", "bbox_mode", "mode")
        if isinstance(named.get(k), str)
    )
    found = re.search(r"cxcywh|xywh|ltwh|xyxy|yxyx", said.lower())
    return found[0].replace("ltwh", "xywh") if found else ""


def to_corners(quad: Quad, form: str, order: str) -> Quad:
    """A box in a stated form, as corners in the order of the family."""
    a, b, c, d = quad
    if form == "yxyx":
        a, b, c, d = b, a, d, c
    elif form == "xywh":
        c, d = a + c, b + d
    elif form == "cxcywh":
        a, b, c, d = a - c / 2, b - d / 2, a + c / 2, b + d / 2
    elif form == "":
        return quad
    return (a, b, c, d) if order == "xyxy" else (b, a, d, c)


def thousands(group: Group) -> bool:
    """Whether commas with and without a blank are mixed so that 1,234 may be one number."""
    values = group.values()
    if all(group.loose) or not any(group.loose):
        return False
    for index, loose in enumerate(group.loose[: len(values) - 1]):
        left, right = values[index], values[index + 1]
        if not loose and isinstance(left, float) and isinstance(right, float):
            alternating = group.loose == [False, True, False]
            if 100 <= right < 1000 and right == int(right) and (left < 10 or alternating):
                return True
    return False
