"""The server engine against a local server that answers, dawdles, fails and dies."""

from __future__ import annotations

import base64
import io
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from refadv_ablate.errors import BudgetReached, ImageUnreadable, ModelUnavailable, UserError
from refadv_ablate.models.openai import OpenAI
from refadv_ablate.models.servers.pace import Limit
from refadv_ablate.models.servers.retrying import Backoff, Failure, seconds_to_wait
from refadv_ablate.running.ask import Keys
from refadv_ablate.types import Message, Price, Reply, Request, Sampling
from tests.models.asking import Drawn, ask, spec
from tests.models.server import BOX, Drop, Fail, Garbage, Raw, Say, Server
from tests.models.test_completions import NONSENSE


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def engine(server: Server, spec_more: dict[str, Any] | None = None, **more: Any) -> OpenAI:
    more = {"backoff_base": 0.01, "backoff_cap": 0.05, "base_url": server.url, **more}
    return OpenAI(spec=spec(**(spec_more or {})), **more)


def answers(model: OpenAI, *requests: Request) -> dict[str, Reply]:
    return {request.id: reply for request, reply in model.answer(requests)}


def test_what_is_sent_is_what_the_request_says() -> None:
    asked = ask(
        0, sampling=Sampling(0.5, 0.9, 7, 33), stop=["\n\n"], template_options={"enable_thinking": False}
    )
    system = Request(
        **{
            **{name: getattr(asked, name) for name in asked.__slots__},
            "messages": (Message("system", ("Be brief.",)), Message("user", ("first text", asked.image))),
        }
    )
    with Server() as server:
        model = engine(server, {"template_options": {"add_vision_id": True}}, extra_body={"top_k": 1})
        reply = answers(model, system)[asked.id]
    body = server.bodies[0]
    url = body["messages"][1]["content"][1]["image_url"]["url"]
    assert (reply.text, reply.finish) == (BOX, "stop")
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["messages"][1]["content"][0] == {"type": "text", "text": "first text"}
    assert (body["temperature"], body["top_p"], body["seed"], body["max_tokens"]) == (0.5, 0.9, 7, 33)
    assert (body["stop"], body["top_k"], body["model"]) == (["\n\n"], 1, "some/model")
    assert body["chat_template_kwargs"] == {"add_vision_id": True, "enable_thinking": False}
    head, data = url.split(",", 1)
    sent = Image.open(io.BytesIO(base64.b64decode(data)))
    assert head == "data:image/png;base64"
    assert sent.tobytes() == asked.image.load().tobytes()


def test_options_of_the_model_yaml_and_of_the_request() -> None:
    told = {"served_name": "m", "token_limit": "max_completion_tokens", "omit": ["temperature"]}
    with Server() as server:
        model = engine(server, {"engine_options": {"openai": told}})
        answers(model, ask(0, image_format="jpeg", image_quality=95))
    body = server.bodies[0]
    assert (body["model"], body["max_completion_tokens"]) == ("m", 16)
    assert not {"temperature", "max_tokens"} & set(body)
    assert body["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/jpeg;base64,")


def test_replies_carry_reasoning_finish_and_cost() -> None:
    said = [
        Say("cut", finish="length"),
        Say(None, reasoning="long thought", finish="length"),
        Say("[1,2,3,4]", reasoning="thought", reasoning_field="reasoning"),
        Say("", finish="content_filter"),
    ]
    with Server(lambda n, body: said[n]) as server:
        model = engine(server, {"price": Price(10.0, 100.0)}, concurrency=1)
        got = [reply for _, reply in model.answer(ask(n) for n in range(4))]
    assert [(r.text, r.finish, r.reasoning) for r in got] == [
        ("cut", "length", ""),
        ("", "length", "long thought"),
        ("[1,2,3,4]", "stop", "thought"),
        ("", "refused", ""),
    ]
    assert (got[0].usage.input_tokens, got[0].usage.output_tokens) == (100, 20)
    assert got[0].usage.usd == pytest.approx((100 * 10 + 20 * 100) / 1e6)


def test_every_request_is_answered_once_through_429_500_drops_and_garbage() -> None:
    wrong = [Fail(429, headers={"retry-after": "0.02"}), Fail(500), Drop(), Garbage(), Fail(503)]
    dice = random.Random(3)

    def script(n: int, body: dict[str, Any]) -> Any:
        return dice.choice(wrong) if dice.random() < 0.4 else Say(body["messages"][0]["content"][1]["text"])

    with Server(script) as server:
        model = engine(server, concurrency=8, attempts=30)
        got = list(model.answer(ask(n) for n in range(60)))
    assert sorted(request.id for request, _ in got) == sorted(ask(n).id for n in range(60))
    assert all(r.finish == "stop" and q.messages[0].parts[1] == r.text for q, r in got)
    assert model.retries > 10
    assert max(r.attempts for _, r in got) > 1


