"""Which kinds of words an order leaves beside other words than before."""

from __future__ import annotations

from collections.abc import Sequence

from perturbations import lexicon

KINDS = {
    "negation": lexicon.NEGATIONS,
    "ordinal": lexicon.ORDINALS,
    "location": (lexicon.PLACE_ADJECTIVES | lexicon.SIDES) - lexicon.ORDINALS,
    "attribute": lexicon.COLORS | lexicon.MATERIALS | lexicon.TEXTURES | lexicon.SHADES,
    "relation": lexicon.PREPOSITIONS,
}
"""Closed lists; a word that stands in several belongs to the first. Other words have no kind."""


def displaced(words: Sequence[str], order: Sequence[int]) -> list[str]:
    """The kinds of the words that stand next to none of the words they stood next to, sorted.

    order: for each word of the new text its place in `words`, from 0.
    """
    found = set()
    for at, place in enumerate(order):
        beside = {order[near] for near in (at - 1, at + 1) if 0 <= near < len(order)}
        if not beside & {place - 1, place + 1} and (kind := kind_of(words[place])):
            found.add(kind)
    return sorted(found)


def kind_of(word: str) -> str:
    """The kind of one word; "" for nouns, verbs and whatever the lists lack."""
    low = word.casefold()
    ending = "n't" if low.endswith(("n't", "n’t")) else low
    return next((kind for kind, words in KINDS.items() if ending in words), "")
