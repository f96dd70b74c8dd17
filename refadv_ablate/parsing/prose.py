"""Boxes without brackets around all four numbers: named corners, XML, bare numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from refadv_ablate.boxes import Quad
from refadv_ablate.parsing.brackets import NUMBER
from refadv_ablate.parsing.keys import SIDE, to_corners
from refadv_ablate.parsing.verdict import Piece

_N = rf"(?<![\w.+-])({NUMBER})(?![\w%²³°/]|\.\d|\s?%|[-–—:]\d)"
_COMMA = r"\s{0,4},\s{0,4}"
_NAMED = re.compile(
    rf"(?<!\w)(?P<side>{SIDE}|left|top|right|bottom)[\"'*]{{0,3}}(?:\s{{1,2}}(?:is|of))?\s{{0,4}}(?:[:=>]"
    rf"|\bis\b)[\s\"'*]{{0,4}}(?P<n>{_N})",
    re.IGNORECASE,
)
_AT = {"x1": 0, "xmin": 0, "x0": 0, "left": 0, "y1": 1, "ymin": 1, "y0": 1, "top": 1,
       "x2": 2, "xmax": 2, "right": 2, "y2": 3, "ymax": 3, "bottom": 3}  # fmt: skip
_POINT = (
    rf"(?:[\[(]\s{{0,4}}{_N}{_COMMA}{_N}\s{{0,4}}[\])]"
    rf"|x\s?[=:]\s?{_N},?\s{{1,2}}(?:and\s)?y\s?[=:]\s?{_N})"
)
_CORNER = re.compile(
    rf"(?P<name>(?:top|upper)[- ]?left|左上角?|좌상단|oben links|linke obere|(?:en haut à"
    rf"|supérieur) gauche|superior izquierda|левый верхний"
    rf"|(?:bottom|lower)[- ]?right|右下角?|우하단|unten rechts|rechte untere|(?:en bas à"
    rf"|inférieur) droite?|inferior derecha|правый нижний)"
    rf"[^\d\[\](){{}}\n]{{0,30}}{_POINT}",
    re.IGNORECASE,
)
_LEFT = re.compile(r"left|左上|좌상|links$|linke|gauche|izquierda|левый", re.IGNORECASE)
_PAIRS = re.compile(
    rf"\(\s{{0,4}}{_N}{_COMMA}{_N}\s{{0,4}}\)\s{{0,4}},?\s{{0,4}}\(\s{{0,4}}{_N}{_COMMA}{_N}\s{{0,4}}\)"
)
_BARE = re.compile(rf"[\s`*$\"'.]*{_N}[\s,;]+{_N}[\s,;]+{_N}[\s,;]+{_N}[\s`*$\"'.]*")
_SAID = re.compile(
    rf"\b(?:b?box(?:es)?|bbox_2d|bounding box|coordinates|answer|location)\b(?:\s(?:is"
    rf"|are|at))?\s?[:=]?\s{{0,3}}{_N}{_COMMA}{_N}{_COMMA}{_N}{_COMMA}{_N}(?=[\s.]{{0,3}}(?:$"
    rf"|\n|[A-Z]))",
    re.IGNORECASE,
)
_LINE = rf"[ \t]*- {_N}[ \t]*(?:\n|$)"
_BLOCK = re.compile(
    rf"(?:bbox_2d|bbox|box_2d|box|bounding_box|coordinates)[\"']?\s{{0,2}}:[ \t]*\n{_LINE * 4}(?![ \t]*- )",
    re.IGNORECASE,
)
_SIZED = re.compile(
    rf"(?<!\w)x[\"']?\s?[:=]\s?[\"']?{_N}[\"',\s]{{1,4}}y[\"']?\s?[:=]\s?[\"']?{_N}[\"',\s]{{1,4}}w(?:idth)?[\"']?\s?[:=]\s?[\"']?{_N}"
    rf"[\"',\s]{{1,4}}h(?:eight)?[\"']?\s?[:=]\s?[\"']?{_N}",
    re.IGNORECASE,
)
_BAR = r"[ \t]{0,9}\|[ \t]{0,9}"
_TABLE = re.compile(
    rf"\|[ \t]{{0,9}}x_?(?:1|min){_BAR}y_?(?:1|min){_BAR}x_?(?:2|max){_BAR}y_?(?:2|max){_BAR}\n["
    rf"|:\- \t]{{4,80}}\n\|[ \t]{{0,9}}{_N}{_BAR}{_N}{_BAR}{_N}{_BAR}{_N}[ \t]{{0,9}}\|",
    re.IGNORECASE,
)
_ANGLE = re.compile(rf"<\s{{0,4}}{_N}{_COMMA}{_N}{_COMMA}{_N}{_COMMA}{_N}\s{{0,4}}>")
_BOXED = re.compile(rf"\\boxed\{{{_BARE.pattern}\}}")

Order = Literal["xyxy", "yxyx"]


def _pieces(found: Iterable[tuple[int, int, Quad]], order: Order = "xyxy") -> list[Piece[Quad]]:
    """The boxes whose numbers are finite, corners in the order of the family."""
    return [
        Piece(start, end, (to_corners(quad, "xyxy", order),))
        for start, end, quad in found
        if all(map(math.isfinite, quad))
    ]


def _quad(match: re.Match[str], first: int = 1) -> Quad:
    a, b, c, d = (float(match[i]) for i in range(first, first + 4))
    return a, b, c, d


def named_corners(text: str, order: Order) -> list[Piece[Quad]]:
    """`x1=1, y1=2, x2=3, y2=4`, `<xmin>1</xmin>…`, "top left (1, 2), bottom right (3, 4)"."""
    found = [*_by_side(text), *((m.start(), m.end(), _quad(m)) for m in _TABLE.finditer(text))]
    for match in _SIZED.finditer(text):
        x, y, width, height = _quad(match)
        found.append((match.start(), match.end(), (x, y, x + width, y + height)))
    return _pieces(sorted(found or _two_corners(text)), order)


def _by_side(text: str) -> Iterator[tuple[int, int, Quad]]:
    held: dict[int, tuple[int, float]] = {}
    for match in _NAMED.finditer(text):
        side = _AT[re.sub(r"[_ ]", "", match["side"].lower())]
        if side in held:
            held = {}
        held[side] = (match.start(), float(match["n"]))
        if len(held) == 4:
            (_, x1), (_, y1), (_, x2), (_, y2) = (held[i] for i in range(4))
            yield min(start for start, _ in held.values()), match.end(), (x1, y1, x2, y2)
            held = {}


def _two_corners(text: str) -> Iterator[tuple[int, int, Quad]]:
    first: re.Match[str] | None = None
    for match in _CORNER.finditer(text):
        if _LEFT.search(match["name"]):
            first = match
        elif first is not None:
            x1, y1 = (float(n) for n in first.groups()[1:] if n is not None)
            x2, y2 = (float(n) for n in match.groups()[1:] if n is not None)
            yield first.start(), match.end(), (x1, y1, x2, y2)
            first = None


def corner_pairs(text: str) -> list[Piece[Quad]]:
    """`(x1,y1),(x2,y2)`, Qwen's form, also where a server has taken its tokens away; no polygons."""
    found = []
    for match in _PAIRS.finditer(text):
        follows = re.match(r"\s{0,4},?\s{0,4}\(\s{0,4}[-\d.]", text[match.end() : match.end() + 12])
        if follows or re.search(r"\)\s{0,4},?\s{0,4}$", text[max(0, match.start() - 10) : match.start()]):
            continue
        found.append((match.start(), match.end(), _quad(match)))
    return _pieces(found)


def angle_lists(text: str) -> list[Piece[Quad]]:
    """`<x1, y1, x2, y2>`."""
    return _pieces((m.start(), m.end(), _quad(m)) for m in _ANGLE.finditer(text))


def bare_numbers(text: str) -> list[Piece[Quad]]:
    """An answer that is nothing but four numbers, or says "the box is" before them; a YAML list."""
    whole = _BARE.fullmatch(text) if len(text) < 400 else None
    if whole and len({sign.isspace() for sign in re.findall(r"(?<=\d)[,;](\s|(?=\d))", text) or " "}) > 1:
        return []  # 1,234, 5,678
    matches = [whole] if whole else [*_SAID.finditer(text), *_BLOCK.finditer(text), *_BOXED.finditer(text)]
    return _pieces((m.start(), m.end(), _quad(m)) for m in sorted(matches, key=lambda m: m.start()))
