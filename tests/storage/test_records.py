"""Records, comparisons and texts on disk: what is written is what is read, and damage is named."""

from __future__ import annotations

import gzip
import json
import math
import random
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refadv_ablate.boxes import Box, BoxMap
from refadv_ablate.errors import UserError
from refadv_ablate.storage import records
from refadv_ablate.storage.jsonl import to_line
from refadv_ablate.types import (
    Comparison,
    Confidence,
    Delta,
    Estimate,
    Example,
    Perturbed,
    Record,
    Reply,
    Score,
    Slice,
    TokenLogprobs,
    Usage,
)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def record(index: int = 0, **other) -> Record:
    rng = random.Random(index)
    x, y = rng.uniform(0, 500), rng.uniform(0, 300)
    fields = {
        "example_id": f"ex-{index}",
        "image_key": f"img-{index // 3}.jpg",
        "condition": "bow",
        "draw": index % 2,
        "status": "changed",
        "expression": "左 the zebra “left” 🦓 שלום",
        "original_expression": "the zebra on the left",
        "target": Box(x, y, x + 1 / 3, y + 0.1),
        "outcome": "box",
        "predicted": Box(x, y, x + math.pi, y + math.e),
        "iou": rng.random(),
        "n_boxes": 2,
        "notes": ("clipped",),
        "size": (640, 480),
        "text": '{"bbox_2d": [1, 2, 3, 4]}\n\u2028 next',
        "usage": Usage(12, 5, 1e-6),
        "distractors": 3,
        "negation": False,
        "attributes": {"color": "red"},
        "trace": {"order": [2, 0, 1]},
    }
    return Record(**{**fields, **other})


def comparison(**other) -> Comparison:
    estimate = Estimate(-0.125, -1 / 3, 0.1, 40, 20, "cluster t", "")
    nothing = Estimate(None, None, None, 0, 0, "", "no example")
    delta = Delta("acc50", estimate, estimate, estimate, (-0.3, 0.1), 0.01, 0.5, None, 3.5, 1.0, 0.02, "x")
    empty = Delta("macc", nothing, nothing, nothing)
    fields = {
        "model": "m",
        "data": "refcoco+ 中",
        "prompt": "direct",
        "operator": "bow",
        "planned": 50,
        "paired": 40,
        "images": 20,
        "deltas": {"acc50": delta, "macc": empty},
        "parsed_only": {"acc50": delta},
        "counts": {"original": {"box": 40}, "perturbed": {"box": 38, "empty": 2}},
        "slices": (Slice("distractors", "4-6", {"acc50": delta}),),
        "warnings": ("the frame looks wrong",),
        "details": {"usd": 0.25},
    }
    return Comparison(**{**fields, **other})


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.gz"])
def test_records_read_back_equal(tmp_path: Path, name: str) -> None:
    written = [record(i) for i in range(1203)] + [
        record(1, outcome="missing", predicted=None, iou=None, status="unchanged", distractors=None)
    ]
    assert records.write_records(tmp_path / name, written) == 1204
    assert list(records.read_records(tmp_path / name)) == written
    assert names(tmp_path) == [name]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_its_bits(value: float) -> None:
    assert json.loads(to_line({"x": value}))["x"].hex() == value.hex()


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_survives_a_line_of_utf8(text: str) -> None:
    line = to_line({"text": text})
    assert "\n" not in line
    assert json.loads(line.encode())["text"] == text


def test_text_is_kept_readable_and_half_a_surrogate_pair_survives() -> None:
    assert "左" in to_line({"text": "左 🦓"})
    assert json.loads(to_line(records.record_to_json(record(text="cut \ud83d"))))["text"] == "cut \ud83d"


def test_what_is_no_number_is_null_never_nan() -> None:
    row = {"a": math.nan, "b": [math.inf, 1.5], "c": np.float32(2.5), "d": np.arange(2), "e": {1: -math.inf}}
    assert to_line(row) == '{"a":null,"b":[null,1.5],"c":2.5,"d":[0,1],"e":{"1":null}}'


