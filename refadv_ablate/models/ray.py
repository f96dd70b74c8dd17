"""One very large run sharded over workers by Ray Data; each worker holds its own engine.

Answers depend on their request alone, so how requests are dealt out never changes a result. Ray brings
the workers, their placement on GPUs and nodes, and their restart.
"""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from refadv_ablate.errors import ModelUnavailable, UserError
from refadv_ablate.types import Json, Model, ModelSpec, Reply, Request


@dataclass
class RayEngine:
    """`inner_config` is the engine of each worker, such as the YAML of backend=transformers.

    window: requests handed to Ray at once; bounds memory. Workers live as long as a window.
    batch: requests that a worker answers together.
    gpus, cpus: of each worker. address: of a running cluster; None starts one on this machine.
    """

    spec: ModelSpec
    inner_config: Mapping[str, Any]
    workers: int = 2
    batch: int = 32
    window: int = 20_000
    gpus: float = 0.0
    cpus: float = 1.0
    address: str | None = None
    durable: bool = True
    _identity: Mapping[str, Json] | None = field(default=None, init=False)

    def identity(self) -> Mapping[str, Json]:
        """The inner engine's own, told by a worker: sharding changes no answer."""
        if self._identity is None:
            ray = _ray(self.address)
            told = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus)(_identity)
            try:
                self._identity = ray.get(told.remote(self.spec, dict(self.inner_config)))
            except ray.exceptions.RayError as error:
                raise ModelUnavailable(_sentence(error)) from error
        return self._identity

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """Window by window; within one, in whatever order workers finish."""
        ray = _ray(self.address)
        iterator = iter(requests)
        while window := list(islice(iterator, self.window)):
            rows = [
                {"index": index, "request": pickle.dumps(request)} for index, request in enumerate(window)
            ]
            done = ray.data.from_items(rows, override_num_blocks=max(1, len(rows) // self.batch)).map_batches(
                Worker,
                fn_constructor_args=(self.spec, dict(self.inner_config)),
                batch_size=self.batch,
                compute=ray.data.ActorPoolStrategy(size=min(self.workers, max(1, len(rows) // self.batch))),
                num_gpus=self.gpus or None,
                num_cpus=self.cpus,
            )
            try:
                for row in done.iter_rows():
                    if not row["reply"]:
                        raise ModelUnavailable(str(row["stopped"]))
                    # Made by our own workers a moment ago, not read from a file.
                    yield window[int(row["index"])], pickle.loads(row["reply"])  # noqa: S301
            except ray.exceptions.RayError as error:
                raise ModelUnavailable(f"{_sentence(error)}; answers so far are kept") from error

    def close(self) -> None:
        """Workers end with their window; the cluster is left as it was found."""


class Worker:
    """Lives in a Ray actor: builds the inner engine once, answers batches."""

    def __init__(self, spec: ModelSpec, inner_config: Mapping[str, Any]) -> None:
        self.model = _inner(spec, inner_config)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Rows of pickled requests → rows of pickled replies, in the order of the rows.

        What a person must mend comes back as a sentence: Ray would wrap it in its own advice.
        """
        indices = [int(i) for i in batch["index"]]
        asked = [pickle.loads(data) for data in batch["request"]]  # noqa: S301  # from our own launcher
        replies: dict[str, bytes] = {}
        stopped = ""
        try:
            for request, reply in self.model.answer(asked):
                replies[request.id + str(len(request.messages))] = pickle.dumps(reply)
        except UserError as error:
            stopped = str(error)
        answers = [replies.get(request.id + str(len(request.messages)), b"") for request in asked]
        return {"index": indices, "reply": answers, "stopped": [stopped] * len(asked)}


def _sentence(error: Exception) -> str:
    told = str(getattr(error, "cause", None) or error).strip().splitlines()
    raised = [line for line in told if re.match(r"[\w.]*(Error|Exception|Unavailable)\b.*: ", line)]
    return f"a Ray worker stopped: {(raised or told)[-1]}"


def _inner(spec: ModelSpec, config: Mapping[str, Any]) -> Model:
    from refadv_ablate.assets import build

    model: Model = build(config, "backend.inner_config", spec=spec)
    return model


def _identity(spec: ModelSpec, config: Mapping[str, Any]) -> dict[str, Json]:
    model = _inner(spec, config)
    try:
        return dict(model.identity())
    finally:
        model.close()


def _ray(address: str | None) -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UserError("backend=ray needs Ray: pip install 'refadv-ablate[ray]'") from error
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what it says of failures we say, and shorter
    return ray