def test_retry_after_holds_everyone_back() -> None:
    times: list[float] = []

    def script(n: int, body: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        return Fail(429, headers={"retry-after": "1"}) if n == 0 else Say()

    with Server(script) as server:
        model = engine(server, concurrency=1)
        got = answers(model, *(ask(n) for n in range(3)))
    assert [r.finish for r in got.values()] == ["stop"] * 3
    assert times[1] - times[0] > 0.9


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:02:00 GMT"}, 120.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_seconds_and_dates(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_wait(headers, datetime(2026, 11, 30, 12, tzinfo=UTC)) == seconds


def test_backoff_has_full_jitter_and_never_undercuts_the_server() -> None:
    rng, backoff = random.Random(0), Backoff(0.5, 60, 600)
    plain = [backoff.delay(Failure("retry", ""), 4, rng) for _ in range(500)]
    assert 0 <= min(plain) < 0.5 and 7 < max(plain) <= 8
    asked = [backoff.delay(Failure("retry", "", wait=90), 1, rng) for _ in range(50)]
    assert min(asked) >= 90 and max(asked) < 91
    assert backoff.delay(Failure("retry", "", wait=86_400), 1, rng) < 602


def test_one_request_too_long_is_that_examples_error_and_asked_once() -> None:
    def script(n: int, body: dict[str, Any]) -> Any:
        bad = "number 3?" in body["messages"][0]["content"][1]["text"]
        return Fail(400, "context length exceeded: 99999 tokens") if bad else Say()

    with Server(script) as server:
        got = answers(engine(server), *(ask(n) for n in range(10)))
    assert [key for key, r in got.items() if r.finish == "error"] == ["3|original|0"]
    assert "context length exceeded" in got["3|original|0"].error
    assert server.calls == 10


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Fail(401, "bad key"), "401"),
        (Fail(404, "no such model"), "no such model"),
        (Fail(429, "out of money", code="insufficient_quota"), "out of money"),
    ],
)
def test_what_no_retry_mends_ends_the_run_at_once(failure: Fail, words: str) -> None:
    with Server(lambda n, body: failure) as server, pytest.raises(ModelUnavailable, match=words):
        answers(engine(server, concurrency=1), *(ask(n) for n in range(50)))
    assert server.calls == 1


@pytest.mark.parametrize("failure", [Fail(500, "CUDA error"), Fail(400, "unknown field top_p")])
def test_a_run_whose_first_answers_all_fail_aborts(failure: Fail) -> None:
    with Server(lambda n, body: failure) as server:
        model = engine(server, concurrency=2, attempts=2, first_failures=4)
        with pytest.raises(ModelUnavailable, match=r"the first \d+ requests .* nothing was scored"):
            for _, reply in model.answer(ask(n) for n in range(1000)):
                assert reply.finish == "error"
    assert server.calls < 60


def test_no_server_at_all_is_one_sentence() -> None:
    with Server() as server:
        gone = server.url
    model = OpenAI(spec=spec(), base_url=gone, first_patience=0.5, backoff_base=0.01)
    with pytest.raises(ModelUnavailable, match=f"no server answers at {gone}"):
        list(model.answer([ask(0)]))


def test_a_server_of_another_kind_is_not_called_gone() -> None:
    with Server(lambda n, body: Garbage()) as server:
        model = engine(server, first_patience=0.5, concurrency=1)
        with pytest.raises(ModelUnavailable, match="speaks no chat completions"):
            list(model.answer([ask(0)]))


def test_a_server_that_dies_for_a_while_loses_nothing() -> None:
    with Server() as server:

        def requests() -> Iterator[Request]:
            for n in range(80):
                if n == 30:
                    server.stop()
                    threading.Timer(1.0, server.start).start()
                yield ask(n)

        got = list(engine(server, concurrency=4, attempts=3).answer(requests()))
    assert len({request.id for request, _ in got}) == len(got) == 80
    assert {r.finish for _, r in got} == {"stop"}