def test_a_comparison_reads_back_equal(tmp_path: Path) -> None:
    records.dump(comparison(), tmp_path / "summary.json")
    assert records.load(tmp_path / "summary.json") == comparison()
    assert "refcoco+ 中" in (tmp_path / "summary.json").read_text(encoding="utf-8")


BEYOND = {
    "expectation": "directional",
    "part": "jpeg-3",
    "placebo": True,
    "frame": BoxMap.mirror(640),
    "original_target": Box(1, 2, 3, 4),
    "picture": {"edits": [{"edit": "mirror"}]},
    "or_none": True,
    "landed": "same category",
    "confidence": Confidence(0.93, 0.74, 0.81, 4),
}


def test_every_field_is_written() -> None:
    scores = (Score("hit", "invariant", Estimate(0.5, 0.4, 0.6, 40, 20), "jpeg-3", 0.25),)
    for value, to_json in [
        (record(**BEYOND), records.record_to_json),
        (comparison(scores=scores), records.comparison_to_json),
    ]:
        assert set(to_json(value)) == set(type(value).__dataclass_fields__)
    assert (
        records.comparison_from_json(records.comparison_to_json(comparison(scores=scores))).scores == scores
    )
    assert not BEYOND.keys() & records.record_to_json(record()).keys(), "text operators keep their lines"
    assert records.record_from_json(json.loads(to_line(records.record_to_json(record(**BEYOND))))) == record(
        **BEYOND
    )
    asked = {"logprobs": TokenLogprobs(0, (1,), (-0.5,)), "confidence": Confidence(0.7)}
    assert set(records.reply_to_json(Reply("x", **asked))) == set(Reply.__dataclass_fields__)
    assert set(records.reply_to_json(Reply("x"))) == set(Reply.__dataclass_fields__) - asked.keys()
    delta = records.comparison_to_json(comparison())["deltas"]["acc50"]
    assert set(delta) == set(Delta.__dataclass_fields__)
    assert set(delta["delta"]) == set(Estimate.__dataclass_fields__)


def test_a_reply_reads_back_equal() -> None:
    reply = Reply("[1, 2]", "length", "because", "", (640, 476), Usage(1, 2, 0.5), 1.25, 3)
    assert records.reply_from_json(json.loads(to_line(records.reply_to_json(reply)))) == reply


class _Picture:
    key = "a.jpg"

    def size(self) -> tuple[int, int]:
        return 8, 6


def test_a_perturbed_text_reads_back_on_its_own_example_only() -> None:
    original = Example("1", _Picture(), "a red ball", Box(0, 0, 1, 1))
    perturbed = Perturbed(original.saying("ball a red"), original, "changed", "", {"order": [2, 0, 1]})
    row = json.loads(to_line(records.perturbed_to_json(perturbed)))
    assert records.perturbed_from_json(row, original) == perturbed
    with pytest.raises(ValueError, match="'id' is '1'"):
        records.perturbed_from_json(row, Example("2", _Picture(), "a red ball", Box(0, 0, 1, 1)))
    with pytest.raises(ValueError, match="'original' of '1'"):
        records.perturbed_from_json(row, original.saying("another text"))


