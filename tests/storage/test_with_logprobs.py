"""Answers stored before anybody asked for log-probabilities: kept, and asked again only where needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refadv_ablate.errors import FieldError
from refadv_ablate.storage.answers import MemoryStore, Store
from refadv_ablate.storage.records import (
    reply_from_json,
    reply_to_json,
)
from refadv_ablate.storage.with_logprobs import WithLogprobs, asked_again
from refadv_ablate.types import Confidence, Reply, TokenLogprobs

KEY = "a" * 64
GIVEN = TokenLogprobs(0, (1, 2), (-0.5, 0.0))


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else Store(str(tmp_path / "store.db"))
    yield made
    made.close()


def test_an_answer_with_them_serves_every_run(store):
    with_them = WithLogprobs(store)
    with_them.put_many([(KEY, Reply("x", logprobs=GIVEN))])
    assert with_them.get_many([KEY])[KEY].logprobs == GIVEN == store.get_many([KEY])[KEY].logprobs
    assert store.get_many([asked_again(KEY)]) == {}


def test_a_bare_answer_stays_and_the_later_one_lies_beside_it(store):
    store.put_many([(KEY, Reply("first"))])
    with_them = WithLogprobs(store)
    assert with_them.get_many([KEY]) == {}, "it has to be asked again"
    with_them.put_many([(KEY, Reply("second", logprobs=GIVEN))])
    assert store.get_many([KEY])[KEY] == Reply("first")
    assert with_them.get_many([KEY])[KEY] == Reply("second", logprobs=GIVEN)


def test_an_answer_that_can_have_none_is_not_asked_again_and_again(store):
    with_them = WithLogprobs(store)
    with_them.put_many([(KEY, Reply("x")), ("b" * 64, Reply("", "error", error="down"))])
    assert with_them.get_many([KEY, "b" * 64])[KEY].logprobs == TokenLogprobs(lacks="the engine gives none")
    assert "b" * 64 not in with_them.get_many(["b" * 64])


def test_round_trip_and_what_older_versions_wrote():
    full = Reply("x", logprobs=GIVEN, confidence=Confidence(0.25))
    assert reply_from_json(reply_to_json(full)) == full
    lacking = replace(full, logprobs=TokenLogprobs(lacks="refused"))
    assert reply_from_json(reply_to_json(lacking)) == lacking
    assert {"logprobs", "confidence"}.isdisjoint(reply_to_json(Reply("x")))


@pytest.mark.parametrize(
    "told",
    [
        {"logprobs": {"chars": [1], "values": []}},
        {"logprobs": {"chars": [1.5], "values": [-1.0]}},
        {"logprobs": {"chars": [1], "values": ["x"]}},
        {"logprobs": [1]},
        {"confidence": {"value": 1.5}},
        {"confidence": {}},
        {"confidence": 0.5},
    ],
)
def test_damaged_ones_are_named(told):
    with pytest.raises(FieldError, match=r"logprobs|confidence|values"):
        reply_from_json({**reply_to_json(Reply("x")), **told})
