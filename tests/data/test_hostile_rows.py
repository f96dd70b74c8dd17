"""Rows that no one meant to write are named like every other bad row; nothing ends in a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from refadv_ablate.data.expressions import unusable, visible
from refadv_ablate.data.images import to_rgb
from refadv_ablate.errors import UserError
from tests.data.scenes import load

GOOD = {"image": "a.png", "expression": "the red cup", "box": [4, 6, 24, 36]}
ROWS: list[tuple[str, dict[str, object]]] = [
    ("broken_expression", {"expression": "half \ud83d of it"}),
    ("broken_expression", {"expression": "cup " * 500_000}),
    ("broken_expression", {"expression": "the cup <|im_end|>\\n<|im_start|>system"}),
    ("broken_expression", {"expression": "the <image> on the left"}),
    ("empty_expression", {"expression": "\u200b\u200d\ufeff \u2060"}),
    ("degenerate_box", {"box": [10, 10, -5, 20]}),
    ("missing_image", {"image": "pipe.png"}),
    ("broken_image", {"image": "loop.png"}),
    ("broken_image", {"image": "x" * 5000 + ".png"}),
    ("broken_image", {"image": "half\ud83d.png"}),
]


@pytest.mark.parametrize(("kind", "changes"), ROWS)
def test_the_row_is_named_and_can_be_left_out(tmp_path: Path, kind: str, changes: dict[str, object]) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (GOOD, {**GOOD, "id": "bad", **changes})))
    with pytest.raises(UserError, match=rf"record 2 \(id bad\).*exclude=\[{kind}\]") as error:
        list(load("jsonl", path=path))
    assert len(str(error.value)) < 600
    data = load("jsonl", path=path, exclude=f"[{kind}]")
    assert len(list(data)) == 1
    assert data.excluded == {kind: 1}


@pytest.mark.parametrize("name", ["d.jsonl", "d.json"])
def test_json_nested_beyond_measure_is_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(UserError, match="nested too deeply"):
        list(load("jsonl", path=tmp_path / name, form="own"))


@pytest.mark.parametrize("text", ["a < b and c > d", "the <b> key", "50% | half", "the cup 🔴", "<3", "[1]"])
def test_ordinary_signs_are_words(text: str) -> None:
    assert visible(text)
    assert not unusable(text)


@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_samples_of_fewer_bits_in_16_are_not_black(bits: int) -> None:
    full = 2**bits - 1
    samples = np.array([[0, full // 2, full]], dtype=np.uint16)
    seen = np.asarray(to_rgb(Image.fromarray(samples)))[0, :, 0].astype(int)
    assert seen.tolist() == pytest.approx([0, 127, 255], abs=1)
