"""Whether the planned order fills vLLM's caches: conditions of an example together, or shuffled.

The caches are made small against the run, as they are on a real one: with 10,000 examples and hundreds of
image tokens each, only the last few hundred prompts are held. Each order is asked several times, in turns,
from empty caches.
"""

from __future__ import annotations

import random
import re
import statistics
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engines.planned import planned
from benchmarks.engines.serving import VLLM_SERVER, Running, serving

BLOCK, BLOCKS, IMAGE_CACHE_GB = 32, 64, 0.002
SERVED = ("--block-size", str(BLOCK), "--num-gpu-blocks-override", str(BLOCKS))
COUNTERS = {
    "prefix": ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
    "image": ("vllm:mm_cache_hits_total", "vllm:mm_cache_queries_total"),
}
CONDITIONS = ("identity", "bow", "fixed", "capitals", "descriptor_deletion")


@dataclass(frozen=True)
class Order:
    """One order of the same requests: hit rates (0 to 1) and seconds of each repetition."""

    name: str
    prefix: float
    image: float
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the seconds."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Caches:
    """Both orders, and what was asked: requests, their prompt tokens, tokens that the cache holds."""

    orders: tuple[Order, Order]
    requests: int
    images: int
    prompt_tokens: int
    held: int


def measure(model: str, checkpoint: Path, n: int, folder: Path, repetitions: int = 3) -> Caches:
    """Asks a vLLM server in both orders, in turns. Raises NotServed."""
    from refadv_ablate.models.openai import OpenAI

    words = [f"perturb=[{','.join(CONDITIONS)}]", f"model={model}", f"data.n={n}", f"out={folder / 'plan'}"]
    parts, requests = planned(words)
    shuffled = list(requests)
    random.Random(0).shuffle(shuffled)
    spent: dict[str, list[float]] = {"planned": [], "shuffled": []}
    rates: dict[str, list[dict[str, float]]] = {"planned": [], "shuffled": []}
    tokens = 0
    more = (*SERVED, "--mm-processor-cache-gb", str(IMAGE_CACHE_GB))
    with serving(VLLM_SERVER, checkpoint, folder / "server.log", more=more) as running:
        engine = OpenAI(spec=parts.spec, base_url=running.url, served_name=str(checkpoint))
        list(engine.answer(requests[:64]))  # warm
        for repetition in range(repetitions * 2):
            name = ("planned", "shuffled")[(repetition + repetition // 2) % 2]
            _empty(running)
            before, started = _counters(running), time.monotonic()
            replies = [r for _, r in engine.answer(requests if name == "planned" else shuffled)]
            spent[name].append(time.monotonic() - started)
            assert all(reply.finish != "error" for reply in replies)
            tokens = sum(reply.usage.input_tokens for reply in replies)
            rates[name].append(_rates(before, _counters(running)))
    orders = [
        Order(name, *(statistics.mean(r[kind] for r in rates[name]) for kind in COUNTERS), tuple(spent[name]))
        for name in spent
    ]
    images = len({request.image.key for request in requests})
    return Caches((orders[0], orders[1]), len(requests), images, tokens, BLOCK * BLOCKS)


def _empty(running: Running) -> None:
    root = running.url.removesuffix("/v1")
    for place in ("reset_prefix_cache", "reset_mm_cache", "reset_encoder_cache"):
        urllib.request.urlopen(urllib.request.Request(f"{root}/{place}", method="POST"), timeout=10).close()


def _counters(running: Running) -> dict[str, float]:
    with urllib.request.urlopen(running.url.removesuffix("/v1") + "/metrics", timeout=10) as page:
        text = page.read().decode()
    found: dict[str, float] = {}
    for name in (name for pair in COUNTERS.values() for name in pair):
        lines = re.findall(rf"(?m)^{re.escape(name)}\{{[^}}]*\}} (\S+)$", text)
        found[name] = sum(map(float, lines))
    return found


def _rates(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    changed = {name: after[name] - before[name] for name in after}
    return {
        kind: changed[hits] / changed[queries] if changed[queries] else 0.0
        for kind, (hits, queries) in COUNTERS.items()
    }
