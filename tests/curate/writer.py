"""A scripted writer for both queries: it knows the drawn scenes and answers about them, well or badly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.chat_server import Failure

ADVERBS = ["plainly", "barely"]
NOTICEABLE = ["towards the top", "towards the left"]
SUBTLE = ["with the sharper outline", "with the smoother outline"]


def question(body: dict[str, Any]) -> str:
    """The first question of the conversation."""
    parts = _asked(body)
    return next(part["text"] for part in parts if part["type"] == "text")


def image(body: dict[str, Any]) -> str:
    parts = _asked(body)
    return next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")


def _asked(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What the user said first; the paper's query 1 has no system message before it."""
    return next(m["content"] for m in body["messages"] if m["role"] == "user")


def is_judge(body: dict[str, Any]) -> bool:
    return "Step 1" in question(body)


# ── the paper's field names ─────────────────────────────────────────────────────────────────────


def listing1(n: int = 4, **changes: Any) -> dict[str, Any]:
    ours = judgement(n)
    groups = [
        {"id": f"G{k}", "name": d["property"], "A": d["phrase_a"], "B": d["phrase_b"]}
        for k, d in enumerate(ours["group_discriminators"], 1)
    ]
    pairs = [
        {
            "id": f"P{k}",
            "name": d["property"],
            "i": d["phrase_first"],
            "j": d["phrase_second"],
            "noticeability": "noticeable" if d["noticeable"] else "unnoticeable",
        }
        for k, d in enumerate(ours["pair_discriminators"], 1)
    ]
    return {
        "similar_group": {"ids": [1, 2], "label": "A"},
        "groups": {"A": [1, 2], "B": ours["others"]},
        "group_discriminators": groups,
        "in_pair_discriminators": pairs,
    } | changes


def listing2(category: str = "star", target: int = 1, **changes: Any) -> dict[str, Any]:
    ours = composition(category, "first" if target == 1 else "second")["expressions"]
    names = {"positive": "only_positive", "negation": "only_negative", "both": "both"}
    made = []
    for k, one in enumerate(ours, 1):
        pair = judgement()["pair_discriminators"][one["pair"] - 1]
        own, other = pair["phrase_first"], pair["phrase_second"]
        own, other = (own, other) if target == 1 else (other, own)
        made.append(
            {
                "id": f"E{k}",
                "target_id": target,
                "group_dids": [f"G{one['group']}"],
                "pair_dids": [f"P{one['pair']}"],
                "inpair_positive_phrase": own,
                "inpair_negative_phrase": other,
                "inpair_phrase": names[one["polarity"]],
                "text": one["expression"],
            }
        )
    return {"expressions": made} | changes


def write_as_the_paper(body: dict[str, Any]) -> str:
    """Good answers in the paper's fields."""
    text = question(body)
    if "Observations" not in text:
        found = re.search(r"shows (\d+) ", text)
        assert found
        return json.dumps(listing1(int(found[1])))
    target, category = re.search(r"Target ID: (\d+)\nTarget Class: (.*)", text).groups()  # type: ignore[union-attr]
    return json.dumps(listing2(category, int(target)))


def judgement(n: int = 4, **changes: Any) -> dict[str, Any]:
    groups = [
        {"property": "size", "phrase_a": "of the larger kind", "phrase_b": "small"},
        {"property": "ground", "phrase_a": "in the open", "phrase_b": "among others"},
    ]
    pairs = [
        {
            "property": "height",
            "noticeable": True,
            "phrase_first": "near the top",
            "phrase_second": "near the bottom",
        },
        {
            "property": "side",
            "noticeable": True,
            "phrase_first": "on the left",
            "phrase_second": "on the right",
        },
        {
            "property": "edge",
            "noticeable": False,
            "phrase_first": "with a crisp edge",
            "phrase_second": "with a soft edge",
        },
        {
            "property": "tilt",
            "noticeable": False,
            "phrase_first": "standing upright",
            "phrase_second": "leaning over",
        },
    ]
    answer = {
        "pair": [1, 2],
        "others": list(range(3, n + 1)),
        "group_discriminators": groups,
        "pair_discriminators": pairs,
    }
    return answer | changes


def composition(category: str = "star", which: str = "first", **changes: Any) -> dict[str, Any]:
    own, other = (
        ("near the top", "near the bottom") if which == "first" else ("near the bottom", "near the top")
    )
    rows = [
        (1, 1, "positive", f"the larger {category} {own}"),
        (2, 1, "negation", f"the {category} in the open that is not {other}"),
        (1, 2, "both", f"the larger {category} {own}, not the one {other}"),
        (2, 3, "negation", f"the {category} in the open without the look of the one {other}"),
    ]
    made = [{"group": g, "pair": p, "polarity": polarity, "expression": e} for g, p, polarity, e in rows]
    return {"expressions": made} | changes


def write(body: dict[str, Any]) -> str:
    """Good answers."""
    text = question(body)
    if "Choose the two candidates" in text:
        found = re.search(r'instances of "(.*?)"', text)
        assert found
        texts = [
            [e["expression"] for e in composition(found[1], w)["expressions"]] for w in ("first", "second")
        ]
        targets = [{"target": i, "expressions": t} for i, t in enumerate(texts, 1)]
        return json.dumps({"pair": [1, 2], "targets": targets})
    if is_judge(body):
        found = re.search(r"The candidates are (\d+)", text)
        assert found
        return json.dumps(judgement(int(found[1])))
    found = re.search(r'The target is candidate (\d+), a "(.*?)"', text)
    assert found
    return f"```json\n{json.dumps(composition(found[2], 'first' if found[1] == '1' else 'second'))}\n```"


def after(
    bad: list[str | Failure], good: Callable[[dict[str, Any]], str] = write
) -> Callable[[dict[str, Any]], Any]:
    """Bad answers first, one for each call, then good ones."""
    waiting = list(bad)

    def script(body: dict[str, Any]) -> str | Failure:
        return waiting.pop(0) if waiting else good(body)

    return script
