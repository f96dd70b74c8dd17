"""A scripted rewriting LLM, and one file of perturbed texts, so that every operator can be built."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import chat_server

EXPRESSIONS = [
    "a red ball with yellow stripes",
    "the young elephant near the water not covered in more dust",
    "person with zipper open not holding anything",
    "the second cup from the right",
    "the man in a red hat and a blue coat",
    "",
    "   ",
    "?!",
    "zebra",
    "the the the",
    "zebra zebra. ZEBRA",
    "الكرة الحمراء على اليسار",
    "הכדור האדום מימין",
    "左边的红色球",
    "the 🐶 with the 🎩, left",
    "naïve café owner’s dog — left-most, 2.5 m (tall)",
    "{expression} ${oc.env:HOME} <b>x</b> %s \\n",
    "the dog " + "and the very tall old cat near the red wall " * 20,
    "x" * 12_000,
]


def llm(body: dict[str, Any]) -> str:
    """Lists every word but the last and deletes the descriptor: a rewriter with a rule."""
    text = body["messages"][1]["content"]
    expression = re.search(r"<expression>(.*?)</expression>", text, re.S).group(1)  # type: ignore[union-attr]
    changing = re.search(r"<changing>(.*?)</changing>", text, re.S)
    if changing is not None:
        new = {"red": "blue", "young": "old"}.get(changing.group(1), "plain")
        said = re.sub(rf"(?<!\w){re.escape(changing.group(1))}(?!\w)", new, expression, count=1)
        return json.dumps({"changed": said})
    wanted = re.search(r"<descriptor>(.*?)</descriptor>", text, re.S)
    if wanted is None:
        words = expression.split()
        return json.dumps({"head": words[-1], "descriptors": [w for w in words[1:-1] if w.isalpha()]})
    cut = re.sub(rf"(?<!\w){re.escape(wanted.group(1))}(?!\w)", "", expression, count=1)
    return json.dumps({"rewritten": " ".join(cut.split())})


@pytest.fixture(scope="session")
def llm_url() -> Iterator[str]:
    with chat_server(llm) as chat:
        yield chat.url


@pytest.fixture(scope="session")
def texts_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    lines = []
    for i, expression in enumerate(EXPRESSIONS):
        empty = not expression.strip()
        line = {
            "id": f"e{i}",
            "original": expression,
            "expression": expression if empty else f"edited {i}",
            "status": "not_perturbable" if empty else "changed",
        }
        lines.append(json.dumps(line, ensure_ascii=empty) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path
