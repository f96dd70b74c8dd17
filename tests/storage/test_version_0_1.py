"""Stores and result folders of version 0.1.0, from before modules moved into folders, are still read.

tests/golden/version_0_1 was written by that version: tiny_internvl3 on six drawn examples, bow and fixed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from refadv_ablate.cli import main
from refadv_ablate.models.transformers import Transformers
from refadv_ablate.report.loading.sources import from_files
from refadv_ablate.report.pages.imagery import images_of

OLD = Path(__file__).parents[1] / "golden" / "version_0_1"
CHECKPOINT = "9504c06683684fcd500cd5bd478e0c8a42ecff990e492bf64dedcefa7d941184"
"""Fingerprint of the tiny_internvl3 of that version; today's has one more token and is asked anew."""


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_answers_of_an_old_store_are_not_asked_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(OLD / "store.db", tmp_path / "store.db")

    def refuse(self, requests):
        asked = list(requests)
        assert not asked, f"{len(asked)} answers of the old store were not found"
        yield from ()

    monkeypatch.setattr(Transformers, "answer", refuse)
    monkeypatch.setattr("refadv_ablate.models.transformers.fingerprint", lambda _: CHECKPOINT)
    words = ["perturb=[bow,fixed]", "model=tiny_internvl3", "data.n=6", "limit=6"]
    assert main([*words, f"store={tmp_path / 'store.db'}", "tracking=none", "pages=false", "gallery=0"]) == 0
    (folder,) = (tmp_path / "results" / "cells").glob("*--bow-*")
    old, new = lines(OLD / "cell" / "predictions.jsonl"), lines(folder / "predictions.jsonl")
    assert [(r["example_id"], r["condition"], r["predicted"]) for r in new] == [
        (r["example_id"], r["condition"], r["predicted"]) for r in old
    ]


def test_an_old_result_folder_is_reported_with_its_images():
    cells = list(from_files([OLD / "cell"]))
    summary = json.loads((OLD / "cell" / "summary.json").read_text(encoding="utf-8"))
    assert [cell.operators for cell in cells] == [["bow"]]
    images = images_of(cells[0])
    assert images is not None
    first = lines(OLD / "cell" / "predictions.jsonl")[0]
    image = images(first["example_id"])
    assert image is not None
    assert image.size() == tuple(first["size"])
    assert summary["planned"] == 6


@pytest.mark.parametrize(
    "old",
    ["refadv_ablate.parsing.TaggedBoxes", "refadv_ablate.frames.Relative", "refadv_ablate.prompts.Style"],
)
def test_names_of_parts_in_old_configs_lead_to_the_parts(old):
    from refadv_ablate.assets import locate

    assert locate(old, "model").__name__ == old.rpartition(".")[2]
