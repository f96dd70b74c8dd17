"""The pipeline: every condition of every example, in the data's order, whatever happens on the way."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from perturbations import BagOfWords, Fixed, Repeat
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.dialects import PlainBoxes
from refadv_ablate.parsing.frames import OriginalPixels
from refadv_ablate.prompting import prompts
from refadv_ablate.running import perturbed_texts as texts
from refadv_ablate.running.plan import Plan
from refadv_ablate.running.reading import Reader
from refadv_ablate.running.run import run
from refadv_ablate.storage.answers import MemoryStore
from refadv_ablate.storage.records import perturbed_to_json, record_to_json
from refadv_ablate.types import Dialect, ModelSpec, Reply
from tests.scripted import Few, Scripted, example, gold


class Silent:
    def __init__(self):
        self.warnings, self.replies = [], 0

    def reply(self, *_):
        self.replies += 1

    def warn(self, text):
        self.warnings.append(text)


@pytest.fixture
def make(tmp_path):
    prompt = tmp_path / "ask.txt"
    prompt.write_text("Locate {expression}.", encoding="utf-8")

    def job(model, data=None, operators=None, **more):
        data = data or Few(12, per_image=1)
        operators = operators or {"bow": BagOfWords(n_shuffles=2), "fixed": Fixed()}

        def rows(label, operator):
            return lambda: map(perturbed_to_json, texts.perturb_all(data, label, operator, 0))

        dialect: Dialect = PlainBoxes()
        return Plan(
            data=data,
            spec=ModelSpec("m", "c", dialect, OriginalPixels(), {"direct": str(prompt)}),
            model=model,
            style=prompts.Style("direct", file=str(prompt)),
            texts={label: rows(label, operator) for label, operator in operators.items()},
            draws={label: operator.draws for label, operator in operators.items()},
            repeats=frozenset(label for label, o in operators.items() if o.repeat),
            **more,
        )

    return job


def lines(job, store=None) -> Iterator[dict]:
    return [
        record_to_json(r)
        for r in run(job, store if store is not None else MemoryStore(), Reader(job, Silent()))
    ]


def test_every_condition_in_the_order_of_the_data(make):
    found = lines(make(Scripted(gold)))
    assert [(r["example_id"], r["condition"], r["draw"]) for r in found[:8]] == [
        (f"e{i}", *c) for i in range(2) for c in [("original", 0), ("bow", 0), ("bow", 1), ("fixed", 0)]
    ]
    assert len(found) == 12 * 4
    assert all(r["outcome"] == "box" and r["iou"] == pytest.approx(1) for r in found)
    assert all(r["original_expression"] == example(int(r["example_id"][1:])).expression for r in found)


def test_the_same_fixed_text_on_one_image_is_asked_once(make):
    model = Scripted(gold)
    lines(make(model, data=Few(12, per_image=2), operators={"fixed": Fixed()}))
    assert len(model.asked) == 12 + 6, "two examples share each image"


def test_a_no_op_arm_is_asked_again_past_the_store(make):
    model = Scripted(gold)
    lines(make(model, operators={"repeat": Repeat()}))
    assert len(model.asked) == 24


@pytest.mark.parametrize("durable", [True, False])
def test_batches_and_durability_change_nothing(make, durable, monkeypatch):
    expected = lines(make(Scripted(gold)))
    monkeypatch.setattr("refadv_ablate.running.run.CHUNK", 5)
    assert lines(make(Scripted(gold, durable=durable), durable=durable)) == expected


@pytest.mark.parametrize("dies_after", [0, 1, 7, 23])
def test_a_run_that_was_stopped_ends_with_the_numbers_of_one_that_was_not(make, dies_after):
    expected = lines(make(Scripted(gold)))
    store, first = MemoryStore(), Scripted(gold, dies_after=dies_after)
    with suppress(KeyboardInterrupt):
        lines(make(first), store)
    second = Scripted(gold)
    assert lines(make(second), store) == expected
    assert len(first.asked) + len(second.asked) == len(store.replies), "nothing asked twice, nothing lost"


def test_a_server_error_is_missing_and_never_wrong(make):
    def script(request):
        return Reply("", "error", error="HTTP 500") if request.condition == "bow" else gold(request)

    found = [r for r in lines(make(Scripted(script))) if r["condition"] == "bow"]
    assert {(r["outcome"], r["iou"], r["reason"]) for r in found} == {("missing", None, "HTTP 500")}


def test_an_answer_without_a_box_scores_zero_and_says_why(make):
    found = lines(make(Scripted(lambda r: Reply("It is the one on the left."))))
    assert {(r["outcome"], r["iou"]) for r in found} <= {
        ("unparsable", 0.0),
        ("refused", 0.0),
        ("empty", 0.0),
    }
    assert all(r["reason"] for r in found)


def test_a_retry_asks_once_more_with_the_conversation_and_counts(make):
    def script(request):
        return (
            gold(request)
            if len(request.messages) > 1
            else Reply("no idea, sorry for that", usage=gold(request).usage)
        )

    model = Scripted(script)
    found = lines(make(model, operators={"bow": BagOfWords()}, retry=True))
    assert all(r["outcome"] == "box" and "retried" in r["notes"] for r in found)
    assert len(model.asked) == 2 * 24
    assert [m.role for m in model.asked[-1].messages] == ["user", "assistant", "user"]
    assert (
        lines(
            make(Scripted(script, durable=False), operators={"bow": BagOfWords()}, retry=True, durable=False)
        )
        == found
    )


def test_an_example_that_cannot_be_perturbed_is_counted_and_not_asked(make):
    model = Scripted(gold)
    job = make(model, operators={"bow": BagOfWords()})
    refused = [
        replace(p, status="not_perturbable", reason="nothing to shuffle")
        for p in texts.perturb_all(job.data, "bow", BagOfWords(), 0)
    ]
    job = replace(job, texts={"bow": lambda: map(perturbed_to_json, refused)})
    found = [r for r in lines(job) if r["condition"] == "bow"]
    assert {(r["outcome"], r["iou"], r["reason"]) for r in found} == {
        ("not_perturbable", None, "nothing to shuffle")
    }
    assert len(model.asked) == 12


def test_a_perturbed_text_with_a_control_token_is_not_asked(make):
    seen = []

    def answer(request):
        seen.append(str(request.messages))
        return gold(request)

    found = lines(make(Scripted(answer), operators={"fixed": Fixed(text="the one <|im_end|>")}))
    perturbed = [r for r in found if r["condition"] == "fixed"]
    assert {r["outcome"] for r in perturbed} == {"not_perturbable"}
    assert "'<|im_end|>'" in perturbed[0]["reason"]
    assert seen and not any("im_end" in text for text in seen)


def test_limit_takes_the_first_examples(make):
    assert {r["example_id"] for r in lines(make(Scripted(gold), limit=3))} == {"e0", "e1", "e2"}


def test_answers_in_another_frame_warn_after_twenty(make):
    job = make(Scripted(lambda r: Reply("[0.1, 0.2, 0.4, 0.5]")), data=Few(30))
    watch = Silent()
    reader = Reader(job, watch)
    assert len(list(run(job, MemoryStore(), reader))) == 120
    assert any("frame" in text for text in watch.warnings)
    assert all(reader.warnings().values())


def test_a_further_turn_that_never_came_is_missing_and_asked_again(make):
    down = True

    def script(request):
        if request.perturbed.example.id != "e0":
            return gold(request)
        if len(request.messages) == 1:
            return Reply("It is over there.")
        return Reply("", "error", error="HTTP 500") if down else gold(request)

    store = MemoryStore()
    first = [r for r in lines(make(Scripted(script), retry=True), store) if r["example_id"] == "e0"]
    assert {(r["outcome"], r["iou"], r["reason"]) for r in first} == {("missing", None, "HTTP 500")}
    down = False
    again = Scripted(script)
    second = [r for r in lines(make(again, retry=True), store) if r["example_id"] == "e0"]
    assert {r["outcome"] for r in second} == {"box"}
    assert all(len(r.messages) == 3 for r in again.asked), "only the further turns were left"


@pytest.mark.parametrize(
    ("n", "cause"), [(11, "end before the data does"), (13, "were made for other examples")]
)
def test_texts_of_other_examples_are_one_sentence(make, n, cause):
    job = make(Scripted(gold), operators={"fixed": Fixed()})
    rows = list(map(perturbed_to_json, texts.perturb_all(Few(n, per_image=1), "fixed", Fixed(), 0)))
    shifted = replace(job, texts={"fixed": lambda: iter(rows[n - 12 :] if n > 12 else rows)})
    with pytest.raises(UserError, match=f"texts of fixed {cause} .* delete"):
        lines(shifted)
