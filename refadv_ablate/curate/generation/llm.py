"""The LLM of the pipeline: questions about tagged images, answers as checked JSON, one repair each."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from refadv_ablate.boxes import Box, Quad
from refadv_ablate.curate.generation.texts import Stage
from refadv_ablate.errors import ModelUnavailable, UserError
from refadv_ablate.models.openai import OpenAI
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.types import (
    Example,
    ImageRef,
    Json,
    Message,
    ModelSpec,
    NoBox,
    Perturbed,
    Price,
    Reply,
    Request,
    Sampling,
    Usage,
)

T = TypeVar("T", bound=BaseModel)
_FIRST_FAILURES = 3
_FENCE = re.compile(r"```(?:json)?\s*(.*?)```", re.S)


@dataclass(frozen=True, slots=True)
class LLM:
    """A vision LLM behind any OpenAI-compatible endpoint.

    price_input, price_output: USD per million tokens. structured: how JSON is asked for; "auto" takes
    the strictest that the server has. budget_usd: the stage stops before it would have spent more.
    """

    model: str
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    price_input: float = 0.0
    price_output: float = 0.0
    temperature: float = 0.0
    seed: int | None = 0
    max_tokens: int = 2048
    structured: str = "auto"
    concurrency: int = 8
    attempts: int = 8
    timeout: float = 300.0
    patience: float = 300.0
    first_patience: float = 20.0
    token_limit: str | None = None
    omit: tuple[str, ...] | None = None
    image_format: str = "jpeg"
    budget_usd: float | None = None

    def __post_init__(self) -> None:
        if self.structured not in ("auto", "schema", "json", "none"):
            raise UserError(f"llm.structured={self.structured!r}: choose from auto, schema, json, none")

    def identity(self) -> Mapping[str, Json]:
        """What determines an answer besides the question and its texts."""
        return {
            "model": self.model,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "image_format": self.image_format,
        }

    def engine(self) -> OpenAI:
        """The same client that asks models in the main job: retries, pace, budget."""
        spec = ModelSpec(
            name=self.model,
            checkpoint=self.model,
            dialect=_NoBoxes(),
            frame=OriginalPixels(),
            prompts={},
            price=Price(self.price_input, self.price_output),
        )
        return OpenAI(
            spec=spec,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            concurrency=self.concurrency,
            max_concurrency=max(self.concurrency, 64),
            attempts=self.attempts,
            timeout=self.timeout,
            patience=self.patience,
            first_patience=self.first_patience,
            token_limit=self.token_limit,
            omit=self.omit,
            image_format=self.image_format,
            budget_usd=self.budget_usd,
        )


@dataclass(frozen=True, slots=True)
class _NoBoxes:
    """Answers here are read as JSON, not as boxes."""

    def read(self, text: str) -> tuple[Quad, ...] | NoBox:
        return NoBox("unparsable", "not a question for a box")


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """texts: the system message and the turn after an answer that can't be used.

    fault: why a well-formed answer means nothing for this scene, "" if it does.
    """

    key: str
    text: str
    texts: Stage
    image: ImageRef
    form: type[T]
    fault: Callable[[T], str]


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """value: None where the answer was refused, with the problem, or where none came, with the error."""

    key: str
    value: T | None
    problem: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1
    text: str = ""


def ask(llm: LLM, questions: Iterable[Question[T]]) -> Iterator[Answer[T]]:
    """Each question once, and once more with what was wrong where its answer can't be used.

    Raises ModelUnavailable or BudgetReached; answers yielded before are good.
    """
    talk = _Talk[T](llm)
    yield from talk.run(iter(questions))


class _Talk(Generic[T]):
    """One pass over a stage's questions. Repairs go in between new questions."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm
        self.formats = ["schema", "json", "none"] if llm.structured == "auto" else [llm.structured]
        self.open: dict[str, tuple[Question[T], Usage]] = {}
        self.repairs: deque[Request] = deque()

    def run(self, questions: Iterator[Question[T]]) -> Iterator[Answer[T]]:
        engine = self.llm.engine()
        yield from self._probe(engine, questions)
        yield from self._pass(engine, self._requests(questions))
        while self.repairs:
            waiting, self.repairs = self.repairs, deque()
            yield from self._pass(engine, iter(waiting))

    def _pass(self, engine: OpenAI, requests: Iterator[Request]) -> Iterator[Answer[T]]:
        for request, reply in engine.answer(requests):
            answer = self._settle(request, reply)
            if answer is not None:
                yield answer

    def _probe(self, engine: OpenAI, questions: Iterator[Question[T]]) -> Iterator[Answer[T]]:
        """The first question that is answered finds out which form of structured output the server takes.

        One whose image is gone, or that is refused in every form, says nothing of the others.
        """
        forms, refused = self.formats, 0
        for question in questions:
            self.formats = list(forms)
            request, reply = self._alone(engine, question)
            answer = self._settle(request, reply)
            if answer is not None:
                yield answer
            if reply.finish != "error":
                return
            refused += reply.attempts > 0
            if refused >= _FIRST_FAILURES:
                raise ModelUnavailable(f"llm.model={self.llm.model} can't be asked: {reply.error}")

    def _alone(self, engine: OpenAI, question: Question[T]) -> tuple[Request, Reply]:
        """One question in the strictest form that isn't refused."""
        while True:
            (pair,) = engine.answer([self._request(question)])
            reply = pair[1]
            refused = reply.finish == "error" and re.match(r"HTTP 4(00|15|22)\b", reply.error)
            if not refused or len(self.formats) == 1:
                return pair
            self.formats.pop(0)

    def _requests(self, questions: Iterator[Question[T]]) -> Iterator[Request]:
        for question in questions:
            while self.repairs:
                yield self.repairs.popleft()
            yield self._request(question)

    def _request(self, question: Question[T]) -> Request:
        self.open[question.key] = (question, Usage())
        user = Message("user", (question.image, question.text))
        system = (Message("system", (question.texts.system,)),) if question.texts.system else ()
        return self._ask((*system, user), question, repeat=0)

    def _ask(self, messages: tuple[Message, ...], question: Question[T], repeat: int) -> Request:
        example = Example(question.key, question.image, question.text, Box(0, 0, 1, 1))
        sampling = Sampling(
            temperature=self.llm.temperature, seed=self.llm.seed, max_new_tokens=self.llm.max_tokens
        )
        return Request(
            perturbed=Perturbed(example, example, "unchanged"),
            condition="curate",
            draw=0,
            messages=messages,
            image=question.image,
            sampling=sampling,
            repeat=repeat,
            options={"extra_body": response_format(self.formats[0], question.form)},
        )

    def _settle(self, request: Request, reply: Reply) -> Answer[T] | None:
        """The answer, or None where a repair was queued."""
        key = request.perturbed.example.id
        question, before = self.open[key]
        usage = total(before, reply.usage)
        attempts = request.repeat + 1
        if reply.finish == "error":
            return Answer(key, None, error=reply.error, usage=usage, attempts=attempts)
        value, problem = read(reply, question)
        if value is None and request.repeat == 0:
            self.open[key] = (question, usage)
            said = question.texts.repair.replace("{problem}", problem)
            turns = (Message("assistant", (reply.text,)), Message("user", (said,)))
            self.repairs.append(self._ask((*request.messages, *turns), question, repeat=1))
            return None
        del self.open[key]
        return Answer(key, value, problem, usage=usage, attempts=attempts, text=reply.text)


