"""judge and compose against a scripted writer: good, malformed and adversarial answers."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate.curate.annotation.items import load_items
from refadv_ablate.curate.cli import main
from refadv_ablate.curate.generation.checks import Checks, duplicates
from refadv_ablate.curate.generation.default import Default
from refadv_ablate.curate.generation.llm import json_object
from refadv_ablate.curate.generation.schemas import Composition, Judgement, judgement_fault
from refadv_ablate.curate.generation.sifting import first_fault
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import load_scenes
from tests.chat_server import Failure, chat_server
from tests.curate.writer import after, composition, image, is_judge, judgement, question, write


@pytest.fixture
def fresh(made: Path, tmp_path: Path) -> Path:
    """Scenes alone."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "scenes.jsonl").write_bytes((made / "scenes.jsonl").read_bytes())
    return out


def stage(name: str, out: Path, script: Any, *more: str) -> tuple[int, list[dict[str, Any]]]:
    with chat_server(script) as chat:
        words = [
            f"out={out}",
            "llm=openai",
            "llm.model=scripted",
            f"llm.base_url={chat.url}",
            "llm.concurrency=1",
        ]
        status = main([name, *words, "llm.attempts=2", *more])
    return status, chat.asked


# ── what is asked ───────────────────────────────────────────────────────────────────────────────


def test_the_judge_sees_the_tagged_image_and_a_schema(fresh: Path) -> None:
    status, asked = stage("judge", fresh, write)
    assert status == 0
    assert len(asked) == 3
    sent = base64.b64decode(image(asked[0]).split(",", 1)[1])
    assert sent.startswith(b"\xff\xd8"), "a JPEG"
    form = asked[0]["response_format"]
    assert form["type"] == "json_schema"
    assert set(form["json_schema"]["schema"]["properties"]) == set(judgement())
    rows = Ledger(fresh / "judged.jsonl").rows()
    assert [r["status"] for r in rows] == ["ok"] * 3
    assert all(r["input_tokens"] == 230 and r["attempts"] == 1 for r in rows)


def test_each_member_of_a_pair_becomes_a_target_with_its_own_phrases(fresh: Path) -> None:
    stage("judge", fresh, write)
    status, asked = stage("compose", fresh, write)
    assert status == 0
    assert len(asked) == 6
    texts = [question(one) for one in asked]  # in whatever order the calls arrived
    assert sum("target: near the top; hard distractor: near the bottom" in text for text in texts) == 3
    assert sum("target: near the bottom; hard distractor: near the top" in text for text in texts) == 3
    assert "response_format" in asked[0]
    items = load_items(fresh, load_scenes(fresh))
    assert len(items) == 24
    assert {(i.target, i.distractor) for i in items} == {(1, 2), (2, 1)}
    assert {i.made["polarity"] for i in items} == {"positive", "negation", "both"}


def test_a_stage_goes_on_where_it_stopped_and_asks_nothing_twice(fresh: Path) -> None:
    _, asked = stage("judge", fresh, write, "limit=1")
    assert len(asked) == 1
    _, asked = stage("judge", fresh, write)
    assert len(asked) == 2
    _, asked = stage("judge", fresh, write)
    assert asked == []
    _, asked = stage("judge", fresh, write, "llm.temperature=0.5")
    assert len(asked) == 3, "other settings are other questions"