def test_a_server_that_stays_away_ends_the_run_with_what_was_answered() -> None:
    with Server() as server:

        def requests() -> Iterator[Request]:
            for n in range(80):
                if n == 40:
                    server.stop()
                yield ask(n)

        got = []
        with pytest.raises(ModelUnavailable, match="answers so far are kept: run the same command"):
            for pair in engine(server, concurrency=4, patience=1.0).answer(requests()):
                got.append(pair)
    assert len(got) >= 20
    assert {r.finish for _, r in got} == {"stop"}


def test_a_call_that_hangs_is_asked_again_and_a_request_has_a_deadline() -> None:
    with Server(lambda n, body: Say(latency=5.0 if n == 0 else 0)) as server:
        assert answers(engine(server, timeout=0.3), ask(0))[ask(0).id].attempts == 2
    with Server(lambda n, body: Say(latency=5.0)) as server:
        late = answers(engine(server, deadline=0.3), ask(0))[ask(0).id]
    assert (late.finish, late.text) == ("error", "") and "deadline" in late.error


def test_the_budget_stops_before_it_is_exceeded_and_keeps_the_answers() -> None:
    price = {"price": Price(input=1.0, output=10.0)}  # an answer: 100 + 200 = 300e-6; worst: 110 + 160
    with Server(lambda n, body: Say(output_tokens=16)) as server:
        model = engine(server, price, budget_usd=0.01, first_input_tokens=200, concurrency=4)
        got = []
        with pytest.raises(BudgetReached, match=r"budget_usd=0\.01"):
            for pair in model.answer(ask(n) for n in range(1000)):
                got.append(pair)
        spent = sum(r.usage.usd for _, r in got)
        assert server.calls == len(got)
        assert 0.009 < spent <= 0.01
        with pytest.raises(BudgetReached):  # and the same engine spends nothing more
            list(model.answer([ask(0)]))
        assert server.calls == len(got)
    with pytest.raises(UserError, match="no price"):
        engine(server, budget_usd=1.0)


def test_requests_are_pulled_as_they_are_needed() -> None:
    pulled = 0

    def requests() -> Iterator[Request]:
        nonlocal pulled
        for n in range(10_000):
            pulled += 1
            yield ask(n)

    with Server() as server:
        model = engine(server, concurrency=4, max_concurrency=4)
        stream = model.answer(requests())
        for done, _ in enumerate(stream, 1):
            assert pulled - done <= 4 + 8
            if done == 50:
                break
        stream.close()
    assert pulled < 70
    assert not [t for t in threading.enumerate() if t.name == "requests"]


def test_concurrency_grows_with_throughput_and_stops_where_calls_queue() -> None:
    limit, slots = Limit(4, 128), 40
    for _ in range(4000):
        limit.answered(0.2 * max(1.0, limit.value / slots))
    assert 36 <= limit.value <= 46
    limit.refused()
    limit.refused()  # many refusals of one round halve it once
    assert 18 <= limit.value <= 23


