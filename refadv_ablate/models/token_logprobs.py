"""Which characters of an answer each of its tokens made, so that a probability can be had for a part of it.

Engines give tokens and their log-probabilities beside the text, and the two needn't be alike: a server
takes special tokens and the thinking trace out of the text, and a character may be split over tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from refadv_ablate.types import TokenLogprobs

DIGITS = 4
"""Significant digits that are kept: batches of another size differ in the sixth (float32)."""
CERTAIN = 1e-6
"""A log-probability this close to 0 is rounding and kept as 0."""
UNLIKE = "the engine's tokens don't make up its text"
_SPECIAL = re.compile(rb"<\|[^|<>]*\|>|</?[a-zA-Z_]+>|\[/?[A-Z]+\]")
"""Tokens that a server may leave out of the text: those that carry a box, begin or end a turn."""


def pieces(ids: Sequence[int], decode: Callable[[list[int]], str]) -> list[str]:
    """The text of each token where it stands; a character of several tokens belongs to the last of them.

    decode: token ids to text. Each token is decoded behind the one before it, since some tokenizers write
    no blank before a first word.
    """
    found: list[str] = []
    before: list[int] = []
    held: list[int] = []
    for one in ids:
        held.append(one)
        piece = decode(before + held)[len(decode(before)) if before else 0 :]
        if piece.endswith("\ufffd"):
            found.append("")
            continue
        found.append(piece)
        before, held = held, []
    if held:  # the answer was cut within a character
        found[-1] = decode(before + held)[len(decode(before)) if before else 0 :]
    return found


def aligned(
    tokens: Sequence[str | bytes], values: Sequence[float], text: str, start: int = 0
) -> TokenLogprobs:
    """The log-probabilities beside the characters of `text`, which begins at `start` of the reply's text.

    Where the text is a part of what the tokens make up, the last such part counts: a trace comes first.
    """
    numbers = list(map(_kept, values))
    if any(number is None for number in numbers):
        return TokenLogprobs(lacks="the engine's log-probabilities are not numbers of 0 or less")
    raw = [token if isinstance(token, bytes) else token.encode(errors="surrogatepass") for token in tokens]
    wanted = text.encode(errors="surrogatepass")
    core = wanted.strip()
    for shown in (raw, [b"" if _SPECIAL.fullmatch(token) else token for token in raw]):
        at = b"".join(shown).rfind(core)
        if core and at >= 0:
            lead = wanted.index(core)
            ends = [min(max(end - at, 0), len(core)) for end in accumulate(map(len, shown), initial=0)]
            chars = list(_characters(core, ends))
            return _trimmed(start + len(wanted[:lead].decode(errors="surrogatepass")), chars, numbers)
    return TokenLogprobs(lacks=UNLIKE if core else "the reply has no text")


def _characters(core: bytes, ends: Sequence[int]) -> Iterator[int]:
    """Characters that end within each token, from the places in bytes where tokens end."""
    whole = [i + 1 for i in range(len(core)) if i + 1 == len(core) or core[i + 1] & 0xC0 != 0x80]
    done = 0
    counts = []
    for end in ends:
        while done < len(whole) and whole[done] <= end:
            done += 1
        counts.append(done)
    return (after - before for before, after in pairwise(counts))


def _trimmed(start: int, chars: Sequence[int], values: Sequence[float | None]) -> TokenLogprobs:
    """Without the tokens before and after the text: a trace, special tokens, the end."""
    made = [i for i, count in enumerate(chars) if count]
    inside = slice(made[0], made[-1] + 1)
    return TokenLogprobs(start, tuple(chars[inside]), tuple(v for v in values[inside] if v is not None))


def _kept(value: object) -> float | None:
    """The value as it is kept; None for what is no log-probability."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value > 1e-3:  # type: ignore[operator]  # a number by now
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return 0.0 if rounded > -CERTAIN else rounded
