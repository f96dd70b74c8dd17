"""Both options of conf/curate/prompts: their texts as files, and the paper's fields read strictly."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate import assets
from refadv_ablate.boxes import Box
from refadv_ablate.curate.annotation.items import load_items
from refadv_ablate.curate.cli import main
from refadv_ablate.curate.generation import composing
from refadv_ablate.curate.generation.checks import Checks
from refadv_ablate.curate.generation.default import Default
from refadv_ablate.curate.generation.listings import Listing1, Listing2
from refadv_ablate.curate.generation.llm import LLM
from refadv_ablate.curate.generation.paper import Paper
from refadv_ablate.curate.generation.sifting import kind, sift
from refadv_ablate.curate.generation.texts import FIRST
from refadv_ablate.curate.generation.writing import Work, judge_keys
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene, load_scenes
from refadv_ablate.errors import UserError
from tests.curate.test_writing import fresh, stage
from tests.curate.writer import judgement, listing1, listing2, question, write, write_as_the_paper

__all__ = ["fresh"]
SHIPPED = assets.asset_dir("conf") / "curate" / "prompt_text"


# ── texts ───────────────────────────────────────────────────────────────────────────────────────


def test_the_first_texts_are_still_those_whose_answers_were_paid_for() -> None:
    assert {name: Default().texts(name).digest for name in FIRST} == FIRST


def test_answers_of_version_0_1_keep_their_keys(tmp_path: Path) -> None:
    scene = Scene(
        "s", "/r", "i.png", (10, 10), "star", tuple(Box(i, 0, i + 1, 1) for i in range(4)), "drawn", "ab"
    )
    work = Work({"s": scene}, LLM("m"), Default(), Checks(), tmp_path, lambda n: None)
    Ledger(tmp_path / "judged.jsonl").append({"scene": "s", "judgement": judgement(4), "key": "k"})
    units = composing.compose_units(work)
    assert judge_keys(work)["s"][:16] == "e4d9aa9f95a0dadd"
    assert [units[f"s#{t}"].key[:16] for t in (1, 2)] == ["223e99b8bc45b719", "8d3e627bdc53dfd5"]
    assert composing.one_step_keys(work)["s"][:16] == "40c04a4a8f06f779"


@pytest.mark.parametrize("name", ["default", "paper"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: (f / "judge.txt").unlink(), "judge.txt is missing"),
        (lambda f: (f / "repair.txt").write_text("Again."), "repair.txt lacks {problem}"),
        (lambda f: (f / "compose.txt").write_text("{target_clas}"), "has {target_clas}"),
        (lambda f: (f / "judge.txt").write_text("How many?"), "judge.txt lacks {"),
        (lambda f: (f / "judge.txt").write_bytes(b"\xff"), "it is not UTF-8"),
    ],
    ids=["missing", "no problem", "misspelt", "no placeholder", "not UTF-8"],
)
def test_texts_of_ones_own_are_checked_before_anything_is_asked(
    name: str, change: Any, says: str, fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Path(shutil.copytree(SHIPPED / name, tmp_path / "own"))
    change(own)
    status, asked = stage("judge", fresh, write, f"prompts={name}", f"prompts.folder={own}")
    assert (status, asked) == (2, [])
    assert says in capsys.readouterr().err


def test_what_is_filled_in_is_not_read_as_a_template() -> None:
    texts = replace(Default().texts("judge"), user="{n} {category}")
    assert texts.filled({"n": "{category}", "category": "{n}"}) == "{category} {n}"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["prompts=papr"], "did you mean 'paper'"),
        (["prompts.folder=papers"], "did you mean 'paper'"),
        (["prompts.folder=no/such"], "there is no folder"),
    ],
)
def test_unknown_prompts_are_one_sentence(
    words: list[str], says: str, fresh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stage("judge", fresh, write, *words)[0] == 2
    assert says in capsys.readouterr().err


# ── both variants through the scripted server ───────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "script"), [("default", write), ("paper", write_as_the_paper)])
def test_every_expression_says_which_words_it_was_made_with(name: str, script: Any, fresh: Path) -> None:
    words = f"prompts={name}"
    assert stage("judge", fresh, script, words)[0] == 0
    assert stage("compose", fresh, script, words)[0] == 0
    items = load_items(fresh, load_scenes(fresh))
    assert len(items) == 24
    kept = {row["digest"]: row for row in Ledger(fresh / "prompts.jsonl")}
    for item in items:
        assert item.made["prompts"] == name
        assert kept[item.made["judge_prompt"]]["stage"] == "judge"
        assert kept[item.made["compose_prompt"]]["stage"] == "compose"
    assert {row["user"] for row in kept.values()} == {
        (SHIPPED / name / f"{one}.txt").read_text().removesuffix("\n") for one in ("judge", "compose")
    }


def test_the_paper_is_asked_in_its_own_fields(fresh: Path) -> None:
    _, asked = stage("judge", fresh, write_as_the_paper, "prompts=paper")
    assert [m["role"] for m in asked[0]["messages"]] == ["user"], "Listing 1 has no system message"
    schema = asked[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["properties"]) == set(listing1())
    _, asked = stage("compose", fresh, write_as_the_paper, "prompts=paper")
    assert asked[0]["messages"][0]["role"] == "system"
    text = question(asked[0])
    told = json.loads(text.split("Observations: ")[1].split("\n")[0])
    assert told == listing1(len(told["groups"]["B"]) + 2), "the whole answer to query 1"
    assert "{" not in text.split("Observations")[0], "every placeholder is filled"
    rows = Ledger(fresh / "composed.jsonl").rows()
    first = rows[0]["expressions"][0]
    assert set(first) == {*listing2()["expressions"][0], "expression", "polarity"} - {"text"}
    assert {e["inpair_phrase"] for r in rows for e in r["expressions"]} == {
        "only_positive",
        "only_negative",
        "both",
    }


def test_two_variants_stand_side_by_side_and_neither_takes_the_others_judgements(
    fresh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage("judge", fresh, write_as_the_paper, "prompts=paper")
    assert stage("compose", fresh, write)[0] == 2
    assert "of prompts=default (there are some of paper)" in capsys.readouterr().err
    stage("compose", fresh, write_as_the_paper, "prompts=paper", "limit=1")
    stage("judge", fresh, write)
    _, asked = stage("compose", fresh, write, "limit=1")
    assert len(asked) == 2
    names = [item.made["prompts"] for item in load_items(fresh, load_scenes(fresh))]
    assert set(names) <= {"default", "paper"} and len(names) >= 8


def test_other_words_are_asked_again_and_the_judgements_of_unchanged_words_are_not(
    fresh: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(SHIPPED / "paper", tmp_path / "own"))
    words = ["prompts=paper", f"prompts.folder={own}"]
    stage("judge", fresh, write_as_the_paper, *words)
    stage("compose", fresh, write_as_the_paper, *words)
    text = (own / "compose.txt").read_text()
    (own / "compose.txt").write_text(text + "Be brief.\n")
    assert stage("judge", fresh, write_as_the_paper, *words)[1] == []
    assert len(stage("compose", fresh, write_as_the_paper, *words)[1]) == 6
    assert len(Ledger(fresh / "prompts.jsonl").rows()) == 3


def test_the_paper_has_no_single_query(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stage("compose", fresh, write, "prompts=paper", "method=one_step")[0] == 2
    assert "the paper prints no text for method=one_step" in capsys.readouterr().err


# ── the paper's answers, read strictly ──────────────────────────────────────────────────────────


def with_pair(index: int, **changes: Any) -> dict[str, Any]:
    answer = listing1(4)
    answer["in_pair_discriminators"][index] |= changes
    return answer


BAD_LISTING1 = [
    (listing1(4, similar_group={"ids": [1, 9], "label": "A"}), "there is no candidate 9"),
    (listing1(4, similar_group={"ids": [2, 2], "label": "A"}), "two different"),
    (listing1(4, similar_group={"ids": [1, 2], "label": "B"}), "similar_group.label"),
    (listing1(4, similar_group={"ids": [1, 2, 3], "label": "A"}), "similar_group.ids"),
    (listing1(4, groups={"A": [1, 3], "B": [2, 4]}), "groups.A must be"),
    (listing1(4, groups={"A": [1, 2], "B": [3]}), "groups.B must be exactly [3, 4]"),
    (listing1(4, groups={"A": [1, 2], "B": [3, 3, 4]}), "groups.B must be exactly"),
    (listing1(4, group_discriminators=listing1()["group_discriminators"][:1]), "group_discriminators"),
    (listing1(4, in_pair_discriminators=listing1()["in_pair_discriminators"][:3]), "in_pair_discriminators"),
    (with_pair(3, id="P5"), "in_pair_discriminators.3.id"),
    (with_pair(3, id="P1"), "an id stands twice in in_pair_discriminators"),
    (with_pair(0, noticeability="unnoticeable"), "exactly 2 in_pair_discriminators must be noticeable"),
    (with_pair(0, noticeability="very"), "noticeability"),
    (with_pair(0, j="Near the  top"), "the two phrases of P1 are the same"),
    (with_pair(1, i="near the top"), "P2 says the same as P1"),
    (with_pair(0, i="the one with tag three"), "speaks of tags"),
    (with_pair(0, i="left of object 3"), "a digit"),
    (with_pair(0, remark="none"), "remark"),
    (with_pair(0, i=3), "in_pair_discriminators.0.i"),
]


@pytest.mark.parametrize(("bad", "says"), BAD_LISTING1, ids=[f"{i}" for i in range(len(BAD_LISTING1))])
def test_a_bad_judgement_of_the_paper_has_one_clear_reason(
    bad: dict[str, Any], says: str, fresh: Path
) -> None:
    scene = next(s for s in load_scenes(fresh).values())
    four = replace(scene, boxes=scene.boxes[:1] * 4)
    try:
        problem = Paper().judgement_fault(Listing1.model_validate(bad), four, Checks())
    except ValueError as error:
        problem = ".".join(map(str, error.errors()[0]["loc"]))  # type: ignore[attr-defined]
    assert says in problem
    assert Paper().judgement_fault(Listing1.model_validate(listing1(4)), four, Checks()) == ""


def expression(**changes: Any) -> dict[str, Any]:
    return listing2()["expressions"][0] | changes


BAD_EXPRESSIONS = [
    (expression(target_id=2), "it is meant for another object: target_id is 2, asked for was 1"),
    (expression(target_id="1"), "it is not as the form asks: target_id"),
    (expression(group_dids=["G3"]), "group_dids names an unknown id: 'G3', known are G1, G2"),
    (expression(pair_dids=["G1"]), "pair_dids names an unknown id: 'G1', known are P1, P2, P3, P4"),
    (expression(group_dids=["G1", "G2"]), "group_dids must name exactly one discriminator: it names 2"),
    (expression(pair_dids=[]), "it is not as the form asks: pair_dids"),
    (expression(inpair_phrase="neither"), "it is not as the form asks: inpair_phrase"),
    (
        expression(inpair_positive_phrase="Near the bottom"),
        "inpair_positive_phrase is that of the other object",
    ),
    (expression(inpair_negative_phrase="near the top"), "inpair_negative_phrase is that of the target"),
    (expression(text="the larger star 2 near the top"), "it holds a digit"),
    (expression(text="near the top, star two"), "it names a candidate by its number: 'star two'"),
    (expression(text="the larger star labeled A"), "it speaks of tags: 'labeled'"),
    (expression(text="the larger star not near the top"), "it negates, though its polarity is positive"),
    (expression(inpair_phrase="only_negative"), "it negates nothing, though its polarity is negation"),
    (expression(why="it is"), "it is not as the form asks: why"),
    ("the larger star", "it is not as the form asks: the entry"),
]


@pytest.mark.parametrize(("bad", "says"), BAD_EXPRESSIONS, ids=[s for _, s in BAD_EXPRESSIONS])
def test_a_bad_candidate_is_dropped_with_one_reason_and_spoils_no_other(bad: Any, says: str) -> None:
    judgement = Listing1.model_validate(listing1(4))
    tree = {"expressions": [bad, *listing2()["expressions"][1:]]}
    kept, dropped = sift(Paper().made(tree, judgement, 1), Checks(), "star", set())
    assert [k.fields["id"] for k in kept] == ["E2", "E3", "E4"]
    assert len(dropped) == 1 and dropped[0]["reason"].startswith(says), dropped


def test_repeats_among_candidates_are_dropped() -> None:
    rows = listing2()["expressions"]
    again = rows[1] | {"id": "E1"}
    same_combination = rows[2] | {"group_dids": ["G1"], "pair_dids": ["P1"]}
    more = rows[3] | {
        "id": "E3",
        "group_dids": ["G1"],
        "pair_dids": ["P4"],
        "text": "the larger star, upright",
    }
    tree = {"expressions": [rows[0], again, same_combination, rows[3], more]}
    judgement = Listing1.model_validate(listing1(4))
    kept, dropped = sift(Paper().made(tree, judgement, 1), Checks(), "star", set())
    assert len(kept) == 2
    assert [kind(d["reason"]) for d in dropped] == [
        "its id stands twice",
        "its combination of discriminators is used already",
        "its id stands twice",
    ]


def test_a_phrase_that_negates_by_itself_may_be_positive() -> None:
    judgement = Listing1.model_validate(with_pair(0, i="without a handle", j="with a handle"))
    one = expression(
        inpair_positive_phrase="without a handle",
        inpair_negative_phrase="with a handle",
        text="the larger star without a handle",
    )
    kept, dropped = sift(Paper().made({"expressions": [one]}, judgement, 1), Checks(), "star", set())
    assert len(kept) == 1, dropped


def test_a_good_answer_of_the_paper_is_used_whole_for_both_targets() -> None:
    judgement = Listing1.model_validate(listing1(4))
    for target in (1, 2):
        answer = Listing2.model_validate(listing2(target=target)).model_dump()
        kept, dropped = sift(Paper().made(answer, judgement, target), Checks(), "star", set())
        assert (len(kept), dropped) == (4, [])


def test_what_was_dropped_is_counted_by_reason(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage("judge", fresh, write_as_the_paper, "prompts=paper")

    def script(body: dict[str, Any]) -> str:
        answer = json.loads(write_as_the_paper(body))
        for k, text in enumerate(("the star tagged here", "the numbered star over there")):
            answer["expressions"][k]["text"] = text
        answer["expressions"][3]["pair_dids"] = ["P9"]
        return json.dumps(answer)

    assert stage("compose", fresh, script, "prompts=paper", "limit=1")[0] == 0
    said = capsys.readouterr().out
    assert "2 new expressions passed the checks, 6 were dropped" in said
    assert "4 × dropped: it speaks of tags" in said
    assert "2 × dropped: pair_dids names an unknown id" in said
    assert main(["status", f"out={fresh}"]) == 0
    assert "4 × expression dropped: it speaks of tags" in capsys.readouterr().out


# ── what it would cost ──────────────────────────────────────────────────────────────────────────


def test_a_dry_run_counts_with_the_papers_figures_and_asks_nothing(
    fresh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", f"out={fresh}", "prompts=paper", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "3 scenes: 0 are answered, 3 would be asked" in said
    # 3 scenes × 2 targets × 4: 24 × 2,300 in, 24 × 120 out, 24 × $0.00695, 24 × 18.7%
    assert "24 expressions" in said and "55,200 tokens in and 2,880 out, $0.167" in said
    assert "about 4 of them kept at a keep rate of 18.7%, $0.0372 each" in said
    assert not (fresh / "judged.jsonl").exists()
    status, asked = stage("judge", fresh, write_as_the_paper, "prompts=paper", "--dry-run")
    assert (status, asked) == (0, [])
    assert "llm.price_input and llm.price_output are 0" in capsys.readouterr().out


def test_a_dry_run_counts_with_what_was_measured_where_there_is_something(
    fresh: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("judge", "compose"):
        stage(name, fresh, write_as_the_paper, "prompts=paper", "limit=1")
    capsys.readouterr()
    stage("judge", fresh, write_as_the_paper, "prompts=paper", "--dry-run")
    said = capsys.readouterr().out
    assert "3 scenes: 1 are answered, 2 would be asked" in said
    assert "measured here over 8 expressions" in said
    assert f"about {16 * 3 * 230 / 8:,.0f} tokens in" in said
    assert main(["verify", f"out={fresh}", "--dry-run"]) == 2
    assert "knows no --dry-run" in capsys.readouterr().err


def test_a_set_names_the_words_of_each_expression(fresh: Path) -> None:
    from tests.curate.test_verification import NAMES, blind, verdict

    for name in ("judge", "compose"):
        stage(name, fresh, write_as_the_paper, "prompts=paper")
    for item in load_items(fresh, load_scenes(fresh)):
        for name in NAMES:
            Ledger(fresh / "answers.jsonl").append(blind(item, name))
            Ledger(fresh / "answers.jsonl").append(verdict(item, name))
    assert main(["export", f"out={fresh}"]) == 0
    folder = fresh / "export" / "test"
    row = json.loads((folder / "samples.jsonl").read_text().splitlines()[0])
    words = json.loads((folder / "provenance.json").read_text())["prompts"]
    digests = {row["attributes"]["judge_prompt"], row["attributes"]["compose_prompt"]}
    assert row["attributes"]["prompts"] == "paper"
    assert digests == {one["digest"] for one in words}


def test_a_folder_without_its_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="missing"):
        (tmp_path / "own").mkdir()
        Paper(folder=f"{tmp_path}/own")
