"""Any OpenAI-compatible server: vLLM, SGLang, LMDeploy, llama.cpp, OpenAI, and the compatible endpoints
of Gemini and Claude (`base_url` and `api_key_env` in the model's YAML under engine_options.openai)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from refadv_ablate.errors import BudgetReached, UserError
from refadv_ablate.masking import masked
from refadv_ablate.models.servers.budget import Budget
from refadv_ablate.models.servers.calling import Call
from refadv_ablate.models.servers.pace import Limit
from refadv_ablate.models.servers.pump import Pump
from refadv_ablate.types import Json, ModelSpec, Reply, Request


@dataclass(kw_only=True)
class OpenAI:
    """Asks a server through the `openai` SDK, many requests at a time, with one layer of retries: ours.

    base_url: where the server is; None takes the model's, then $OPENAI_BASE_URL. Only closed models have an
    address of their own: the images of others are sent to nobody who wasn't named.
    api_key_env, served_name, extra_body, image_format, image_quality, token_limit, omit:
    None takes the model's engine_options.openai, then the default. The key comes from the
    environment variable named by api_key_env only; a plain http server needs none.
    token_limit: the field for max_new_tokens (newer OpenAI models: max_completion_tokens).
    omit: sampling fields that the endpoint refuses, such as temperature or seed.
    timeout: seconds one call may take. deadline: seconds one request may take with all its retries.
    concurrency: calls in flight at the start; the limit then adapts between 1 and max_concurrency
    (at most 900, where the SDK's connection pool ends).
    patience: seconds to wait for a server that went away before giving up.
    first_failures: so many requests without any answer at the start end the run.
    longest_rest: seconds of a server's Retry-After that are kept before it is asked again.
    Raises UserError for a missing key, ModelUnavailable, BudgetReached.
    """

    spec: ModelSpec
    base_url: str | None = None
    api_key_env: str | None = None
    served_name: str | None = None
    extra_body: Mapping[str, Json] | None = None
    image_format: str | None = None
    image_quality: int | None = None
    token_limit: str | None = None
    omit: tuple[str, ...] | None = None
    concurrency: int = 32
    max_concurrency: int = 128
    timeout: float = 300.0
    deadline: float = 1800.0
    attempts: int = 8
    patience: float = 300.0
    first_patience: float = 20.0
    first_failures: int = 8
    backoff_base: float = 0.5
    backoff_cap: float = 60.0
    longest_rest: float = 60.0
    budget_usd: float | None = None
    first_input_tokens: int = 8192
    retries: int = field(default=0, init=False)
    """Calls asked again so far, for the progress display."""
    budget: Budget = field(init=False, repr=False)
    limit: Limit = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= self.max_concurrency <= 900:
            raise UserError(
                f"concurrency={self.concurrency} and max_concurrency={self.max_concurrency} need "
                "1 ≤ concurrency ≤ max_concurrency ≤ 900"
            )
        if (url := self._address()) and not url.startswith(("http://", "https://")):
            raise UserError(f"base_url={url!r} needs http:// or https:// before it: http://{url}")
        if self.option("image_format", "png") not in {"png", "jpeg"}:
            raise UserError(f"image_format={self.option('image_format', 'png')!r} is neither png nor jpeg")
        self.budget = Budget(self.spec.price, self.budget_usd, self.first_input_tokens)
        self.limit = Limit(self.concurrency, self.max_concurrency)

    def identity(self) -> Mapping[str, Json]:
        """Without address or key: the same checkpoint on another host gives the same answers.

        The served name does not stand for the checkpoint: servers call any model "default".
        """
        return {
            "engine": "openai",
            "checkpoint": self.spec.checkpoint,
            "served_name": self.option("served_name", self.spec.checkpoint),
            "revision": self.spec.revision,
            "extra_body": masked(dict(self.option("extra_body", {}))),
            "image": [self.option("image_format", "png"), self.option("image_quality", 95)],
            "omit": sorted(self.option("omit", ())),
        }

    def lacks(self) -> Iterator[tuple[str, str, bool]]:
        """For a dry run: address or key, why, and whether a run can't start so."""
        if not self._address():
            yield "address", _told(lambda: self.url), True
        elif told := _told(self._key):
            yield "key", told, True

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """One event loop (in a thread of its own) and one client for this call; replies as they come."""
        waiting = iter(requests)
        first = next(waiting, None)
        if first is None:
            return
        key = self._key()
        import openai  # noqa: F401  # about a second; here and not in the loop, where it would look like latency

        call = Call(self, key)
        pump: Pump[Request, Reply] = Pump(call.close)
        with pump:
            yield from self._feed(pump, call, first, waiting)

    def _feed(
        self, pump: Pump[Request, Reply], call: Call, request: Request | None, waiting: Iterator[Request]
    ) -> Iterator[tuple[Request, Reply]]:
        """Keeps a few more requests in the works than calls in flight, so that images are encoded ahead."""
        try:
            while True:
                while request and pump.outstanding < self.limit.value + 8 and call.reserve(request):
                    pump.submit(request, call.ask)
                    request = next(waiting, None)
                if not pump.outstanding:
                    break
                yield pump.result()
                call.check_opening()
        except GeneratorExit:
            raise
        except BaseException:  # whatever ends the run: these were answered and paid for
            yield from pump.ready()
            raise
        if request is not None:
            raise BudgetReached(
                f"budget_usd={self.budget_usd} would be exceeded by the next answer "
                f"(spent {self.budget.spent:.4f} USD); what was answered is kept: raise budget_usd to go on"
            )

    def close(self) -> None:
        """Nothing is held between calls of `answer`."""

    @property
    def url(self) -> str:
        """Where the server is. Raises UserError where nobody said."""
        url = self._address()
        if not url:
            raise UserError(
                f"backend=openai needs the address of a server for {self.spec.name}: "
                "give backend.base_url=http://HOST:PORT/v1"
            )
        return url

    def _address(self) -> str:
        return str(self.option("base_url", os.environ.get("OPENAI_BASE_URL") or ""))

    def option(self, name: str, default: Json) -> Any:
        """An engine option: as given here, else as the model's YAML has it, else the default."""
        own = getattr(self, name)
        if own is not None:
            return own
        return self.spec.engine_options.get("openai", {}).get(name, default)

    def _key(self) -> str:
        name = str(self.option("api_key_env", "OPENAI_API_KEY"))
        key = os.environ.get(name, "").strip()
        if key:
            return key
        if self.url.startswith("http://"):  # a server of one's own: no vendor sells keys over plain http
            return "none"
        raise UserError(
            f"{self.spec.name} at {self.url} needs an API key in the environment variable {name}: "
            f"export {name}=…"
        )


def _told(needed: Callable[[], object]) -> str:
    """The sentence of what is needed and isn't there; "" where it is."""
    try:
        needed()
    except UserError as error:
        return str(error)
    return ""
