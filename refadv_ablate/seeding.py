"""Randomness as an argument: one generator per (seed, example, condition), the same on every machine."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def encoded(text: str) -> bytes:
    """UTF-8; half a surrogate pair, as a cut answer may end in, has bytes of its own."""
    return text.encode(errors="surrogatepass")


def digest(*parts: Any) -> str:
    """SHA-256 over the canonical JSON of the parts, as 64 hexadecimal digits."""
    return hashlib.sha256(encoded(canonical(parts))).hexdigest()


def generator(seed: int, *parts: str | int) -> random.Random:
    """A generator that depends on its arguments alone: never on order, process or hash seed."""
    return random.Random(int(digest(seed, *parts)[:32], 16))