def read(reply: Reply, question: Question[T]) -> tuple[T | None, str]:
    """The checked answer, or what is wrong with it."""
    if reply.finish == "length":
        return None, "it was cut short before its end"
    if reply.finish == "refused":
        return None, f"the model refuses ({reply.text[:80]})"
    tree = json_object(reply.text)
    if tree is None:
        return None, "it holds no JSON object"
    try:
        value = question.form.model_validate(tree)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        return None, f"{where or 'the object'}: {problem['msg']}"
    fault = question.fault(value)
    return (None, fault) if fault else (value, "")


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object of an answer: bare, in a fence, or after a thinking trace."""
    text = text.rsplit("</think>", 1)[-1].strip()
    inner = text[text.find("{") : text.rfind("}") + 1]
    for candidate in [text, *reversed(_FENCE.findall(text)), inner]:
        try:
            tree = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(tree, dict):
            return tree
    return None


def response_format(kind: str, form: type[BaseModel]) -> Mapping[str, Json]:
    """The extra field of the call that asks for JSON, for the form of the answer."""
    if kind == "none":
        return {}
    if kind == "json":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": form.__name__, "schema": form.model_json_schema(), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def total(a: Usage, b: Usage) -> Usage:
    """Both together."""
    return Usage(a.input_tokens + b.input_tokens, a.output_tokens + b.output_tokens, a.usd + b.usd)
