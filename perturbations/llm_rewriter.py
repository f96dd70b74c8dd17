"""Descriptors found and deleted by an LLM behind any OpenAI-compatible endpoint (the paper's way)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from perturbations import llm_prompts as prompts
from perturbations.grammar import tidy
from perturbations.llm_answers import Answers
from perturbations.rewriters import Extraction, Job, Rewrite, Unanswered
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import digest
from refadv_ablate.types import Json

T = TypeVar("T")
Ask = Callable[[list[dict[str, str]], Mapping[str, Json]], Awaitable[str]]
"""Messages and a JSON schema → the text of the answer."""


@dataclass(frozen=True, slots=True)
class LLMRewriter:
    """Two questions: which descriptors are there, and how does it read without this one.

    temperature 0 by default. attempts: tries per request where the server fails (429, 5xx, lost
    connection), spaced by the client's backoff, which honours Retry-After. repairs: how often an
    answer that can't be read or breaks a rule is asked for again, with what was wrong with it. cache: folder
    of answers kept for each expression, model and prompt; another seed, limit or data set asks only
    what is new; None keeps nothing.
    """

    model: str
    base_url: str
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float = 0.0
    max_tokens: int = 512
    concurrency: int = 8
    attempts: int = 6
    repairs: int = 2
    timeout_s: float = 60.0
    cache: str | None = None

    def __post_init__(self) -> None:
        for name in ("concurrency", "attempts"):
            if getattr(self, name) < 1:
                raise UserError(f"rewriter.{name} is {getattr(self, name)}: it must be at least 1.")

    @property
    def batch(self) -> int:
        """Enough to keep the server busy, few enough that little is lost when it fails."""
        return 4 * self.concurrency

    def identity(self) -> Mapping[str, Json]:
        """Model, decoding and prompts: not where the server is, nor how it is reached."""
        return {
            "rewriter": "LLMRewriter",
            "version": 2,
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "repairs": self.repairs,
            "prompts": prompts.FINGERPRINT,
        }

    def extract(self, expressions: Sequence[str]) -> Sequence[Extraction | Unanswered]:
        """Descriptors that don't stand in the expression word for word, or tear a negation from what it
        negates, are asked for again, and in the end left out."""

        async def one(text: str, ask: Ask) -> Extraction | Unanswered:
            if not text.strip():
                return Extraction("", reason="the expression is empty")
            answer, problem = await self._dialogue(
                ask,
                prompts.extract(text),
                lambda a: prompts.read_extraction(text, a),
                lambda a: prompts.read_extraction(text, a, strict=False),
            )
            return answer or Unanswered(self._unusable(text, problem))

        return self._all(expressions, one)

    def rewrite(self, jobs: Sequence[Job]) -> Sequence[Rewrite | Unanswered]:
        """A rewrite that drops more than one descriptor, or adds words, is asked for again."""

        async def one(job: Job, ask: Ask) -> Rewrite | Unanswered:
            answer, problem = await self._dialogue(
                ask, prompts.rewrite(job), lambda a: prompts.read_rewrite(job, a)
            )
            if answer is None and isinstance(problem, prompts.Junk):
                return Unanswered(self._unusable(job.expression, problem))
            return replace(answer, text=tidy(answer.text)) if answer else Rewrite("", problem)

        return self._all(jobs, one)

    def change(self, jobs: Sequence[Job]) -> Sequence[Rewrite | Unanswered]:
        """A change that touches more than the descriptor is asked for again."""

        async def one(job: Job, ask: Ask) -> Rewrite | Unanswered:
            answer, problem = await self._dialogue(
                ask, prompts.change(job), lambda a: prompts.read_change(job, a)
            )
            if answer is None and isinstance(problem, prompts.Junk):
                return Unanswered(self._unusable(job.expression, problem))
            return answer or Rewrite("", problem)

        return self._all(jobs, one)

    def change_identity(self) -> Mapping[str, Json]:
        """The prompt that asks for changes."""
        return {"change": prompts.CHANGE_FINGERPRINT}

    async def _dialogue(
        self,
        ask: Ask,
        question: prompts.Question,
        read: Callable[[str], T | str],
        last: Callable[[str], T | str] | None = None,
    ) -> tuple[T | None, str]:
        """The first answer that can be read, asking again with what was wrong; and the last problem.

        last: how the last answer is read, where that is more lenient. What was read is kept in the cache.
        """
        messages = list(question.messages)
        problem = ""
        kept = Answers(self.cache, self._cache_name()) if self.cache else None
        known = kept.get(question.key) if kept else None
        for attempt in range(-1 if known is not None else 0, self.repairs + 1):
            answer = known if attempt < 0 and known is not None else await ask(messages, question.schema)
            found = read(answer)
            if isinstance(found, str) and last is not None and attempt in {-1, self.repairs}:
                found = last(answer)
            if not isinstance(found, str):
                if kept and attempt >= 0:
                    kept.put(question.key, answer)
                return found, ""
            problem = found
            if attempt < 0:
                continue
            messages = [*question.messages, {"role": "assistant", "content": answer}, prompts.repair(problem)]
        return None, problem

    def _cache_name(self) -> str:
        """What an answer depends on beside the question: one file for each."""
        return digest(self.model, self.temperature, self.max_tokens, prompts.FINGERPRINT)[:16]

    def _unusable(self, text: str, problem: str) -> str:
        return (
            f"rewriter=openai: the answer of model {self.model} for {text!r} could not be used after "
            f"{self.repairs + 1} tries ({problem}); it was not kept: try again, raise rewriter.repairs, take "
            "another model, or use rewriter=spacy."
        )

    def _all(
        self, items: Sequence[Any], one: Callable[[Any, Ask], Awaitable[T | Unanswered]]
    ) -> list[T | Unanswered]:
        """Each item's result in order. A server that fails for one item fails for that one alone."""
        key = os.environ.get(self.api_key_env) or "none"  # local servers take any
        results: list[T | Unanswered] = _run(self._gather(items, one, key))
        return results

    async def _gather(
        self, items: Sequence[Any], one: Callable[[Any, Ask], Awaitable[T | Unanswered]], key: str
    ) -> list[T | Unanswered]:
        import openai

        gate = asyncio.Semaphore(self.concurrency)
        # max_retries: the client's own backoff with jitter, which reads Retry-After
        async with openai.AsyncOpenAI(
            base_url=self.base_url, api_key=key, timeout=self.timeout_s, max_retries=self.attempts - 1
        ) as client:

            async def guarded(item: Any) -> T | Unanswered:
                async with gate:
                    try:
                        return await one(item, lambda m, s: self._ask(client, m, s))
                    except openai.APIError as error:
                        return Unanswered(self._sentence(error))

            return list(await asyncio.gather(*(guarded(item) for item in items)))

    async def _ask(self, client: Any, messages: list[dict[str, str]], schema: Mapping[str, Json]) -> str:
        """Structured output where the server has it; else JSON mode; else the prompt alone."""
        import openai

        if problem := _no_contact(self.base_url):
            raise UserError(
                f"rewriter=openai: nobody answers at {self.base_url} ({problem}): start the server, give "
                "rewriter.base_url=, or use rewriter=spacy."
            )

        formats: list[Any] = [
            {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
            },
            {"type": "json_object"},
            openai.omit,
        ]
        for i, response_format in enumerate(formats):
            try:
                reply = await client.chat.completions.create(
                    model=self.model,
                    messages=messages,
                    temperature=self.temperature,
                    max_tokens=self.max_tokens,
                    response_format=response_format,
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                if i == len(formats) - 1:
                    raise
                continue
            return (reply.choices[0].message.content or "") if reply.choices else ""
        raise AssertionError("the last format returns or raises")

    def _sentence(self, error: Exception) -> str:
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            return (
                f"rewriter=openai: {self.base_url} refuses the key (HTTP {status}): set the environment "
                f"variable {self.api_key_env}, or rewriter.api_key_env to the name of another one."
            )
        cause = " ".join(str(error).split())[:200]
        return (
            f"rewriter=openai: {self.base_url} did not answer for model {self.model} within {self.attempts} "
            f"tries ({type(error).__name__}: {cause}); texts made so far are kept: start the run again when "
            "the server is back, or use rewriter=spacy."
        )


@cache
def _no_contact(base_url: str) -> str:
    """Why a first connection fails, "" if it doesn't: said at once, where retries would take a while.

    Asked once a process, since a server that went away later may come back; not where a proxy stands
    between.
    """
    import socket
    from urllib.parse import urlsplit
    from urllib.request import getproxies

    address = urlsplit(base_url)
    if getproxies() or not address.hostname:
        return ""
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
        with socket.create_connection((address.hostname, port), timeout=10):
            return ""
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


def _run(coroutine: Any) -> Any:
    """The coroutine's result, also where a notebook's event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
