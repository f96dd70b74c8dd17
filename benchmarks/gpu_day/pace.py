"""How fast an engine answers the first requests of a run, and how fast a plain loop does.

python -m benchmarks.gpu_day.pace FILE N LOOP word …

FILE: where the JSON goes. N: requests that the engine is timed on, LOOP: how many of them the loop
(processor, generate, one at a time) is timed on afterwards, 0 for none. Both are warm. The words are a
command's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines.planned import planned

WARM = 4


def main(argv: Sequence[str]) -> int:
    file, n, loop, *words = argv
    parts, requests = planned(words)
    timed, warm = requests[: int(n)], requests[int(n) : int(n) + WARM] or requests[:WARM]
    found, texts = engine(parts, warm, timed)
    if int(loop):
        found["loop"] = plain(parts, warm[:1], timed[: int(loop)], texts)
    Path(file).write_text(json.dumps(found), encoding="utf-8")
    return 0


def engine(parts: Any, warm: Sequence[Any], timed: Sequence[Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Requests, seconds, answers that failed and output tokens; and the texts by request id."""
    from refadv_ablate.running.loaded_model import model_of, release

    model = model_of(parts)
    try:
        list(model.answer(warm))
        started = time.monotonic()
        replies = {request.id: reply for request, reply in model.answer(timed)}
        seconds = time.monotonic() - started
    finally:
        release()
    failed = sum(reply.finish == "error" for reply in replies.values())
    tokens = sum(reply.usage.output_tokens for reply in replies.values())
    found = {"n": len(timed), "seconds": seconds, "failed": failed, "output_tokens": tokens}
    return found, {key: reply.text for key, reply in replies.items()}


def plain(parts: Any, warm: Sequence[Any], timed: Sequence[Any], texts: dict[str, str]) -> dict[str, Any]:
    """Requests, seconds, and of how many the loop's text is the engine's."""
    from benchmarks.plain_loop import PlainLoop
    from refadv_ablate.models.local.devices import best_device, dtype_used
    from refadv_ablate.models.servers.wire import template_options

    spec, device = parts.spec, best_device()
    model = PlainLoop(spec.checkpoint, dtype_used("auto", device), device, spec.revision)
    for request in warm:
        model.answer(request, template_options(spec, request))
    started = time.monotonic()
    same = sum(model.answer(r, template_options(spec, r)) == texts[r.id] for r in timed)
    return {"n": len(timed), "seconds": time.monotonic() - started, "same": same}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
