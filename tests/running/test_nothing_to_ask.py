"""A perturbation that makes no text at all asks for no originals either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from refadv_ablate.cli import main


def test_categories_on_data_without_any_end_before_an_original_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "a.png")
    row = {"image": "a.png", "expression": "the red cup", "box": [1, 1, 9, 9]}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ["data=jsonl", "data.path=own.jsonl", "data.image_root=.", "tracking=none", "pages=false"]
    assert main([*words, "model=control/center_prior", "perturb=category"]) != 0
    said = capsys.readouterr()
    assert "perturb=category makes no text of any of the 1 examples" in said.out + said.err
    assert "no category" in said.out + said.err
    assert not list(tmp_path.glob("results/cells/*/predictions.jsonl"))