def test_an_image_is_encoded_once_for_its_neighbours_and_a_broken_one_is_an_error() -> None:
    loads: list[str] = []

    class Counted(Drawn):
        def load(self) -> Image.Image:
            loads.append(self.key)
            if self.key == "broken":
                raise ImageUnreadable("broken.jpg is truncated")
            return super().load()

    with Server() as server:
        shared = [ask(n, image=Counted("a" if n < 5 else "b")) for n in range(10)]
        got = answers(engine(server), *shared, ask(10, image=Counted("broken")))
    assert sorted(loads) == ["a", "b", "broken"]
    assert [r.error for r in got.values() if r.finish == "error"] == ["broken.jpg is truncated"]


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    far = OpenAI(spec=spec(), base_url="https://example.invalid/v1", api_key_env="SOME_KEY")
    with pytest.raises(UserError, match="environment variable SOME_KEY"):
        list(far.answer([ask(0)]))
    assert list(far.answer([])) == []  # nothing to ask: no key needed
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    with Server() as server:
        model = engine(server, api_key_env="SOME_KEY")
        answers(model, ask(0))
    assert server.headers[0]["Authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in repr(model) + repr(model.identity()) + repr(vars(model))
    assert server.url not in repr(model.identity())


def test_a_request_that_a_gateway_forbids_is_missing_and_the_others_go_on() -> None:
    def script(number: int, body: dict[str, Any]) -> Any:
        return Fail(403, "input was flagged") if "number 3?" in str(body["messages"]) else Say(BOX)

    with Server(script) as server:
        got = answers(engine(server, concurrency=1), *(ask(n) for n in range(6)))
    assert [key for key, reply in got.items() if reply.finish == "error"] == ["3|original|0"]


def test_two_checkpoints_under_one_served_name_keep_their_answers_apart() -> None:
    small, large = (
        OpenAI(spec=spec(name), base_url="http://h:1/v1", served_name="default").identity()
        for name in ("a/3b", "a/7b")
    )
    assert small != large


def test_half_a_surrogate_pair_is_asked_and_kept() -> None:
    request = ask(0, text="the cup \ud83d")
    assert Keys({})(request) != Keys({})(ask(0, text="the cup ?"))
    with Server() as server:
        got = answers(engine(server), request)
    assert [r.finish for r in got.values()] == ["stop"]
    assert server.bodies[0]["messages"][0]["content"][1]["text"] == "Where is the cup ??"


def test_a_drawn_answer_asked_again_has_a_seed_of_its_own() -> None:
    def sent(temperature: float, repeat: int) -> Any:
        with Server() as server:
            asked = replace(ask(0, sampling=Sampling(temperature, 1.0, 7)), repeat=repeat)
            answers(engine(server), asked)
        return server.bodies[0]["seed"]

    assert (sent(0.0, 2), sent(1.0, 0), sent(1.0, 2)) == (7, 7, 9)


@pytest.mark.parametrize("status", [401, 400])
def test_a_server_that_repeats_the_key_does_not_put_it_in_an_error(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    echo = Server(lambda n, body: Fail(status, "wrong key sk-very-secret"))
    with echo as server, pytest.raises(ModelUnavailable) as caught:
        for _, reply in engine(server, first_failures=4).answer(ask(n) for n in range(50)):
            assert "sk-very-secret" not in reply.error
    assert "***" in str(caught.value) and "sk-very-secret" not in str(caught.value)


def test_a_rest_until_a_date_is_honoured_like_seconds() -> None:
    when = datetime.now(UTC) + timedelta(seconds=30)
    wait = seconds_to_wait({"retry-after": when.strftime("%a, %d %b %Y %H:%M:%S GMT")})
    assert wait is not None and 28 <= wait <= 30


def test_open_weights_are_sent_to_nobody_who_was_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-vendor")
    with pytest.raises(UserError, match=r"needs the address of a server for some: give backend\.base_url="):
        list(OpenAI(spec=spec()).answer([ask(0)]))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert OpenAI(spec=spec()).url == "http://127.0.0.1:9/v1"


def test_an_address_without_its_scheme_is_told_at_once() -> None:
    with pytest.raises(UserError, match=r"needs http:// or https:// before it: http://127\.0\.0\.1:8765/v1"):
        OpenAI(spec=spec(), base_url="127.0.0.1:8765/v1")


def test_one_call_tells_that_no_server_is_there_yet(caplog: pytest.LogCaptureFixture) -> None:
    with Server() as server:
        gone = server.url
    model = OpenAI(spec=spec(), base_url=gone, first_patience=0.5, backoff_base=0.01, concurrency=1)
    with pytest.raises(ModelUnavailable, match="no server answers"):
        list(model.answer(ask(n) for n in range(20)))
    (told,) = [record.getMessage() for record in caplog.records if "waiting" in record.getMessage()]
    assert "the server doesn't answer (no connection" in told and "waiting up to 0.5 s for it" in told
    assert model.retries < 4


@pytest.mark.slow
def test_a_real_server_and_the_local_engine_say_the_same(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    """`transformers serve` with the same tiny checkpoint: messages, image and limits arrive as meant."""
    pytest.importorskip("fastapi", reason="transformers serve needs its `serving` extra")
    pytest.importorskip("uvicorn", reason="transformers serve needs its `serving` extra")
    from refadv_ablate.models.transformers import Transformers

    folder = checkpoint("qwen3_vl")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys; from transformers.cli.transformers import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "serve", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    log = (tmp_path / "serve.log").open("w")
    with log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            requests = [ask(n, sampling=Sampling(max_new_tokens=8)) for n in range(4)]
            model = OpenAI(spec=spec(str(folder)), base_url=f"http://127.0.0.1:{port}/v1", first_patience=90)
            served = answers(model, *requests)
        finally:
            process.terminate()
    local = answers(Transformers(spec=spec(str(folder))), *requests)  # type: ignore[arg-type]
    assert {key: (r.text, r.finish) for key, r in served.items()} == {
        key: (r.text, r.finish) for key, r in local.items()
    }
    assert {r.usage.input_tokens for r in served.values()} == {r.usage.input_tokens for r in local.values()}


@pytest.mark.parametrize("body", NONSENSE, ids=lambda body: str(body)[:60])
def test_one_body_that_cannot_be_read_is_that_examples_alone(body: Any) -> None:
    def script(n: int, sent: dict[str, Any]) -> Any:
        return Raw(body) if "number 2?" in str(sent["messages"]) else Say()

    with Server(script) as server:
        got = answers(engine(server, concurrency=2, attempts=2), *(ask(n) for n in range(5)))
    assert [key for key, reply in got.items() if reply.finish == "error"] == ["2|original|0"]
    assert "could not be read" in got["2|original|0"].error
    assert {reply.text for key, reply in got.items() if key != "2|original|0"} == {BOX}


@pytest.mark.parametrize(
    "bad",
    [
        Say(finish="abort"),
        Say(finish="error"),
        Raw({"error": {"message": "engine is busy", "code": 500}}),
        Raw({"choices": [{"finish_reason": "stop", "message": {}}]}),
        Raw([[]] * 3),
    ],
)
def test_a_200_without_an_answer_is_asked_again(bad: Any) -> None:
    with Server(lambda n, body: bad if n < 2 else Say()) as server:
        reply = answers(engine(server), ask(0))[ask(0).id]
    assert (reply.text, reply.finish, reply.attempts) == (BOX, "stop", 3)


def test_json_under_another_content_type_is_read() -> None:
    body = {"choices": [{"message": {"content": "it"}, "finish_reason": "stop"}]}
    with Server(lambda n, sent: Raw(body, "text/plain")) as server:
        assert answers(engine(server), ask(0))[ask(0).id].text == "it"


@pytest.mark.parametrize("failure", [Fail(500, "CUDA error"), Say(finish="abort"), Drop()])
@pytest.mark.parametrize("bad", [{4, 5}, {0, 1}, {2}])
def test_requests_that_always_fail_never_stop_the_others(failure: Any, bad: set[int]) -> None:
    def script(n: int, body: dict[str, Any]) -> Any:
        return failure if any(f"number {b}?" in str(body["messages"]) for b in bad) else Say()

    with Server(script) as server:
        model = engine(server, concurrency=2, attempts=3, patience=0.2, first_patience=5.0)
        got = answers(model, *(ask(n) for n in range(6)))
    assert {int(key[0]) for key, reply in got.items() if reply.finish == "error"} == bad
    assert len(got) == 6


def test_a_server_that_fails_on_all_it_answered_before_is_gone() -> None:
    with Server(lambda n, body: Say() if n < 12 else Fail(500, "engine is dead")) as server:
        got = []
        with pytest.raises(ModelUnavailable, match=r"engine is dead.*answers so far are kept"):
            for pair in engine(server, concurrency=4, patience=0.3).answer(ask(n) for n in range(60)):
                got.append(pair)
    assert {reply.finish for _, reply in got} == {"stop"} and len(got) == 12


def test_a_rest_of_a_day_is_cut_and_said(caplog: pytest.LogCaptureFixture) -> None:
    far = Fail(429, "slow down", headers={"retry-after": "86400"})
    with Server(lambda n, body: far if n in (2, 3) else Say()) as server:
        model = engine(server, concurrency=2, longest_rest=0.05)
        got = answers(model, *(ask(n) for n in range(12)))
    assert {reply.finish for reply in got.values()} == {"stop"}
    assert "asks for a rest of 86400 s; it is asked again after 0.05 s" in caplog.text


def test_a_server_that_refuses_every_call_for_long_ends_the_run_with_what_was_answered() -> None:
    far = Fail(429, "daily limit", headers={"retry-after": "86400"})
    with Server(lambda n, body: Say() if n < 4 else far) as server:
        model, got = engine(server, concurrency=2, longest_rest=0.05, patience=0.3), []
        with pytest.raises(ModelUnavailable, match=r"daily limit \(Retry-After: 86400 s\).*are kept"):
            for pair in model.answer(ask(n) for n in range(40)):
                got.append(pair)
    assert len(got) == 4


def test_answers_that_wait_to_be_handed_over_are_when_the_run_is_stopped() -> None:
    with Server() as server:
        stream = engine(server, concurrency=4).answer(ask(n) for n in range(4))
        next(stream)
        while server.calls < 4 or server.busy:
            time.sleep(0.01)
        time.sleep(0.1)
        rescued = [stream.throw(KeyboardInterrupt())]
        with pytest.raises(KeyboardInterrupt):
            for pair in stream:
                rescued.append(pair)
    assert len(rescued) == 3
