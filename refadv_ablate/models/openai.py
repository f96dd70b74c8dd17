"""Any OpenAI-compatible server: vLLM, SGLang, LMDeploy, llama.cpp, OpenAI, and the compatible endpoints
of Gemini and Claude (`base_url` and `api_key_env` in the model's YAML under engine_options.openai)."""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from refadv_ablate.errors import BudgetReached, ImageUnreadable, ModelUnavailable, UserError
from refadv_ablate.models.budget import Budget
from refadv_ablate.models.pace import Limit, Pace
from refadv_ablate.models.pump import Pump
from refadv_ablate.models.retrying import Backoff, Failure, judge
from refadv_ablate.models.wire import body, data_url, images_of, reply_of
from refadv_ablate.types import ImageRef, Json, ModelSpec, Reply, Request, Usage

if TYPE_CHECKING:
    import openai

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(kw_only=True)
class OpenAI:
    """Asks a server through the `openai` SDK, many requests at a time, with one layer of retries: ours.

    base_url, api_key_env, served_name, extra_body, image_format, image_quality, token_limit, omit:
    None takes the model's engine_options.openai, then the default. The key comes from the
    environment variable named by api_key_env only; a plain http server needs none.
    token_limit: the field for max_new_tokens (newer OpenAI models: max_completion_tokens).
    omit: sampling fields that the endpoint refuses, such as temperature or seed.
    timeout: seconds one call may take. deadline: seconds one request may take with all its retries.
    concurrency: calls in flight at the start; the limit then adapts between 1 and max_concurrency
    (at most 900, where the SDK's connection pool ends).
    patience: seconds to wait for a server that went away before giving up.
    first_failures: so many requests without any answer at the start end the run.
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
    budget_usd: float | None = None
    first_input_tokens: int = 8192
    retries: int = field(default=0, init=False)
    """Calls asked again so far, for the progress display."""
    _budget: Budget = field(init=False, repr=False)
    _limit: Limit = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= self.max_concurrency <= 900:
            raise UserError(
                f"concurrency={self.concurrency} and max_concurrency={self.max_concurrency} need "
                "1 ≤ concurrency ≤ max_concurrency ≤ 900"
            )
        if self._option("image_format", "png") not in {"png", "jpeg"}:
            raise UserError(f"image_format={self._option('image_format', 'png')!r} is neither png nor jpeg")
        self._budget = Budget(self.spec.price, self.budget_usd, self.first_input_tokens)
        self._limit = Limit(self.concurrency, self.max_concurrency)

    def identity(self) -> Mapping[str, Json]:
        """Without address or key: the same checkpoint on another host gives the same answers."""
        return {
            "engine": "openai",
            "checkpoint": self._option("served_name", self.spec.checkpoint),
            "revision": self.spec.revision,
            "extra_body": dict(self._option("extra_body", {})),
            "image": [self._option("image_format", "png"), self._option("image_quality", 95)],
            "omit": sorted(self._option("omit", ())),
        }

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Reply]]:
        """One event loop (in a thread of its own) and one client for this call; replies as they come."""
        waiting = iter(requests)
        first = next(waiting, None)
        if first is None:
            return
        key = self._key()
        import openai  # noqa: F401  # about a second; here and not in the loop, where it would look like latency

        call = _Call(self, key)
        pump: Pump[Request, Reply] = Pump(call.close)
        with pump:
            yield from self._feed(pump, call, first, waiting)

    def _feed(
        self, pump: Pump[Request, Reply], call: _Call, request: Request | None, waiting: Iterator[Request]
    ) -> Iterator[tuple[Request, Reply]]:
        """Keeps a few more requests in the works than calls in flight, so that images are encoded ahead."""
        while True:
            while request and pump.outstanding < self._limit.value + 8 and call.reserve(request):
                pump.submit(request, call.ask)
                request = next(waiting, None)
            if not pump.outstanding:
                break
            try:
                done = pump.result()
            except ModelUnavailable:
                yield from pump.ready()
                raise
            yield done
            call.check_opening()
        if request is not None:
            raise BudgetReached(
                f"budget_usd={self.budget_usd} would be exceeded by the next answer "
                f"(spent {self._budget.spent:.4f} USD); what was answered is kept: raise budget_usd to go on"
            )

    def close(self) -> None:
        """Nothing is held between calls of `answer`."""

    @property
    def url(self) -> str:
        """Where the server is."""
        return str(self._option("base_url", os.environ.get("OPENAI_BASE_URL") or OPENAI_URL))

    def _option(self, name: str, default: Json) -> Any:
        own = getattr(self, name)
        if own is not None:
            return own
        return self.spec.engine_options.get("openai", {}).get(name, default)

    def _key(self) -> str:
        name = str(self._option("api_key_env", "OPENAI_API_KEY"))
        key = os.environ.get(name, "").strip()
        if key:
            return key
        if self.url.startswith("http://"):  # a server of one's own: no vendor sells keys over plain http
            return "none"
        raise UserError(
            f"{self.spec.name} at {self.url} needs an API key in the environment variable {name}: "
            f"export {name}=…"
        )


@dataclass
class _Tries:
    """Of one request: calls made, those that count against it, answers to others when it last failed."""

    answers_seen: int
    number: int = 0
    counted: int = 0


class _Call:
    """What one call of `answer` shares: client, pace, encoded images. Lives in one event loop."""

    def __init__(self, engine: OpenAI, key: str) -> None:
        self.engine, self.key = engine, key
        self.backoff = Backoff(engine.backoff_base, engine.backoff_cap)
        self.pace = Pace(engine._limit, engine.patience, engine.first_patience)
        self.jitter = random.Random()
        self.reserved: dict[int, float] = {}
        self.unanswered: list[Failure] = []
        self.answered = False
        self.over = ""
        self._client: openai.AsyncOpenAI | None = None
        self._urls: OrderedDict[str, asyncio.Future[str]] = OrderedDict()

    @property
    def client(self) -> openai.AsyncOpenAI:
        if self._client is None:
            import openai

            url, plain = self.engine.url, None
            if url.startswith("http://"):  # saves loading all certificates, a tenth of a second
                plain = openai.DefaultAsyncHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            self._client = openai.AsyncOpenAI(
                api_key=self.key, base_url=url, max_retries=0, timeout=self.engine.timeout, http_client=plain
            )
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    def reserve(self, request: Request) -> bool:
        """Sets the worst cost of the request aside, if the budget allows it."""
        budget = self.engine._budget
        worst = budget.worst(request.sampling.max_new_tokens)
        if not budget.admits(worst):
            return False
        budget.reserved += worst
        self.reserved[id(request)] = worst
        return True

    def check_opening(self) -> None:
        """Raises where nothing was ever answered: a failing server, or one refusal to every request.

        Refusals that differ are about the examples (too long) and don't end the run.
        """
        many = self.engine.first_failures
        lost = [f for f in self.unanswered if f.kind == "retry"]
        refused = [f for f in self.unanswered if f.kind == "example"]
        if self.answered or (len(lost) < many and len(refused) < many):
            return
        if len(lost) >= many or len({f.reason for f in refused}) == 1:
            raise ModelUnavailable(
                f"the first {len(self.unanswered)} requests to {self.engine.url} all failed, so nothing was "
                f"scored; the last one: {self.unanswered[-1].reason}"
            )

    async def ask(self, request: Request) -> Reply:
        """The reply, after as many tries as it takes; raises ModelUnavailable for what ends the run."""
        tries, reply = _Tries(self.pace.answers), None
        try:
            async with asyncio.timeout(self.engine.deadline):
                sent = await self._body(request)
                while reply is None:
                    reply = await self._once(sent, request, tries)
        except TimeoutError:
            late = Failure("retry", f"no answer within the deadline of {self.engine.deadline:g} s")
            reply = self._no_reply(late, tries.number)
        except ImageUnreadable as error:
            reply = Reply(text="", finish="error", error=str(error), attempts=0)
        finally:
            usage = reply.usage if reply else Usage()
            self.engine._budget.settle(self.reserved.pop(id(request), 0.0), usage)
        return reply

    async def _once(self, sent: Json, request: Request, tries: _Tries) -> Reply | None:
        """The reply of one try; None after the pause that precedes the next try."""
        import openai

        async with self.pace.slot():
            if self.over:
                raise ModelUnavailable(self.over)
            tries.number += 1
            start = time.monotonic()
            try:
                async with asyncio.timeout(self.engine.timeout):
                    answer = await self.client.post(
                        "/chat/completions", body=sent, cast_to=openai.types.chat.ChatCompletion
                    )
                reply = reply_of(answer, self.engine.spec.price, time.monotonic() - start, tries.number)
            except Exception as error:  # judge raises what it doesn't know
                failure = judge(error)
                self.over = self._fatal(failure) if failure.kind == "fatal" else self.over
            else:
                self.pace.answered(reply.seconds)
                self.answered = True
                return reply
        self._count(failure, request, time.monotonic() - start)
        if failure.kind == "example" or self._out_of_tries(failure, tries):
            return self._no_reply(failure, tries.number)
        self.engine.retries += 1
        await asyncio.sleep(self.backoff.delay(failure, tries.number, self.jitter))
        return None

    def _out_of_tries(self, failure: Failure, tries: _Tries) -> bool:
        """Whether to give this request up, which fails on it alone.

        Only a failure while the server answers others counts; else it is the server that is gone, and
        the breaker decides. Where nothing was ever answered each counts, and check_opening decides.
        """
        alone = len(self.reserved) == 1 and failure.reason.startswith("HTTP")
        lives = self.pace.answers > tries.answers_seen or not self.pace.answers or alone
        tries.answers_seen = self.pace.answers
        tries.counted += lives and not failure.overloaded
        return tries.counted >= self.engine.attempts

    def _count(self, failure: Failure, request: Request, seconds: float) -> None:
        """Tells budget and pace of a failed call; raises ModelUnavailable for one that ends the run."""
        engine = self.engine
        if failure.maybe_billed:
            engine._budget.lost(engine._budget.worst(request.sampling.max_new_tokens))
        if self.over:
            raise ModelUnavailable(self.over)
        if failure.kind == "example":
            self.pace.answered(seconds)
        elif failure.overloaded:
            self.pace.refused(failure.wait)
        else:
            self.pace.failed(len(self.reserved), failure.reason)
            if self.pace.given_up:
                raise ModelUnavailable(self._gone(failure))

    def _no_reply(self, failure: Failure, attempts: int) -> Reply:
        self.unanswered = [*self.unanswered[-self.engine.first_failures :], failure]
        return Reply(text="", finish="error", error=f"{failure.reason} ({attempts} tries)", attempts=attempts)

    def _fatal(self, failure: Failure) -> str:
        name = self.engine._option("served_name", self.engine.spec.checkpoint)
        return (
            f"{self.engine.url} refuses every request for {name!r} ({failure.reason}): check the key in "
            f"{self.engine._option('api_key_env', 'OPENAI_API_KEY')}, the model's name "
            "(backend.served_name=…) and the address (backend.base_url=…)"
        )

    def _gone(self, failure: Failure) -> str:
        url = self.engine.url
        if not self.pace.answers and failure.reason.startswith("HTTP"):
            return f"the server at {url} answers with nothing but errors ({failure.reason}): look at its log"
        if not self.pace.answers:
            return f"no server answers at {url} ({failure.reason}): start it, or give backend.base_url=…"
        return (
            f"the server at {url} stopped answering ({failure.reason}) and did not come back within "
            f"{self.engine.patience:g} s; the {self.pace.answers} answers so far are kept: run the same "
            "command again when it is back"
        )

    async def _body(self, request: Request) -> Json:
        urls = {id(image): await self._url(image, request.options) for image in images_of(request)}
        return body(self.engine.spec, request, lambda image: urls[id(image)], self.engine._option)

    async def _url(self, image: ImageRef, options: Mapping[str, Json]) -> str:
        """Encodes each image once for the requests that follow each other with it."""
        how = (
            str(options.get("image_format", self.engine._option("image_format", "png"))),
            int(options.get("image_quality", self.engine._option("image_quality", 95))),
        )
        key = f"{how} {await asyncio.to_thread(image.digest)}"
        if key not in self._urls:
            encode: Callable[[], str] = partial(data_url, image, *how)
            self._urls[key] = asyncio.ensure_future(asyncio.to_thread(encode))
            while len(self._urls) > 32:
                self._urls.popitem(last=False)
        return await asyncio.shield(self._urls[key])
