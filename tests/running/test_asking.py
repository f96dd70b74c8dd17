"""Asking: what determines an answer is in its key, nothing else is, and nothing is asked twice."""

import contextlib
from dataclasses import replace

import pytest

from refadv_ablate.errors import UserError
from refadv_ablate.running.ask import Keys, ask, batched
from refadv_ablate.types import Message, Perturbed, Reply, Request, Sampling, Usage
from tests.scripted import Plain, Scripted, example, gold


def request(index=0, condition="original", text=None, **more):
    e = example(index)
    return Request(
        perturbed=Perturbed(e, e, "unchanged"),
        condition=condition,
        draw=0,
        messages=(Message("user", (e.image, text or f"where is number {index}?")),),
        image=e.image,
        sampling=Sampling(),
        **more,
    )


class Counting(dict):
    def get_many(self, keys):
        return {k: self[k] for k in keys if k in self}

    def put_many(self, items, about):
        self.update(items)


def test_the_key_holds_what_determines_the_answer_and_nothing_else():
    keys = Keys({"checkpoint": "a"})
    base = request()
    same = [replace(base, condition="bow"), replace(base, draw=3), request()]
    assert {keys(r) for r in same} == {keys(base)}
    other = [
        replace(base, messages=(Message("user", (base.image, "where is number 0 ?")),)),
        replace(base, messages=(Message("user", ("where is number 0?", base.image)),)),
        replace(base, messages=(Message("user", (Plain("another.png"), "where is number 0?")),)),
        replace(base, sampling=Sampling(seed=1)),
        replace(base, sampling=Sampling(max_new_tokens=7)),
        replace(base, options={"thinking": True}),
        replace(base, repeat=1),
    ]
    assert len({keys(r) for r in [base, *other]}) == len(other) + 1
    assert Keys({"checkpoint": "b"})(base) != keys(base)


def test_equal_questions_are_asked_once_and_stored_ones_not_at_all():
    keys, store, heard = Keys({}), Counting(), []
    model = Scripted(gold)
    wanted = [(keys(r), r) for r in [request(0), request(0, "bow"), request(1), request(1, text="else?")]]
    assert ask(model, wanted, store, {}, lambda *a: heard.append(a)) == {}
    assert len(model.asked) == 3
    again = Scripted(gold)
    ask(again, wanted, store, {}, lambda *a: heard.append(a))
    assert again.asked == []
    assert all(stored for _, _, stored in heard[-4:])


def test_questions_about_one_image_follow_each_other():
    keys, model = Keys({}), Scripted(gold)
    asked = [request(i, c) for i in (0, 2, 4, 1, 3) for c in ("original", "bow")]
    asked = [replace(r, messages=(Message("user", (r.image, r.id)),)) for r in asked]
    ask(model, [(keys(r), r) for r in asked], Counting(), {}, lambda *a: None)
    assert [r.id.split("|")[0] for r in model.asked] == [f"e{i}" for i in (0, 0, 1, 1, 2, 2, 3, 3, 4, 4)]


def test_a_failure_is_told_and_never_stored():
    keys, store = Keys({}), Counting()
    model = Scripted(lambda r: Reply("", "error", error="HTTP 500") if r.id.startswith("e1") else gold(r))
    wanted = [(keys(r), r) for r in (request(0), request(1), request(2))]
    failures = ask(model, wanted, store, {}, lambda *a: None)
    assert list(failures.values()) == ["HTTP 500"]
    assert len(store) == 2


def test_what_was_answered_before_a_stop_is_kept():
    keys, store = Keys({}), Counting()
    wanted = [(keys(r), r) for r in map(request, range(10))]
    with contextlib.suppress(KeyboardInterrupt):
        ask(Scripted(gold, dies_after=4), wanted, store, {}, lambda *a: None)
    assert len(store) == 4
    rest = Scripted(gold)
    ask(rest, wanted, store, {}, lambda *a: None)
    assert len(rest.asked) == 6


def test_a_reply_of_odd_type_is_that_requests_failure_and_the_others_are_kept():
    keys, store = Keys({}), Counting()
    odd = {"e1": Reply(["a"]), "e3": Reply("x", usage=Usage(0.5, 1)), "e4": Reply("x", finish="abort")}
    model = Scripted(lambda r: odd.get(r.id.split("|")[0]) or gold(r))
    wanted = [(keys(r), r) for r in map(request, range(6))]
    failures = ask(model, wanted, store, {}, lambda *a: None)
    assert set(failures) == {keys(request(i)) for i in (1, 3, 4)}
    assert all("can't be kept" in reason for reason in failures.values())
    assert set(store) == {keys(request(i)) for i in (0, 2, 5)}


class HandsOver(Scripted):
    """Has two more answers in hand whenever it is stopped."""

    def answer(self, requests):
        waiting = list(requests)
        try:
            for request in waiting[:-2]:
                yield request, gold(request)
        except GeneratorExit:
            raise
        except BaseException:
            yield from ((request, gold(request)) for request in waiting[-2:])
            raise


@pytest.mark.parametrize("end", [KeyboardInterrupt(), ValueError("a fault of ours"), UserError("full")])
def test_whatever_ends_the_run_what_was_received_is_stored(end):
    keys, store = Keys({}), Counting()
    wanted = [(keys(r), r) for r in map(request, range(8))]

    def seen(*_):
        if len(store) == 3:
            raise end

    with pytest.raises(type(end)):
        ask(HandsOver(gold), wanted, store, {}, seen)
    assert set(store) == {keys(request(i)) for i in (0, 1, 2, 6, 7)}


def test_batches_are_lazy_and_complete():
    pulled = []
    batches = batched((pulled.append(i) or i for i in range(7)), 3)
    assert next(batches) == [0, 1, 2]
    assert pulled == [0, 1, 2]
    assert list(batches) == [[3, 4, 5], [6]]


def test_what_is_stored_needs_no_memory_and_is_not_asked_again(monkeypatch):
    """Equal questions a long way apart: the first is in the store by then, and forgotten."""
    monkeypatch.setattr("refadv_ablate.running.ask.LOOKUP", 4)
    keys, store, model = Keys({}), Counting(), Scripted(gold)
    apart = [request(0), *(request(i) for i in range(1, 30)), request(0, "bow"), request(7, "bow")]
    heard = []
    assert ask(model, [(keys(r), r) for r in apart], store, {}, lambda *a: heard.append(a)) == {}
    assert len(model.asked) == 30 and len(heard) == 32


def test_what_failed_is_not_asked_twice_in_one_run(monkeypatch):
    monkeypatch.setattr("refadv_ablate.running.ask.LOOKUP", 4)
    keys, model = Keys({}), Scripted(lambda r: Reply("", "error", error="HTTP 500"))
    apart = [request(0), *(request(i) for i in range(1, 12)), request(0, "bow")]
    ask(model, [(keys(r), r) for r in apart], Counting(), {}, lambda *a: None)
    assert len(model.asked) == 12
