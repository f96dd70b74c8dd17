"""One round of asking a server: retries, pace, budget and encoded images, within one event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from refadv_ablate.errors import ImageUnreadable, ModelUnavailable, printable
from refadv_ablate.masking import MASK, SHORTEST, censored
from refadv_ablate.models.servers.completion import reply_of
from refadv_ablate.models.servers.pace import Pace
from refadv_ablate.models.servers.retrying import Backoff, Failure, judge
from refadv_ablate.models.servers.server import Server, fatal, gone, starved
from refadv_ablate.models.servers.server_kind import Known, decoding
from refadv_ablate.models.servers.wire import body, data_url, images_of
from refadv_ablate.types import ImageRef, Json, Reply, Request, TokenLogprobs, Usage

if TYPE_CHECKING:
    import openai


log = logging.getLogger(__name__)
PROBE_TOKENS = 16
"""Tokens that a probe may answer in; some endpoints refuse fewer."""


@dataclass
class Tries:
    """Of one request: calls made, those that count against it, answers to others when it last failed."""

    answers_seen: int
    number: int = 0
    counted: int = 0


@dataclass
class Proof:
    """That the server lives: a request that it answered, and how many failures that still speaks against."""

    body: Json = None
    credit: int = 0

    def spend(self, failure: Failure) -> None:
        """A connection that fails may soon be a server that is gone: it uses half of the credit."""
        self.credit = max(0, self.credit - 1) if failure.connected else self.credit // 2


class Call:
    """What one call of `answer` shares: client, pace, encoded images. Lives in one event loop."""

    def __init__(self, engine: Server, key: str) -> None:
        self.engine, self.key = engine, key
        self.backoff = Backoff(engine.backoff_base, engine.backoff_cap, engine.longest_rest)
        self.pace = Pace(engine.limit, engine.patience, engine.first_patience)
        self.jitter = random.Random()
        self.reserved: dict[int, float] = {}
        self.unanswered: list[Failure] = []
        self.answered = False
        self.proof = Proof()
        self.over = ""
        self._clients: list[openai.AsyncOpenAI] = []
        self._turn = 0
        self._urls: OrderedDict[str, asyncio.Future[str]] = OrderedDict()
        self.known = Known(self._get, engine.url)
        self.logprobs_refused = ""
        """Why the server gives no log-probabilities, once it has said so."""

    def client(self) -> openai.AsyncOpenAI:
        """The SDK's client for the next call.

        A plain http server gets one for every 16 calls at once: the connection pool looks at each of its
        connections for each call. Where certificates are loaded there is one.
        """
        plain = self.engine.url.startswith("http://")
        wanted = 1 + self.engine.limit.value // 16 if plain else 1
        if len(self._clients) < wanted:
            self._clients.append(self._made_client(plain))
        self._turn += 1
        return self._clients[self._turn % len(self._clients)]

    def _made_client(self, plain: bool) -> openai.AsyncOpenAI:
        import openai

        for name in ("httpx", "httpx2"):  # a line for each call, with its address, where a launcher logs INFO
            logging.getLogger(name).setLevel(logging.WARNING)
        transport = None
        if plain:  # saves loading all certificates, a tenth of a second; https would fail, not pass unchecked
            transport = openai.DefaultAsyncHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return openai.AsyncOpenAI(
            api_key=self.key,
            base_url=self.engine.url,
            max_retries=0,
            timeout=self.engine.timeout,
            http_client=transport,
        )

    async def close(self) -> None:
        """Closes every connection."""
        for client in self._clients:
            await client.close()

    def reserve(self, request: Request) -> bool:
        """Sets the worst cost of the request aside, if the budget allows it."""
        budget = self.engine.budget
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
        tries, reply = Tries(self.pace.answers), None
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
            self.engine.budget.settle(self.reserved.pop(id(request), 0.0), usage)
        return reply

    async def _once(self, sent: Json, request: Request, tries: Tries) -> Reply | None:
        """The reply of one try; None after the pause that precedes the next try."""
        async with self.pace.slot():
            if self.over:
                raise ModelUnavailable(self.over)
            if self.pace.is_open and self.proof.body is not None and not await self._lives():
                return None
            tries.number += 1
            start = time.monotonic()
            try:
                reply = await self._post(sent, tries.number)
            except Exception as error:  # judge sorts whatever it is: a request's failure stops no other
                failure = self._obeyed(self._lenient(self._without_key(judge(error))))
                if self._refuses_logprobs(failure, sent):
                    return None
                self.over = fatal(self.engine, failure) if failure.kind == "fatal" else self.over
            else:
                self.pace.answered(reply.seconds)
                self.answered, self.proof.body = True, sent
                return reply
        self._count(failure, request, time.monotonic() - start)
        if failure.kind == "example" or self._out_of_tries(failure, tries):
            return self._no_reply(failure, tries.number)
        self.engine.retries += 1
        await asyncio.sleep(self.backoff.delay(failure, tries.number, self.jitter))
        return None

    async def _post(self, sent: Json, number: int) -> Reply:
        """One call; raises whatever went wrong."""
        start = time.monotonic()
        if self.logprobs_refused:
            sent = {name: value for name, value in sent.items() if name != "logprobs"}
        async with asyncio.timeout(self.engine.timeout):
            answer = await self.client().post("/chat/completions", body=sent, cast_to=object)
        if isinstance(answer, str):  # JSON under another content type
            answer = json.loads(answer)
        spec = self.engine.spec
        reply = reply_of(answer, spec.price, time.monotonic() - start, number, logprobs=spec.logprobs)
        if spec.logprobs and self.logprobs_refused:
            reply = replace(reply, logprobs=TokenLogprobs(lacks=self.logprobs_refused))
        return replace(reply, engine=str(self.known.kind), decoding=decoding(sent))

    def _refuses_logprobs(self, failure: Failure, sent: Json) -> bool:
        """Whether a call failed for its log-probabilities alone: from then on the server is asked without."""
        told = failure.kind != "retry" and re.search("log_?prob", failure.reason, re.IGNORECASE)
        if not told or "logprobs" not in sent:
            return False
        if not self.logprobs_refused:
            self.logprobs_refused = f"the server refuses log-probabilities ({failure.reason})"
            log.warning(
                "%s refuses log-probabilities (%s): its answers are asked for without them and have no "
                "confidence; logprobs=false asks for none",
                self.engine.url,
                failure.reason,
            )
        return True

    async def _lives(self) -> bool:
        """Whether the server still answers what it has answered before, cut to a few tokens.

        So a server that is gone is told from one that fails on the requests that happen to be left.
        """
        name = self.engine.option("token_limit", "max_tokens")
        short = {**self.proof.body, name: min(PROBE_TOKENS, self.proof.body.get(name, PROBE_TOKENS))}
        try:
            usage = (await self._post(short, 1)).usage
        except Exception as error:
            failure = self._without_key(judge(error))
            if failure.kind != "example" and not failure.overloaded:
                self.pace.failed(len(self.reserved), failure.reason, failure.connected)
                if self.pace.given_up:
                    raise ModelUnavailable(gone(self.engine, failure, self.pace.answers)) from None
                return False
            usage = Usage()
        self.engine.budget.settle(0.0, usage)
        self.pace.proven()
        self.proof.credit = self.engine.attempts * max(1, len(self.reserved))
        return True

    def _out_of_tries(self, failure: Failure, tries: Tries) -> bool:
        """Whether to give this request up, which fails on it alone.

        Only a failure while the server answers others counts, or what it answered before; else it is the
        server that is gone, and the breaker decides. Where nothing was ever answered each counts, and
        check_opening decides.
        """
        lives = self.pace.answers > tries.answers_seen or not self.pace.answers or self.proof.credit > 0
        tries.answers_seen = self.pace.answers
        tries.counted += lives and not failure.overloaded
        self.proof.spend(failure)
        return tries.counted >= self.engine.attempts

    def _count(self, failure: Failure, request: Request, seconds: float) -> None:
        """Tells budget and pace of a failed call; raises ModelUnavailable for one that ends the run."""
        engine = self.engine
        if failure.maybe_billed:
            engine.budget.lost(engine.budget.worst(request.sampling.max_new_tokens))
        if self.over:
            raise ModelUnavailable(self.over)
        if failure.kind == "example":
            self.pace.answered(seconds)
        elif failure.overloaded:
            self.pace.refused(failure.wait)
            if self.pace.starved:
                raise ModelUnavailable(starved(self.engine, failure, self.pace.answers))
        elif not self.proof.credit:
            self.pace.failed(len(self.reserved), failure.reason, failure.connected)
            if self.pace.given_up:
                raise ModelUnavailable(gone(self.engine, failure, self.pace.answers))

    def _obeyed(self, failure: Failure) -> Failure:
        """A rest that the server asks for is kept up to engine.longest_rest, then it is asked again."""
        longest = self.engine.longest_rest
        if failure.wait is None or failure.wait <= longest:
            return failure
        if not self.pace.resting:
            log.warning(
                "the server asks for a rest of %.0f s; it is asked again after %g s (backend.longest_rest)",
                failure.wait,
                longest,
            )
        asked = f"{failure.reason} (Retry-After: {failure.wait:.0f} s)"
        return replace(failure, wait=longest, reason=asked)

    def _without_key(self, failure: Failure) -> Failure:
        """Some servers repeat the key that they refuse."""
        reason = failure.reason.replace(self.key, MASK) if len(self.key) >= SHORTEST else failure.reason
        return replace(failure, reason=printable(censored(reason)))

    def _lenient(self, failure: Failure) -> Failure:
        """A 403 among answers is about its request: gateways moderate what they are asked."""
        about_it = self.answered and failure.reason.startswith("HTTP 403")
        return replace(failure, kind="example") if about_it else failure

    def _no_reply(self, failure: Failure, attempts: int) -> Reply:
        self.unanswered = [*self.unanswered[-self.engine.first_failures :], failure]
        return Reply(text="", finish="error", error=f"{failure.reason} ({attempts} tries)", attempts=attempts)

    async def _body(self, request: Request) -> Json:
        urls = {id(image): await self._url(image, request.options) for image in images_of(request)}
        further = (await self.known()).fields(request.sampling)
        if self.engine.spec.logprobs:
            further["logprobs"] = True
        return body(self.engine.spec, request, lambda image: urls[id(image)], self.engine.option, further)

    async def _get(self, path: str) -> Json:
        return await self.client().get(path, cast_to=object)

    async def _url(self, image: ImageRef, options: Mapping[str, Json]) -> str:
        """Encodes each image once for the requests that follow each other with it."""
        how = (
            str(options.get("image_format", self.engine.option("image_format", "png"))),
            int(options.get("image_quality", self.engine.option("image_quality", 95))),
        )
        key = f"{how} {await asyncio.to_thread(image.digest)}"
        if key not in self._urls:
            encode: Callable[[], str] = partial(data_url, image, *how)
            self._urls[key] = asyncio.ensure_future(asyncio.to_thread(encode))
            while len(self._urls) > 32:
                self._urls.popitem(last=False)
        return await asyncio.shield(self._urls[key])
