"""The requests of a run in the order in which it would hand them to its engine, without asking any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class Listening:
    """Stands for a model and keeps the requests in the order in which a run hands them out."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def answer(self, requests: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Answers nothing."""
        from refadv_ablate.types import Reply

        for request in requests:
            self.requests.append(request)
            yield request, Reply(text="", finish="error", error="not asked")


def planned(words: Sequence[str]) -> tuple[Any, list[Any]]:
    """The parts of a job (words of the command), and its requests over all conditions."""
    from refadv_ablate.assets import compose
    from refadv_ablate.running import plan
    from refadv_ablate.running.ask import Keys, ask
    from refadv_ablate.running.measure import plan_of, texts_of
    from refadv_ablate.running.parts import parts_of
    from refadv_ablate.storage.answers import MemoryStore

    parts = parts_of(compose(list(words)))
    listening: Any = Listening()
    wanted = plan_of(parts, listening, parts.operators, texts_of(parts, parts.operators))
    questions = ((p.key, p.request) for p in plan.planned(wanted, Keys({})) if p.request is not None)
    ask(listening, questions, MemoryStore(), {}, lambda *_: None)
    return parts, listening.requests