GOOD = to_line(records.record_to_json(record()))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (GOOD[: len(GOOD) // 2], "no valid JSON"),
        ("[1, 2]", "one JSON object"),
        ('{"example_id": "a"}', "'image_key' needs a text, not None"),
        (GOOD.replace('"outcome":"box"', '"outcome":"great"'), "'outcome' needs one of .*'great'"),
        (GOOD.replace('"draw":0', '"draw":"0"'), "'draw' needs a whole number, not '0'"),
        (GOOD.replace('"status":"changed"', '"status":["changed"]'), "'status' needs one of"),
        (GOOD.replace('"size":[640,480]', '"size":[640]'), "'size' needs"),
        (GOOD.replace('"usage":{', '"usage":3,"x":{'), "'usage' needs an object"),
        (GOOD.replace('"notes":["clipped"]', '"notes":"clipped"'), "'notes' needs a list of texts"),
        (GOOD.replace('"negation":false', '"negation":"no"'), "'negation' needs bool or null"),
        (GOOD.replace('"target":[', '"target":[9999,'), "'target' needs"),
        (GOOD.replace('"target":[', '"target":[9999,0,1,1],"x":['), "'target' is no box: .*no area"),
        (GOOD.replace('"reasoning":""', '"reasoning":null'), "'reasoning' needs a text"),
        ('{"example_id": Infinity}', "Infinity"),
        ("\x00", "no valid JSON"),
    ],
)
def test_a_foreign_line_is_named_with_file_and_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(f"{GOOD}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=says) as caught:
        list(records.read_records(path))
    assert f"{path}:3: " in str(caught.value)


def test_damaged_bytes_are_a_sentence(tmp_path: Path) -> None:
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"text": "caf\xe9"}\n')
    with pytest.raises(UserError, match=r"latin.jsonl:1: not UTF-8"):
        list(records.read_jsonl(latin))
    packed = tmp_path / "cut.jsonl.gz"
    records.write_jsonl(packed, ({"n": random.Random(i).random()} for i in range(5000)))
    packed.write_bytes(packed.read_bytes()[:-2000])
    with pytest.raises(UserError, match="damaged or cut short"):
        list(records.read_jsonl(packed))
    plain = tmp_path / "plain.jsonl.gz"
    plain.write_bytes(b"{}\n")
    with pytest.raises(UserError, match="damaged"):
        list(records.read_jsonl(plain))
    with pytest.raises(UserError, match=r"absent\.jsonl"):
        list(records.read_jsonl(tmp_path / "absent.jsonl"))
    with pytest.raises(UserError, match="can't read"):
        list(records.read_jsonl(tmp_path))
    for content in (b"{", b"[]", b"\xff", b"{}"):
        (tmp_path / "summary.json").write_bytes(content)
        with pytest.raises(UserError, match=r"summary\.json"):
            records.load(tmp_path / "summary.json")


def test_a_byte_order_mark_and_nan_of_other_tools_are_read(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"first_iou": NaN}\r\n{"a": 1}')
    assert list(records.read_jsonl(path)) == [{"first_iou": None}, {"a": 1}]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    records.write_jsonl(path, [{"old": 1}])

    def rows():
        yield {"new": 1}
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError):
        records.write_jsonl(path, rows())
    assert list(records.read_jsonl(path)) == [{"old": 1}]
    assert names(tmp_path) == ["p.jsonl"]


def test_a_limit_on_the_size_of_files_is_a_sentence_and_leaves_the_old_file(tmp_path: Path) -> None:
    code = f"""
import resource, signal
from refadv_ablate.storage import records
from refadv_ablate.errors import UserError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
records.write_jsonl({str(tmp_path / "p.jsonl")!r}, [{{"old": 1}}])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    records.write_jsonl({str(tmp_path / "p.jsonl")!r}, ({{"x": "y" * 100}} for _ in range(10_000)))
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "can't write" in done.stdout
    assert "File too large; raise the limit of a file's size (ulimit -f)" in done.stdout
    assert list(records.read_jsonl(tmp_path / "p.jsonl")) == [{"old": 1}]
    assert names(tmp_path) == ["p.jsonl"]


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        records.write_records(tmp_path / name, [record(i) for i in range(10)])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).count(b"\n") == 10


def test_a_long_file_is_never_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    text = "x" * 2_000
    records.write_jsonl(path, ({"n": i, "text": text} for i in range(40_000)))  # 80 MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(row["n"] for row in records.read_jsonl(path)) == 40_000 * 39_999 // 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB
