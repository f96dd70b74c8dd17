"""The local engine on original and three operators per image, against a plain loop: processor, generate."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.plain_loop import PlainLoop
from refadv_ablate.models.transformers import Transformers
from refadv_ablate.types import Request, Sampling
from tests.models import tiny
from tests.models.asking import Drawn, ask, spec

IMAGES, CONDITIONS, TOKENS = 32, 4, 24
FAMILIES = ("internvl", "qwen2_5_vl", "qwen3_vl")


def run() -> list[dict[str, Any]]:
    """Same checkpoint, same requests, same answers; both warm."""
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES:
            checkpoint = getattr(tiny, family)(Path(folder) / family)
            rows.append(compare(family, checkpoint))
    return rows


def requests() -> list[Request]:
    """Original and three perturbed texts of each image, as a run orders them."""
    sampling = Sampling(max_new_tokens=TOKENS)
    return [
        ask(
            n,
            image=Drawn(f"{n // CONDITIONS}", (320, 240)),
            text="dog " * (n % CONDITIONS + 2),
            sampling=sampling,
        )
        for n in range(IMAGES * CONDITIONS)
    ]


def compare(family: str, checkpoint: Path) -> dict[str, Any]:
    """Times both and checks that they say the same."""
    model = Transformers(spec=spec(str(checkpoint)), max_batch_size=64)
    list(model.answer(requests()[:CONDITIONS]))
    start = time.monotonic()
    said = {request.id: reply.text for request, reply in model.answer(requests())}
    ours = time.monotonic() - start
    plain = PlainLoop(str(checkpoint))
    plain.answer(requests()[0])
    start = time.monotonic()
    expected = {request.id: plain.answer(request) for request in requests()}
    theirs = time.monotonic() - start
    same = sum(said[key] == text for key, text in expected.items())
    assert same == len(expected), f"{len(expected) - same} of {len(expected)} answers differ"
    return {
        "what": f"local engine, original + 3 operators per image ({family}, tiny, CPU)",
        "against": "processor + generate, one at a time",
        "ours": f"{ours:.2f} s", "theirs": f"{theirs:.2f} s",
        "ratio": f"{theirs / ours:.1f}", "goal": "≥ 3", "met": theirs / ours >= 3, "n": IMAGES * CONDITIONS,
    }  # fmt: skip
