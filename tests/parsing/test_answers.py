"""The golden table of answers: which box is meant in each, for every family's own reader."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from refadv_ablate.parsing import dialects
from refadv_ablate.parsing.brackets import scan
from refadv_ablate.parsing.plain import plain
from refadv_ablate.types import NoBox

ROOT = Path(__file__).parents[2]
ROWS = [json.loads(line) for line in (ROOT / "tests/golden/answers.jsonl").read_text("utf-8").splitlines()]


def reader(model: str) -> dialects.BoxText:
    """The dialect of a model's YAML, without composing the rest."""
    node = dict(yaml.safe_load((ROOT / f"conf/model/{model}.yaml").read_text("utf-8"))["dialect"])
    kind = getattr(dialects, node.pop("_target_").rpartition(".")[2])
    return kind(**{key: value for key, value in node.items() if key != "opens_thinking"})


READERS = {
    "generic": dialects.PlainBoxes(),
    "deepseek_vl2": dialects.TaggedBoxes(),
    "kimi_vl": dialects.JsonBoxes(),
    "gpt": reader("gpt4o"),
    "gemini": reader("gemini_flash"),
    "cogvlm": reader("cogvlm_grounding"),
    **{
        name: reader(name)
        for name in ("qwen2_5_vl", "qwen3_vl", "glm4_5v", "internvl3", "minicpm_v", "rex_omni", "paligemma2")
    },
}


def told(answer: tuple[tuple[float, ...], ...] | NoBox) -> tuple[str, list[float] | None]:
    return (answer.kind, None) if isinstance(answer, NoBox) else ("box", list(answer[0]))


@pytest.mark.parametrize("family", READERS)
def test_every_reader_takes_the_box_that_is_meant(family):
    rows = [row for row in ROWS if family in row["families"]]
    assert rows
    wrong = {}
    for row in rows:
        wanted = (row["kind"], row["boxes"] and [float(side) for side in row["boxes"]])
        found = told(READERS[family].read(row["text"]))
        if found != wanted:
            wrong[row["id"]] = (row["text"], wanted, found)
    assert not wrong


def test_the_table_is_large_and_every_rule_has_a_source():
    assert len({row["id"] for row in ROWS}) == len(ROWS) >= 600
    assert sum(row["from"].startswith("unseen") for row in ROWS) >= 500
    assert {family for row in ROWS for family in row["families"]} <= set(READERS)
    assert all(re.match(r"ours: |.*(?:\.py|#\d+|README|page|author)", row["why"]) for row in ROWS)
    assert len({row["lang"] for row in ROWS}) >= 15


def test_a_zoom_call_is_no_answer_in_the_shared_example(shared):
    lines = (shared / "faults/08_zoom_tool_call_is_no_answer/p.jsonl").read_text("utf-8").splitlines()
    assert lines
    for line in lines:
        for family in ("qwen3_vl", "generic", "glm4_5v", "internvl3"):
            assert told(READERS[family].read(json.loads(line)["text"])) == ("unparsable", None)


# ── nothing is invented, nothing breaks ─────────────────────────────────────────────────────────

PIECES = st.sampled_from([
    "[", "]", "{", "}", "(", ")", "<box>", "</box>", "<|box_start|>", "<|begin_of_box|>",
    "<answer>", "</Answer>", '"bbox_2d"', '"points"', ":", ",", ", ", ";", "10", "20", "300",
    "4.5", "-7", "12O", "1,234", "1/2", "10²", "½", "10-20", "12_0", "10:30", "...", "…", "%",
    "px", "null", "true", " ", "\n", '"', "'", "\\", "not ", "The answer is ", "rather than ",
    "because ", "Man A: ", "Man B: ", "Man B matches.", "Wait, ", "答案是", "不是", "ではなく", "x1=",
    "y1=", "x2=", "y2=", "<xmin>", "</xmin>", "top left ", "bottom right ", "［", "１", "٣",
    "\ud800", "&#91;", "~~", "// ", "# ", "<tool_call>", "</tool_call>", "crop(",
    "[10, 20, 300, 4.5]", "(10,20),(300,4.5)", "|", "- ", "ﬁ", "①", "\u200f",
])  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=50).map("".join), st.text(max_size=80))
_WHOLE = re.compile(r"[^\s,;:=\[\]{}()\"'<>\\|*`~$]+")


def tokens(text: str) -> set[float]:
    """The numbers that stand in a text as whole tokens."""
    found = set()
    for token in _WHOLE.findall(plain(text)):
        bare = re.fullmatch(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:px|pixels?)?\.?", token)
        if bare:
            found.add(float(bare[1]))
    return found


@given(TEXTS, st.sampled_from(sorted(READERS)))
@settings(max_examples=600, deadline=None)
def test_no_number_is_invented(text, family):
    answer = READERS[family].read(text)
    if isinstance(answer, NoBox):
        assert answer.reason
    else:
        assert {side for quad in answer for side in quad} <= tokens(text), (text, answer)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "internvl3"])
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, '{"a":' * 100_000, "([{" * 50_000 + "1,2,3,4" + "}])" * 50_000, "<" + " " * 100_000,
        "\ud800\udfff[1, 2, 3, 4]\ud800", "[1, 2, 3, \ud800]", "\x00", "9" * 50_000,
        "[" + "9" * 50_000 + "x]", "&#xD800;[1,2,3,4]",
    ],
    ids=lambda text: ascii(text[:9]),
)  # fmt: skip
def test_any_string_is_read(family, text):
    answer = READERS[family].read(text)
    assert isinstance(answer, NoBox | tuple)


UNITS = (
    "[1,2,3,4] ", "the answer is [1,2,3,4], not [5,6,7,8]. ", '{"bbox": [1,2,3,4]}\n', "[", '["',
    "[1;", "<box>", "<ref>", "```", "Man A: [1,2,3,4]\n", "x1=1, y1=2, ", "<tool_call>",
    "(1,2),(3,4) ", "[1,2,3,4] no wait ",
)  # fmt: skip


def test_a_list_is_scanned_once_for_each_sign():
    """The steps grow with the length: twice the text, at most twice the calls (and a constant)."""

    def calls(text: str) -> int:
        count = 0

        def step(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(step)
        try:
            READERS["generic"].read(text)
        finally:
            sys.setprofile(None)
        return count

    for unit in UNITS:
        calls(unit)  # what is made once, such as a pattern, is made here
        assert calls(unit * 600) <= 2.2 * calls(unit * 300) + 400, unit


def test_scan_gives_each_group_once():
    assert [(g.start, g.end) for g in scan("[1] {2} (3)")] == [(0, 3), (4, 7), (8, 11)]
