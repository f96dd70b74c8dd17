"""Answers, agreement, the interface of the page, Label Studio, cost."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as reference_kappa

from refadv_ablate.curate.annotation.agreement import Share, agreement, fleiss_kappa, lines
from refadv_ablate.curate.annotation.answers import chosen, outcome, outcomes, sheet
from refadv_ablate.curate.annotation.desk import HELD, Desk
from refadv_ablate.curate.annotation.items import Item, load_items
from refadv_ablate.curate.annotation.label_studio import read_annotations
from refadv_ablate.curate.annotation.server import application
from refadv_ablate.curate.cli import main
from refadv_ablate.curate.cost import Figures, sentence
from refadv_ablate.curate.generation.checks import Checks
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene, load_scenes
from refadv_ablate.curate.settings import Verify

NAMES = ["ana", "ben", "chi"]


@pytest.fixture
def scenes(out: Path) -> dict[str, Scene]:
    return load_scenes(out)


@pytest.fixture
def items(out: Path, scenes: dict[str, Scene]) -> list[Item]:
    return load_items(out, scenes)


def desk(out: Path, **settings: Any) -> Desk:
    scenes = load_scenes(out)
    ledgers = Ledger(out / "answers.jsonl"), Ledger(out / "authored.jsonl")
    return Desk(scenes, load_items(out, scenes), Verify(tuple(NAMES), **settings), *ledgers, Checks(), seed=0)


@pytest.fixture
def client(out: Path) -> TestClient:
    return TestClient(application(desk(out), ["testserver"]))


def blind(item: Item, name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "blind", "annotator": name, "item": item.id, "point": item.gold.center, **more}


def verdict(item: Item, name: str, correct: bool = True, hard: bool = True, **more: Any) -> dict[str, Any]:
    return {"kind": "verdict", "annotator": name, "item": item.id, "correct": correct, "hard": hard, **more}


# ── agreement ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(5))
def test_fleiss_kappa_is_that_of_statsmodels(seed: int) -> None:
    rng = random.Random(seed)
    ratings = [[rng.choice("abc" if i % 3 else "a") for _ in range(3)] for i in range(40)]
    table, _ = aggregate_raters(np.array(ratings))
    ours = fleiss_kappa(ratings)
    assert ours.value == pytest.approx(reference_kappa(table), abs=1e-12)


def test_fleiss_kappa_of_the_papers_kind_of_table_by_hand() -> None:
    # two items, three raters: one agreed (yes ×3), one split 2:1. P = (1 + 1/3)/2, Pe = (5/6)² + (1/6)²
    k = fleiss_kappa([["y", "y", "y"], ["y", "y", "n"]])
    assert (k.observed, k.expected) == (pytest.approx(2 / 3), pytest.approx(26 / 36))
    assert k.value == pytest.approx((2 / 3 - 26 / 36) / (1 - 26 / 36))


@pytest.mark.parametrize(
    ("ratings", "note"), [([], "no item"), ([["y", "y"], ["y", "y"]], "the same"), ([["y"]], "two raters")]
)
def test_where_kappa_is_not_defined_it_is_none_with_the_reason(ratings: list[list[str]], note: str) -> None:
    k = fleiss_kappa(ratings)
    assert k.value is None
    assert note in k.note


def test_shares_have_wilson_intervals_and_nothing_is_said_of_nothing() -> None:
    assert Share(0, 0).value is None
    assert "n/a" in str(Share(0, 0))
    low, high = Share(3, 3).interval or (0, 0)
    assert 0.4 < low < 0.5 and high == pytest.approx(1.0)


# ── what answers mean ───────────────────────────────────────────────────────────────────────────


def test_a_point_means_the_smallest_candidate_around_it_and_a_box_the_closest(items: list[Item]) -> None:
    item = items[0]
    assert chosen({"point": item.gold.center}, item.scene) == item.target
    assert chosen({"box": item.gold.as_list()}, item.scene) == item.target
    assert chosen({"point": (-5, -5)}, item.scene) == 0
    assert chosen({"box": (0, 0, 1, 1)}, item.scene) == 0
    assert chosen({"box": (5, 5, 5, 5)}, item.scene) == 0
    assert chosen({"none": True}, item.scene) == 0


@pytest.mark.parametrize(
    ("verdicts", "state", "reason"),
    [
        ([], "open", "0 of 3"),
        ([(True, True)] * 2, "open", "2 of 3"),
        ([(True, True)] * 3, "kept", ""),
        ([(True, True), (True, True), (False, True)], "dropped", "1 × not correct"),
        ([(True, True), (True, False), (True, False)], "dropped", "2 × no hard distractor"),
        ([(False, True)], "dropped", "1 × not correct"),
    ],
)
def test_kept_only_if_all_agree(
    items: list[Item], verdicts: list[tuple[bool, bool]], state: str, reason: str
) -> None:
    item = items[0]
    rows = [r for n, v in zip(NAMES, verdicts, strict=False) for r in (blind(item, n), verdict(item, n, *v))]
    found = outcome(item, sheet(rows), needed=3)
    assert found.state == state
    assert reason in found.reason


def test_the_first_blind_grounding_and_the_last_verdict_count(items: list[Item]) -> None:
    item = items[0]
    rows = [
        blind(item, "ana", point=(-1, -1)),
        blind(item, "ana"),
        verdict(item, "ana", False),
        verdict(item, "ana"),
    ]
    said = sheet(rows)["ana"][item.id]
    assert said.blind and said.blind["point"] == (-1, -1)
    assert said.verdict and said.verdict["correct"] is True


def test_the_statistics_of_a_verification(items: list[Item]) -> None:
    rows = []
    for k, item in enumerate(items):
        for name in NAMES:
            miss = name == "chi" and k % 4 == 0
            rows.append(blind(item, name, point=(-1, -1)) if miss else blind(item, name))
            rows.append(verdict(item, name, correct=not (name == "chi" and k % 3 == 0)))
    answers = sheet(rows)
    found = outcomes(items, answers, 3)
    a = agreement(items, answers, found, 3)
    assert (a.kept, a.dropped, a.open) == (16, 8, 0)
    assert a.blind["ana"].value == 1.0
    assert a.blind["chi"] == Share(18, 24)
    assert a.keep_rate == Share(16, 24)
    table, _ = aggregate_raters(np.array([[1, 1, 0 if k % 3 == 0 else 1] for k in range(24)]))
    assert a.kappa_correct.value == pytest.approx(reference_kappa(table))
    assert a.kappa_hard.value is None
    shown = "\n".join(lines(a))
    assert "keep rate of those decided: 66.7%" in shown
    assert "chi: 75.0%" in shown


# ── the interface ───────────────────────────────────────────────────────────────────────────────


def test_the_gold_box_is_told_only_after_the_blind_answer(client: TestClient, out: Path) -> None:
    told = client.get("/api/next", params={"annotator": "ana"}).json()
    assert told["stage"] == "blind"
    assert "gold" not in json.dumps(told)
    items = {i.id: i for i in load_items(out, load_scenes(out))}
    item = items[told["item"]]
    assert client.post("/api/answer", json=verdict(item, "ana")).status_code == 409, (
        "not before the blind answer"
    )
    assert client.get("/api/next", params={"annotator": "ana", "item": item.id}).status_code == 409
    assert client.post("/api/answer", json=blind(item, "ana")).json() == {"saved": True}
    told = client.get("/api/next", params={"annotator": "ana", "item": item.id}).json()
    assert (told["stage"], told["gold"], told["hit"]) == ("verdict", item.gold.as_list(), True)


def test_an_answer_sent_twice_is_kept_once_and_survives_a_new_server(
    client: TestClient, out: Path, items: list[Item]
) -> None:
    for _ in range(3):
        assert client.post("/api/answer", json=blind(items[0], "ben", key="k1")).status_code == 200
    again = TestClient(application(desk(out), ["testserver"]))
    again.post("/api/answer", json=blind(items[0], "ben", key="k1"))
    again.post("/api/answer", json=verdict(items[0], "ben", key="k2"))
    assert len(Ledger(out / "answers.jsonl").rows()) == 2
    assert again.get("/api/next", params={"annotator": "ben"}).json()["done"] == 1


def asked(client: TestClient, name: str, window: str = "", **more: str) -> dict[str, Any]:
    told: dict[str, Any] = client.get(
        "/api/next", params={"annotator": name, "window": window, **more}
    ).json()
    return told


def test_two_windows_of_one_annotator_get_different_items_and_judge_none_twice(
    client: TestClient, out: Path, items: list[Item]
) -> None:
    by_id = {i.id: i for i in items}
    for _ in range(len(items) // 2):
        shown = {window: asked(client, "ana", window)["item"] for window in ("laptop", "phone")}
        assert shown["laptop"] != shown["phone"]
        assert asked(client, "ana", "laptop")["item"] == shown["laptop"], "the same after a reload"
        for window, item in shown.items():
            client.post("/api/answer", json=blind(by_id[item], "ana", key=f"{window}{item}b"))
            client.post("/api/answer", json=verdict(by_id[item], "ana", key=f"{window}{item}v"))
    assert asked(client, "ana", "laptop")["item"] is None
    rows = Ledger(out / "answers.jsonl").rows()
    assert len(rows) == 2 * len(items), "nothing lost, nothing judged twice"
    assert {r["item"] for r in rows} == set(by_id)


def test_what_a_closed_window_showed_comes_back(out: Path) -> None:
    now = [0.0]
    one = desk(out)
    one.clock = lambda: now[0]
    first = one.next("ana", window="closed")["item"]
    assert one.next("ana", window="new")["item"] != first
    now[0] = HELD + 1
    assert one.next("ana", window="other")["item"] == first


def test_the_slower_of_two_windows_is_told_and_overwrites_nothing(
    client: TestClient, out: Path, items: list[Item]
) -> None:
    item = items[0]
    assert client.post("/api/answer", json=blind(item, "ana", key="a")).status_code == 200
    late = client.post("/api/answer", json=blind(item, "ana", key="b", point=[1, 1]))
    assert late.status_code == 409 and "in another window already" in late.json()["detail"]
    assert client.post("/api/answer", json=verdict(item, "ana", key="c")).status_code == 200
    late = client.post("/api/answer", json=verdict(item, "ana", correct=False, key="d"))
    assert late.status_code == 409 and "that verdict stands" in late.json()["detail"]
    told = asked(client, "ana", item=item.id)
    changed = verdict(item, "ana", correct=False, key="e", replaces=told["verdict"]["key"])
    assert client.post("/api/answer", json=changed).status_code == 200, "who has seen it may change it"
    assert client.post("/api/answer", json=changed).status_code == 200, "sent again"
    assert [r["key"] for r in Ledger(out / "answers.jsonl")] == ["a", "c", "e"]


def test_one_can_go_back_from_a_new_item_and_from_the_end(client: TestClient, items: list[Item]) -> None:
    by_id, seen = {i.id: i for i in items}, []
    while (told := asked(client, "ben"))["item"]:
        assert told["before"] == (seen[-1] if seen else None)
        seen.append(told["item"])
        client.post("/api/answer", json=blind(by_id[told["item"]], "ben", seconds=4))
        client.post("/api/answer", json=verdict(by_id[told["item"]], "ben", seconds=2))
    assert told["before"] == seen[-1]
    assert asked(client, "ben", item=seen[-1])["before"] == seen[-2]
    assert told["pace"] == 6.0
    assert asked(client, "chi")["pace"] is None


def test_agreement_is_told_live_and_of_no_single_item(client: TestClient, items: list[Item]) -> None:
    told = client.get("/api/progress").json()
    assert (told["kept"], told["open"]) == (0, len(items))
    for k, name in enumerate(NAMES):
        for item, correct in ((items[0], True), (items[1], k < 2)):
            client.post("/api/answer", json=blind(item, name))
            client.post("/api/answer", json=verdict(item, name, correct))
        told = client.get("/api/progress").json()
        assert (told["kept"], told["dropped"]) == ((0, 0), (0, 0), (1, 1))[k], "unanimous, or not kept"
    assert [p["done"] for p in told["people"]] == [2, 2, 2]
    text = json.dumps(told)
    assert "keep rate of those decided: 50.0%" in text and "Fleiss" in text
    assert not any(i.id in text or i.expression in text for i in items)


def test_what_one_has_turned_down_can_be_kept_from_the_others(out: Path, items: list[Item]) -> None:
    client = TestClient(application(desk(out, skip_dropped=True), ["testserver"]))
    begun, dropped = items[0], items[1]
    client.post("/api/answer", json=blind(begun, "ben"))
    for item in (begun, dropped):
        client.post("/api/answer", json=blind(item, "ana"))
        client.post("/api/answer", json=verdict(item, "ana", hard=False))
    assert asked(client, "chi")["total"] == len(items) - 2
    assert asked(client, "ben")["total"] == len(items) - 1, "what was begun may be finished"
    assert asked(client, "ana")["done"] == 2
    shown = " ".join(client.get("/api/progress").json()["lines"])
    assert "2 dropped expressions have not been judged by all" in shown


def test_authors_do_not_verify_their_own_and_can_take_it_back(out: Path, items: list[Item]) -> None:
    client = TestClient(application(desk(out), ["testserver"]))
    scene = client.get("/api/scene", params={"annotator": "ana"}).json()
    base = {"annotator": "ana", "scene": scene["scene"], "target": 1, "distractor": 3}
    for text in ("the star up there", "the star over there"):
        assert client.post("/api/author", json=base | {"expression": text}).status_code == 200
    assert asked(client, "ana")["total"] == len(items)
    assert asked(client, "ben")["total"] == len(items) + 2, "there at once"
    first, second = client.get("/api/scene", params={"annotator": "ana"}).json()["written"]
    gone = {"annotator": "ana", "item": first["item"], "key": "w"}
    assert client.post("/api/withdraw", json=gone | {"annotator": "ben", "key": ""}).status_code == 409
    assert client.post("/api/withdraw", json=gone).status_code == 200
    assert client.post("/api/withdraw", json=gone).status_code == 200, "sent again"
    assert asked(client, "ben")["total"] == len(items) + 1
    client.post("/api/answer", json=blind(items[0], "ben") | {"item": second["item"]})
    late = client.post("/api/withdraw", json=gone | {"item": second["item"], "key": "x"})
    assert late.status_code == 409 and "so it stays" in late.json()["detail"]
    again = TestClient(application(desk(out, own=True), ["testserver"]))
    assert asked(again, "ana")["total"] == len(items) + 1
    assert again.get("/api/scene", params={"annotator": "ana"}).json()["all_written"] == 1


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"annotator": "mallory"}, 409),
        ({"item": "no such item"}, 409),
        ({"point": None}, 409),
        ({"none": True}, 409),
        ({"point": [1e400, 0]}, 422),
        ({"point": ["a", 0]}, 422),
        ({"kind": "other"}, 422),
        ({"surprise": 1}, 422),
        ({"key": "x" * 65}, 422),
    ],
)
def test_answers_that_make_no_sense_are_refused_and_not_kept(
    client: TestClient, out: Path, items: list[Item], changes: dict[str, Any], status: int
) -> None:
    body = json.dumps(blind(items[0], "ana") | changes)
    got = client.post("/api/answer", content=body, headers={"Content-Type": "application/json"})
    assert got.status_code == status
    assert Ledger(out / "answers.jsonl").rows() == []


def test_other_sites_other_hosts_and_oversized_posts_are_refused(
    client: TestClient, items: list[Item], out: Path
) -> None:
    body = blind(items[0], "ana")
    assert (
        client.post("/api/answer", json=body, headers={"Origin": "https://evil.example"}).status_code == 403
    )
    assert client.post("/api/answer", json=body, headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/api/answer", content=b"x" * 30_000).status_code == 413
    assert client.post("/api/answer", json=body, headers={"Origin": "http://testserver"}).status_code == 200


def test_pages_run_nothing_from_elsewhere(client: TestClient) -> None:
    for path in (
        "/",
        "/author",
        "/progress",
        "/progress.js",
        "/style.css",
        "/common.js",
        "/verify.js",
        "/author.js",
    ):
        got = client.get(path)
        assert got.status_code == 200
        assert "default-src 'none'" in got.headers["content-security-policy"]
        assert "http://" not in got.text.replace("http://www.w3.org/", "")
        assert "innerHTML" not in got.text


def test_images_come_by_id_alone_and_without_tags(client: TestClient, items: list[Item]) -> None:
    import io

    from PIL import Image

    got = client.get(f"/image/{items[0].id}")
    assert got.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(got.content)).size == items[0].scene.size
    for bad in ("nothing", "..%2f..%2fetc%2fpasswd", "%2e%2e"):
        assert client.get(f"/image/{bad}").status_code in (404, 409)


def test_an_authored_expression_passes_the_same_checks(client: TestClient, out: Path) -> None:
    scene = client.get("/api/scene", params={"annotator": "ana"}).json()
    base = {"annotator": "ana", "scene": scene["scene"], "target": 1, "distractor": 3}
    for text, says in (
        ("the 3rd star", "digit"),
        ("star", "words"),
        ("the star with the tag", "tags"),
    ):
        got = client.post("/api/author", json=base | {"expression": text})
        assert got.status_code == 409
        assert says in got.json()["detail"]
    assert (
        client.post(
            "/api/author", json=base | {"distractor": 1, "expression": "the star up there"}
        ).status_code
        == 409
    )
    assert client.post("/api/author", json=base | {"expression": " the star  up there "}).status_code == 200
    assert client.post("/api/author", json=base | {"expression": "The star up there."}).status_code == 409, (
        "again"
    )
    item = next(i for i in load_items(out, load_scenes(out)) if i.human)
    assert (item.expression, item.target, item.distractor) == ("the star up there", 1, 3)
    assert item.made["author"] == "ana"


# ── Label Studio ────────────────────────────────────────────────────────────────────────────────


def annotated(item: Item, by: Any, correct: str = "yes", number: int = 1) -> dict[str, Any]:
    width, height = item.scene.size
    box = item.gold
    rectangle = {
        "x": 100 * box.x1 / width,
        "y": 100 * box.y1 / height,
        "width": 100 * box.width / width,
        "height": 100 * box.height / height,
        "rotation": 0,
        "rectanglelabels": ["referent"],
    }
    result = [
        {"from_name": "blind", "to_name": "image", "type": "rectanglelabels", "value": rectangle},
        {"from_name": "correct", "to_name": "image", "type": "choices", "value": {"choices": [correct]}},
        {"from_name": "hard", "to_name": "image", "type": "choices", "value": {"choices": ["yes"]}},
    ]
    return {"id": number, "completed_by": by, "result": result, "was_cancelled": False, "lead_time": 7.5}


def test_tasks_go_out_and_annotations_come_back(
    out: Path, items: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["label_studio", f"out={out}"]) == 0
    tasks = json.loads((out / "label_studio.json").read_text())
    assert len(tasks) == len(items)
    assert "gold" not in json.dumps(tasks)
    assert tasks[0]["data"]["image"].startswith("/data/local-files/?d=")
    assert "$expression" in (out / "label_studio.xml").read_text()
    people = [1, {"id": 2, "email": "ben@example.org"}, "chi"]
    for number, task in enumerate(tasks):
        item = next(i for i in items if i.id == task["data"]["item"])
        task["annotations"] = [
            annotated(item, by, "no" if number == 0 else "yes", k) for k, by in enumerate(people)
        ]
    back = out / "back.json"
    back.write_text(json.dumps(tasks))
    words = [
        "label_studio",
        f"out={out}",
        "label_studio.action=import",
        f"label_studio.path={back}",
        "label_studio.annotators={1: ana}",
    ]
    for expected in (6 * len(items), 0):
        assert main(words) == 0
        assert f"{expected} new answers" in capsys.readouterr().out
    answers = sheet(Ledger(out / "answers.jsonl"))
    assert set(answers) == {"ana", "ben@example.org", "chi"}
    found = outcomes(items, answers, 3)
    assert [o.state for o in found].count("kept") == len(items) - 1
    assert agreement(items, answers, found, 3).blind_all.value == 1.0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "choose the format JSON"),
        ('[{"image": "x"}]', "choose the format JSON"),
        ("[", "no complete JSON"),
    ],
)
def test_another_export_format_is_one_sentence(
    out: Path, content: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "x.json").write_text(content)
    assert (
        main(
            [
                "label_studio",
                f"out={out}",
                "label_studio.action=import",
                f"label_studio.path={out / 'x.json'}",
            ]
        )
        == 2
    )
    assert says in capsys.readouterr().err


def test_what_can_not_be_used_is_said(
    out: Path, items: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    half = annotated(items[0], "ana")
    half["result"] = half["result"][:2]
    tasks = [
        {"data": {"item": "other"}, "annotations": []},
        {"data": {"item": items[0].id}, "annotations": [half]},
    ]
    (out / "x.json").write_text(json.dumps(tasks))
    assert (
        main(
            [
                "label_studio",
                f"out={out}",
                "label_studio.action=import",
                f"label_studio.path={out / 'x.json'}",
            ]
        )
        == 1
    )
    said = capsys.readouterr().out
    assert "no expression of this set" in said
    assert "left a question" in said


def test_a_tab_left_open_for_weeks_and_a_box_from_nowhere(items: list[Item], tmp_path: Path) -> None:
    long = annotated(items[0], "ana") | {"lead_time": 3e6}
    wild = annotated(items[0], "ben")
    wild["result"][0]["value"] |= {"x": 1e300}
    path = tmp_path / "weeks.json"
    path.write_text(json.dumps([{"data": {"item": items[0].id}, "annotations": [long, wild]}]))
    answers, problems = read_annotations(path, {items[0].id: items[0]}, {})
    assert [a.annotator for a in answers] == ["ana", "ana"]
    assert len(problems) == 1 and "box" in problems[0]


# ── cost ────────────────────────────────────────────────────────────────────────────────────────


def test_the_papers_figures_give_the_papers_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Figures().per_expression == pytest.approx(0.00695)
    assert Figures().per_kept == pytest.approx(0.0372, abs=5e-5)
    assert main(["cost", f"out={tmp_path / 'nothing'}"]) == 0
    said = capsys.readouterr().out
    assert "$0.00695 per expression, $0.0372 per kept one" in said
    assert "keep rate 18.7%" in said


def test_the_cost_of_this_set_counts_every_answer_that_was_paid_for(
    out: Path, items: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [r for n in NAMES for k, i in enumerate(items) for r in (blind(i, n), verdict(i, n, k < 6))]
    for row in rows:
        Ledger(out / "answers.jsonl").append(row)
    assert main(["cost", f"out={out}", "llm=gpt4o"]) == 0
    said = capsys.readouterr().out
    per = (9 * 230 * 2.5 + 9 * 12 * 10) / 1e6 / 24
    assert f"${per:.3g} per expression, ${per * 4:.3g} per kept one" in said
    assert "judge: 3 answers" in said


def test_none_kept_is_no_division() -> None:
    assert "none kept yet" in sentence(Figures(keep_rate=None))
    assert Figures(keep_rate=0.0).per_kept is None
