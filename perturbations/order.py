"""Word order destroyed, words kept."""

from __future__ import annotations

import random
import re
import unicodedata
from dataclasses import dataclass
from typing import ClassVar

from perturbations.base import Single, result
from perturbations.word_kinds import displaced
from refadv_ablate.errors import UserError
from refadv_ablate.types import Example, Perturbed

_QUOTED = re.compile(r"(?<!\w)['‘](?=\S)([^'‘’]+|.+?)(?<=\S)['’](?!\w)")
_SPLIT = re.compile(r"[,;:!?](?=[^\W\d])|(?<=[^\W\d])[,;:!?](?=\d)|[—–…]|\.{2,}|--+")
_KEPT_BEFORE = frozenset("#@&$£€%'’‘")
_KEPT_AFTER = frozenset("%&'’°#")
_SIGN = re.compile(r"[@&+=~*]+|[<>=-]*[<>][<>=-]*")
"""Chunks of signs that stand for a word: "@", "->", "=>"."""
_SHORT = re.compile(r"[^\W\d_]{1,2}/")
"""A short form that ends in a slash: "w/"."""
_ABBREVIATION = re.compile(r"(?:\w\.){2,}")


@dataclass(frozen=True, slots=True)
class BagOfWords(Single):
    """The words of the expression in a random order (the paper's bag-of-words ablation).

    "a red ball with yellow stripes" → "with yellow red ball stripes a"

    A word is what stands between white space; case, hyphens, apostrophes, decimal points and signs
    such as # and % belong to it. Punctuation between words (commas, full stops, quotation marks,
    brackets, dashes) is dropped, since where it stands tells of the order; an expression is never
    called changed for its punctuation alone. Every order other than the original one is equally
    likely; repeated words are interchangeable. One distinct word: unchanged.
    """

    version: ClassVar[int] = 2
    not_identity: ClassVar[frozenset[str]] = frozenset({"n_shuffles"})

    n_shuffles: int = 1

    def __post_init__(self) -> None:
        if self.n_shuffles < 1:
            raise UserError(f"perturb.bow.n_shuffles is {self.n_shuffles}: it must be at least 1.")

    @property
    def draws(self) -> int:
        """Independent orders per expression, so that shuffle noise can be told from effect."""
        return self.n_shuffles

    def perturb(self, example: Example, rng: random.Random) -> Perturbed:
        """The trace keeps, for each word of the new text, its place in the original (from 0), and the

        kinds of the words that lost their neighbours.
        """
        old = words(example.expression)
        if len(set(old)) < 2:
            return result(example, example.expression, reason="fewer than two distinct words")
        order = list(range(len(old)))
        # Shuffling until the words differ is uniform over the other orders: each distinct order
        # stands for equally many permutations. At most half of all permutations give the original.
        while True:
            rng.shuffle(order)
            new = [old[i] for i in order]
            if new != old:
                kinds = displaced(old, order)
                return result(example, " ".join(new), trace={"order": list(order), "displaced": kinds})


def words(text: str) -> list[str]:
    """The words of a text in order, less the punctuation between them; may be empty."""
    text = _SPLIT.sub(" ", _QUOTED.sub(r" \1 ", text))
    return [word for chunk in text.split() if (word := _bare(chunk))]


def _bare(chunk: str) -> str:
    """A chunk without the punctuation around it; "" if it is nothing else."""
    if _SIGN.fullmatch(chunk) or _SHORT.fullmatch(chunk.rstrip(",;.")):
        return chunk.rstrip(",;.")
    start, end = 0, len(chunk)
    while start < end and _punctuation(chunk[start]) and chunk[start] not in _KEPT_BEFORE:
        start += 1
    while start < end and _punctuation(chunk[end - 1]) and chunk[end - 1] not in _KEPT_AFTER:
        if chunk[end - 1] == ")" and "(" in chunk[start : end - 1]:  # such as "person(s)"
            break
        if _ABBREVIATION.fullmatch(chunk, start, end):  # such as "U.S."
            break
        end -= 1
    word = chunk[start:end]
    return word if any(not _punctuation(c) or c in "&#@%" for c in word) else ""


def _punctuation(char: str) -> bool:
    """Whether Unicode counts the character as punctuation; symbols and emoji are words."""
    return unicodedata.category(char).startswith("P")
