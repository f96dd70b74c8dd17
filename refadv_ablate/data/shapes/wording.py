"""Meanings in words: several natural ways of saying each, and the descriptors as they are said."""

from __future__ import annotations

import random

from refadv_ablate.data.shapes.language import EDGE, MOST, NTH, Meaning, Rank, Relation, Without

SIDES = {
    "left": ("left of", "to the left of"),
    "right": ("right of", "to the right of"),
    "above": ("above", "higher than"),
    "below": ("below", "lower than"),
}
NEGATIONS = ("that is not {}", "that isn't {}", "which is not {}")


def say(meaning: Meaning, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """The expression, and each descriptor as a piece of it: "red", "left of the blue square"."""
    head, modifier = meaning.head, meaning.modifier
    words = head.words()
    if isinstance(modifier, Rank):
        if modifier.n == 1:
            most = MOST[modifier.side]
            return f"the {most} {head}", (most, *words)
        nth, edge = NTH[modifier.n], f"from the {EDGE[modifier.side]}"
        return f"the {nth} {head} {edge}", (f"{nth} {edge}", *words)
    if isinstance(modifier, Relation):
        tail = f"{rng.choice(SIDES[modifier.side])} the {modifier.landmark}"
    elif isinstance(modifier, Without):
        tail = rng.choice(NEGATIONS).format(modifier.value)
    else:
        return f"the {head}", tuple(words)
    return f"the {head} {tail}", (*words, tail)