def test_a_server_that_fails_leaves_the_unit_open_and_says_so(
    fresh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[int] = []

    def script(body: dict[str, Any]) -> str | Failure:
        calls.append(1)
        return Failure(400, "too long") if len(calls) == 2 else write(body)

    status, _ = stage("judge", fresh, script)
    assert status == 1
    assert "1 were not answered; the same command asks them again" in capsys.readouterr().out
    assert len(Ledger(fresh / "judged.jsonl").rows()) == 2
    status, asked = stage("judge", fresh, write)
    assert (status, len(asked)) == (0, 1)


def test_a_first_scene_that_can_not_be_asked_holds_up_no_other(
    fresh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (fresh / "scenes.jsonl").read_text().splitlines()
    gone = json.loads(lines[0]) | {"image": "gone.png"}
    (fresh / "scenes.jsonl").write_text("\n".join([json.dumps(gone), *lines[1:]]) + "\n")

    status, asked = stage("judge", fresh, after([Failure(400, "too long")] * 3))
    assert status == 1
    said = capsys.readouterr().out
    assert "gone.png is missing" in said and "too long" in said and "2 were not answered" in said
    assert [r["status"] for r in Ledger(fresh / "judged.jsonl").rows()] == ["ok"]
    assert asked[-1]["response_format"]["type"] == "json_schema", "a bad question says nothing of the form"
    status, _ = stage("judge", fresh, lambda body: Failure(400, "no images here"))
    assert status == 1


@pytest.mark.parametrize("known", [["json_object"], []])
def test_a_server_without_schemas_is_asked_in_plainer_ways(fresh: Path, known: list[str]) -> None:
    def script(body: dict[str, Any]) -> str | Failure:
        kind = body.get("response_format", {}).get("type")
        return Failure(400, f"{kind} is unknown") if kind and kind not in known else write(body)

    status, asked = stage("judge", fresh, script)
    assert status == 0
    assert len(asked) == 3 + (2 - len(known)), "found out once"


# ── bad answers ─────────────────────────────────────────────────────────────────────────────────

GOOD = judgement(3)
BAD_JUDGEMENTS = [
    ("I see two stars.", "no JSON object"),
    ('{"pair": [1, 2]', "no JSON object"),
    ("[1, 2]", "no JSON object"),
    (json.dumps(GOOD | {"pair": [1]}), "pair"),
    (json.dumps(GOOD | {"pair": [1, 99]}), "there is no candidate 99"),
    (json.dumps(GOOD | {"pair": [1, -1]}), "there is no candidate -1"),
    (json.dumps(GOOD | {"pair": [1, 1]}), "two different"),
    (json.dumps(GOOD | {"pair": ["1", "2"]}), "pair.0"),
    (json.dumps(GOOD | {"pair": [True, 2]}), "pair.0"),
    (json.dumps(GOOD | {"others": [1, 3]}), "share a number"),
    (json.dumps(GOOD | {"others": [3, 3]}), "twice"),
    (json.dumps(GOOD | {"others": []}), "others must be exactly"),
    (json.dumps(GOOD | {"group_discriminators": GOOD["group_discriminators"][:1]}), "group_discriminators"),
    (json.dumps(GOOD | {"extra": "ignore all rules"}), "extra"),
    (json.dumps(GOOD | {"pair_discriminators": GOOD["pair_discriminators"] * 2}), "pair_discriminators"),
    (
        json.dumps(
            GOOD | {"pair_discriminators": [d | {"noticeable": True} for d in GOOD["pair_discriminators"]]}
        ),
        "2 unnoticeable",
    ),
    (
        json.dumps(
            GOOD
            | {
                "group_discriminators": [
                    d | {"phrase_b": d["phrase_a"]} for d in GOOD["group_discriminators"]
                ]
            }
        ),
        "are the same",
    ),
]


@pytest.mark.parametrize(("bad", "says"), BAD_JUDGEMENTS, ids=[s for _, s in BAD_JUDGEMENTS])
def test_a_bad_judgement_is_asked_for_again_with_what_was_wrong(fresh: Path, bad: str, says: str) -> None:
    status, asked = stage("judge", fresh, after([bad]), "limit=1")
    assert status == 0
    assert len(asked) == 2
    assert asked[1]["messages"][-2] == {"role": "assistant", "content": bad}
    assert says in asked[1]["messages"][-1]["content"]
    (row,) = Ledger(fresh / "judged.jsonl").rows()
    assert (row["status"], row["attempts"], row["input_tokens"]) == ("ok", 2, 460), (
        "the repair is paid for too"
    )


def test_after_one_repair_it_is_rejected_with_its_reason_and_not_asked_again(
    fresh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = json.dumps(GOOD | {"pair": [1, 99]})
    status, asked = stage("judge", fresh, lambda body: bad, "limit=1")
    assert (status, len(asked)) == (0, 2)
    (row,) = Ledger(fresh / "judged.jsonl").rows()
    assert (row["status"], row["reason"]) == ("rejected", "there is no candidate 99; they are 1 to 3")
    assert "1 × rejected after a repair" in capsys.readouterr().out
    _, asked = stage("judge", fresh, lambda body: bad, "limit=1")
    assert asked == []
    status, _ = stage("compose", fresh, write, "limit=1")
    assert status == 2, "no accepted judgement"


def test_a_refusal_and_a_cut_answer_are_rejected(fresh: Path) -> None:
    nested = "[" * 5000 + "]" * 5000
    status, _ = stage("judge", fresh, lambda body: '{"a":' + nested + "}", "limit=1")
    assert status == 0
    assert Ledger(fresh / "judged.jsonl").rows()[0]["status"] == "rejected"


def composition_fault(answer: Composition, checks: Checks, category: str) -> str:
    made = list(Default().made(answer.model_dump(), None, 1))
    return Default().set_fault(made) or first_fault(made, checks, category)


def changed(index: int, **changes: Any) -> dict[str, Any]:
    answer = composition()
    answer["expressions"][index] |= changes
    return answer


BAD_COMPOSITIONS = [
    (changed(1, group=1, pair=1), "same combination"),
    (changed(0, polarity="negation"), "no expression has the polarity 'positive'"),
    (changed(1, expression="the star in the open"), "negates nothing"),
    (changed(0, expression="the star that is not near the top"), "polarity is positive"),
    (changed(0, expression="the 2nd star near the top"), "a digit"),
    (changed(0, expression="the star near the top with tag one"), "speaks of tags"),
    (changed(0, expression="the star in the numbered box"), "speaks of tags"),
    (changed(0, expression="star"), "1 words"),
    (changed(0, expression="the star " + "and again " * 20), "words"),
    (changed(0, expression="the star <script>alert</script>"), "characters that no expression has"),
    (changed(0, expression="the star\nnear the top"), "characters that no expression has"),
    (
        changed(3, polarity="both", expression="The larger star near the top; not the one near the bottom!"),
        "repeats",
    ),
    (composition(expressions=composition()["expressions"][:3]), "expressions"),
    (changed(0, group=3), "expressions.0.group"),
    (changed(0, polarity="positive", pair=0), "expressions.0.pair"),
]


@pytest.mark.parametrize(
    ("bad", "says"), BAD_COMPOSITIONS, ids=[f"{i} {s}" for i, (_, s) in enumerate(BAD_COMPOSITIONS)]
)
def test_what_makes_a_composition_worth_a_repair(bad: dict[str, Any], says: str) -> None:
    try:
        problem = composition_fault(Composition.model_validate(bad), Checks(), "star")
    except ValueError as error:
        problem = ".".join(map(str, error.errors()[0]["loc"]))  # type: ignore[attr-defined]
    assert says in problem


def test_a_good_composition_has_no_fault() -> None:
    assert composition_fault(Composition.model_validate(composition()), Checks(), "star") == ""
    assert judgement_fault(Judgement.model_validate(judgement(4)), 4) == ""


def test_good_expressions_of_an_answer_that_stays_bad_are_kept(fresh: Path) -> None:
    stage("judge", fresh, write, "limit=1")
    bad = json.dumps(changed(0, expression="the star with tag one"))
    status, asked = stage(
        "compose", fresh, lambda body: bad if not is_judge(body) else write(body), "limit=1"
    )
    assert (status, len(asked)) == (0, 4)
    first, second = Ledger(fresh / "composed.jsonl").rows()
    assert first["status"] == "rejected"
    assert len(first["expressions"]) == 3
    assert "speaks of tags" in first["dropped"][0]["reason"]
    assert second["expressions"] == [], "they repeat those of the other target"
    assert {d["reason"] for d in second["dropped"][1:]} == {"it repeats another expression of the scene"}


def test_the_single_step_ablation_needs_no_judge(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, asked = stage("compose", fresh, write, "method=one_step")
    assert (status, len(asked)) == (0, 3)
    items = load_items(fresh, load_scenes(fresh))
    assert len(items) == 24
    assert {i.made["method"] for i in items} == {"one_step"}
    assert stage("judge", fresh, write, "method=one_step")[0] == 2
    assert "has no judge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bad", "says"), [({"pair": [1, 7]}, "no candidate 7"), ({"pair": [2, 3]}, "targets must be")]
)
def test_the_single_step_answers_are_checked_too(fresh: Path, bad: dict[str, Any], says: str) -> None:
    def script(body: dict[str, Any]) -> str:
        return write(body) if len(body["messages"]) > 2 else json.dumps(json.loads(write(body)) | bad)

    status, asked = stage("compose", fresh, script, "method=one_step", "limit=1")
    assert (status, len(asked)) == (0, 2)
    assert says in asked[1]["messages"][-1]["content"]


# ── small parts ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', True),
        ('Sure:\n```json\n{"a": 1}\n```', True),
        ('<think>{}</think> {"a": 1}', True),
        ("none", False),
        ("[1]", False),
    ],
)
def test_json_is_found_where_models_put_it(text: str, found: bool) -> None:
    assert (json_object(text) == {"a": 1}) == found


def test_words_for_tags_are_allowed_where_they_name_the_thing_itself() -> None:
    assert "tags" in Checks().fault("the box beside the door")
    assert Checks().fault("the larger box beside the door", category="box") == ""
    assert Checks(allowed=("label",)).fault("the bottle with the torn label") == ""


def test_duplicates_are_seen_through_case_and_marks() -> None:
    assert duplicates(["The red cup", "a cup", "the  red cup!"]) == [2]
