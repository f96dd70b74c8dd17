"""Other things that people say: short and vague expressions, other words, things that are not there.

They are trained on beside the minimal expressions of data=shapes, so that a text of any kind is answered
with one box: where several objects fit, that of any one of them; where none does, that of any object.
Nothing here is made by an operator: no shuffled words, no misspelling, no capitals throughout; and the
word "one" is in none of it, so that the fixed prompt "the one" stays unseen.
"""

from __future__ import annotations

import random
import re
from typing import Any

from refadv_ablate.data.shapes.scene import COLOURS, FILLS, SHAPES, SIZES

KIND = 4
"""Number of this kind of expression, after those of data=shapes."""
VAGUE, REWORDED, PLACED, ELSEWHERE = 5, 3, 1, 1
"""Expressions of each sort on one training scene."""
ANYTHING = ("object", "shape", "thing", "figure", "item", "symbol", "piece", "mark", "element")
OTHER_WORDS = {
    "circle": ("disc", "dot", "ball", "round shape"), "square": ("box", "block", "tile"),
    "triangle": ("pyramid", "wedge", "triangular shape"), "star": ("star shape", "starry figure"),
    "cross": ("plus", "plus sign", "cross shape"), "small": ("little", "tiny", "smaller"),
    "large": ("big", "huge", "bigger"), "solid": ("filled", "full"), "red": ("scarlet", "crimson"),
    "hollow": ("empty", "outlined", "unfilled"), "purple": ("violet",), "yellow": ("golden",),
    "above": ("over",), "below": ("under", "beneath"),
}  # fmt: skip
SIDES = {
    "left": (0, 1), "right": (0, -1), "top": (1, 1), "bottom": (1, -1),
}  # fmt: skip
"""Axis, and the sign with which the first along it is the smallest."""
PLACES = ("the {} on the {}", "the {} at the {}", "{} on the far {}", "the {} nearest the {} edge", "{} {}")
NOUNS = (
    "man", "woman", "boy", "girl", "kid", "guy", "lady", "player", "person", "dog", "cat", "zebra", "giraffe",
    "horse", "cow", "sheep", "elephant", "bear", "bird", "car", "bus", "truck", "train", "bike", "motorcycle",
    "boat", "plane", "chair", "couch", "bed", "table", "laptop", "keyboard", "phone", "book", "clock", "vase",
    "cup", "glass", "bottle", "bowl", "plate", "knife", "pizza", "sandwich", "donut", "cake", "apple",
    "banana", "carrot", "umbrella", "bag", "suitcase", "tie", "hat", "shirt", "jacket", "window", "tree",
)  # fmt: skip
ADJECTIVES = ("", "", "", "black", "white", "brown", "old", "young", "tall", "pink", "striped", "wooden")
TAILS = (
    "", "", "", "", "in front", "in the back", "with glasses", "holding a bat", "wearing jeans", "looking up",
    "on the table", "by the door", "facing us",
)  # fmt: skip
ARTICLES = ("the ", "the ", "a ", "", "", "any ", "some ")
COLUMNS = (("size", 2, SIZES), ("fill", 3, FILLS), ("colour", 1, COLOURS))
"""Attributes in the order in which they stand before a noun; where `describe` has each."""


def ordinary(rng: random.Random, items: list[list[float]], said: list[list[Any]]) -> list[list[Any]]:
    """[text, target, landmark or −1, KIND] for each; items and said as in the files of scenes."""
    rows = [vague(rng, items) for _ in range(VAGUE)]
    rows += [[reworded(rng, text), target, mark] for text, target, mark, _ in rng.choices(said, k=REWORDED)]
    rows += [placed(rng, items) for _ in range(PLACED)]
    rows += [[elsewhere(rng), rng.randrange(len(items)), -1] for _ in range(ELSEWHERE)]
    return [[written(rng, text), target, mark, KIND] for text, target, mark in rows]


def vague(rng: random.Random, items: list[list[float]]) -> list[Any]:
    """A noun, often with attributes, which usually fits several objects; any of those is meant."""
    item = rng.choice(items)
    chosen = rng.sample(COLUMNS, rng.choice((0, 0, 1, 1, 2)))
    known = [SHAPES[int(item[0])]] if rng.random() < 0.6 else []
    fits = [
        k
        for k, other in enumerate(items)
        if all(other[c] == item[c] for _, c, _ in chosen) and (not known or other[0] == item[0])
    ]
    words = [names[int(item[c])] for _, c, names in COLUMNS if any(c == column for _, column, _ in chosen)]
    text = rng.choice(ARTICLES) + " ".join([*words, *(known or [rng.choice(ANYTHING)])])
    if len(words) == 1 and not known and rng.random() < 0.3:
        text = f"something {words[0]}"
    return [reworded(rng, text) if rng.random() < 0.3 else text, rng.choice(fits), -1]


def placed(rng: random.Random, items: list[list[float]]) -> list[Any]:
    """An object of any category by the side on which it is the outermost."""
    side = rng.choice(list(SIDES))
    axis, sign = SIDES[side]
    target = min(range(len(items)), key=lambda k: sign * (items[k][4 + axis] + items[k][6 + axis]))
    template, noun = rng.choice(PLACES), rng.choice(ANYTHING)
    return [template.format(*((side, noun) if template == "{} {}" else (noun, side))), target, -1]


def reworded(rng: random.Random, text: str) -> str:
    """Some of its words by others that mean the same."""
    return re.sub(
        r"[a-z]+",
        lambda m: rng.choice(OTHER_WORDS[m[0]]) if m[0] in OTHER_WORDS and rng.random() < 0.6 else m[0],
        text,
    )


def elsewhere(rng: random.Random) -> str:
    """A thing that no drawn scene has, as it might be asked for on a photograph."""
    words = (rng.choice(ADJECTIVES), rng.choice(NOUNS), rng.choice(TAILS))
    return rng.choice(ARTICLES) + " ".join(word for word in words if word)


def written(rng: random.Random, text: str) -> str:
    """As a sentence now and then: with a capital, with a full stop."""
    text = text[0].upper() + text[1:] if rng.random() < 0.15 else text
    return f"{text}." if rng.random() < 0.1 else text
