"""From verified expressions to a data set that the main job runs, and the audit of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate import assets
from refadv_ablate import cli as main_job
from refadv_ablate.boxes import Box
from refadv_ablate.curate.annotation.items import load_items
from refadv_ablate.curate.audit import contrast, sentence
from refadv_ablate.curate.cli import main
from refadv_ablate.curate.exporting import file_names, split_of
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import load_scenes
from refadv_ablate.types import Estimate
from tests.curate.test_verification import NAMES, blind, verdict


@pytest.fixture
def verified(out: Path) -> Path:
    """All kept but every fourth."""
    ledger = Ledger(out / "answers.jsonl")
    for k, item in enumerate(load_items(out, load_scenes(out))):
        for name in NAMES:
            ledger.append(blind(item, name))
            ledger.append(verdict(item, name, correct=k % 4 != 0))
    return out


def data(*words: str) -> list[Any]:
    return list(assets.build(assets.compose(["data=ref_adv_s", *words]).data, "data"))


def test_the_set_has_ref_adv_s_columns_and_loads(verified: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", f"out={verified}"]) == 0
    assert "test: 18 expressions" in capsys.readouterr().out
    folder = verified / "export" / "test"
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    published = {"row_idx", "image", "normal_caption", "solution", "width", "height"}
    published |= {"image_source", "human_authored", "use_negation", "distractors"}
    assert published < set(rows[0])
    kept = {i.id: i for i in load_items(verified, load_scenes(verified))}
    examples = data(f"data.path={folder}")
    assert len(examples) == 18
    for row, e in zip(rows, examples, strict=True):
        item = kept[row["attributes"]["item"]]
        assert (e.expression, e.target) == (item.expression, item.gold)
        assert len(e.candidates) == len(item.scene.boxes)
        assert e.distractors == len(item.scene.boxes) - 1
        assert e.negation == ("not" in e.expression or "without" in e.expression)
        assert e.image.load().size == item.scene.size
        assert e.category == item.scene.category
    assert len({e.image.key for e in examples}) == len({i.scene.sha256 for i in kept.values()})
    assert len({e.id for e in examples}) == 18


def test_parquet_holds_the_same_with_the_images_inside(verified: Path) -> None:
    import pyarrow.parquet as pq

    assert main(["export", f"out={verified}"]) == 0
    folder = verified / "export" / "test"
    examples = data(f"data.path={folder}")
    path = verified / "export" / "data" / "test-00000-of-00001.parquet"
    inside = data(f"data.path={path}", "data.form=parquet")
    assert [(e.expression, e.target, e.distractors) for e in inside] == [
        (e.expression, e.target, e.distractors) for e in examples
    ]
    assert [e.image.digest() for e in inside] == [e.image.digest() for e in examples]
    assert "Image" in pq.read_schema(path).metadata[b"huggingface"].decode()


def test_an_image_is_in_one_split_alone(verified: Path) -> None:
    assert main(["export", f"out={verified}", "export.splits={train: 0.5, test: 0.5}"]) == 0
    found = {}
    for split in ("train", "test"):
        path = verified / "export" / split / "samples.jsonl"
        if path.exists():
            found[split] = {json.loads(line)["file_name"] for line in path.read_text().splitlines()}
    assert not set.intersection(*found.values()) or len(found) < 2
    shares = [split_of(f"sha{i}", {"a": 0.25, "b": 0.75}, 0) for i in range(2000)]
    assert 0.22 < shares.count("a") / 2000 < 0.28


def test_an_export_is_not_overwritten_unasked(verified: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", f"out={verified}"]) == 0
    assert main(["export", f"out={verified}"]) == 2
    assert "export.overwrite=true" in capsys.readouterr().err
    first = (verified / "export" / "test" / "samples.jsonl").read_bytes()
    assert main(["export", f"out={verified}", "export.overwrite=true"]) == 0
    assert (verified / "export" / "test" / "samples.jsonl").read_bytes() == first
    assert not list(verified.glob(".export*"))


def test_only_an_export_is_overwritten(verified: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = verified / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years")
    words = [f"out={verified}", f"export.to={home}", "export.overwrite=true"]
    assert main(["export", *words]) == 2
    assert "something else than an exported set" in capsys.readouterr().err
    assert (home / "thesis.tex").read_text() == "years"


def test_an_image_that_changed_since_is_refused(verified: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scene = next(iter(load_scenes(verified).values()))
    scene.file().chmod(0o644)
    original = scene.file().read_bytes()
    try:
        scene.file().write_bytes(original + b"x")
        assert main(["export", f"out={verified}"]) == 2
    finally:
        scene.file().write_bytes(original)
    assert "has changed since the stage prepare" in capsys.readouterr().err
    assert not (verified / "export").exists()


def test_nothing_kept_is_one_sentence(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", f"out={out}"]) == 2
    assert "no expression is kept yet" in capsys.readouterr().err


def test_the_provenance_says_how_the_set_came_about(verified: Path) -> None:
    assert main(["export", f"out={verified}", "llm=gpt4o"]) == 0
    told = json.loads((verified / "export" / "test" / "provenance.json").read_text())
    assert any("keep rate" in line for line in told["agreement"])
    assert told["cost"]["usd_per_kept"] == pytest.approx(told["cost"]["usd_per_expression"] / 0.75)
    assert told["methods"] == ["two_step"]
    assert "| test | 18 |" in (verified / "export" / "README.md").read_text()


def test_images_of_one_name_stay_apart(verified: Path) -> None:
    items = load_items(verified, load_scenes(verified))
    from dataclasses import replace

    twins = [
        replace(i, scene=replace(i.scene, image="same.png", sha256=f"{k % 2}" * 64))
        for k, i in enumerate(items)
    ]
    assert len(set(file_names(twins).values())) == 2


# ── the main job and the audit ──────────────────────────────────────────────────────────────────


def test_the_exported_set_runs_through_the_main_job(
    verified: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", f"out={verified}"]) == 0
    folder = verified / "export" / "test"
    words = [
        "data=ref_adv_s",
        f"data.path={folder}",
        "perturb=[bow,descriptor_deletion]",
        "tracking=none",
        f"out={tmp_path / 'results'}",
    ]
    assert main_job.main(words) == 0
    said = capsys.readouterr().out
    assert "bow" in said
    cells = list((tmp_path / "results" / "cells").glob("*/summary.json"))
    assert len(cells) == 2
    assert all(json.loads(c.read_text())["planned"] == 18 for c in cells)


def test_the_audit_runs_the_ablations_on_both_sets_and_states_the_difference(
    verified: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", f"out={verified}"]) == 0
    words = ["audit.against=[shapes]", "audit.run=['tracking=none','limit=18']"]
    assert main(["audit", f"out={verified}", *words]) == 0
    said = capsys.readouterr().out
    assert "new set (18 expressions" in said
    for operator in ("bow", "fixed", "descriptor_deletion"):
        assert f"{operator}, new set against shapes" in said
    told = json.loads((verified / "audit" / "audit.json").read_text())
    assert {t["operator"] for t in told} == {"bow", "fixed", "descriptor_deletion"}


def test_a_stopped_audit_stops(verified: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["export", f"out={verified}"]) == 0
    monkeypatch.setattr(main_job, "main", lambda words: main_job.INTERRUPTED)
    assert main(["audit", f"out={verified}"]) == 130


def estimate(value: float | None, half: float | None = 0.05, images: int = 40) -> Estimate:
    low, high = (None, None) if value is None or half is None else (value - half, value + half)
    return Estimate(value, low, high, 100, images, note="one image" if half is None else "")


def test_the_difference_of_two_drops_is_welch_by_hand() -> None:
    from scipy.stats import t

    c = contrast("bow", "other", estimate(-0.30, 0.06, 50), estimate(-0.10, 0.04, 30))
    a, b = 0.06 / t.ppf(0.975, 49), 0.04 / t.ppf(0.975, 29)
    df = (a**2 + b**2) ** 2 / (a**4 / 49 + b**4 / 29)
    half = t.ppf(0.975, df) * (a**2 + b**2) ** 0.5
    assert (c.difference, c.low, c.high) == (
        pytest.approx(-0.2),
        pytest.approx(-0.2 - half),
        pytest.approx(-0.2 + half),
    )
    assert c.verdict == "harder to shortcut"
    assert "-30.0 against -10.0, difference -20.0" in sentence(c)


@pytest.mark.parametrize(
    ("new", "other", "verdict"),
    [
        (estimate(-0.1), estimate(-0.4), "easier to shortcut"),
        (estimate(-0.1), estimate(-0.12), "no difference shown"),
        (estimate(-0.1, None), estimate(-0.1), "can't be said"),
        (estimate(None), estimate(-0.1), "can't be said"),
        (estimate(0.0, 0.0), estimate(0.0, 0.0), "can't be said"),
    ],
)
def test_the_verdict_goes_by_the_interval_alone(new: Estimate, other: Estimate, verdict: str) -> None:
    assert contrast("bow", "other", new, other).verdict.startswith(verdict)


def test_boxes_survive_the_round_trip_to_the_digit(verified: Path) -> None:
    assert main(["export", f"out={verified}"]) == 0
    gold = {i.expression: i.gold for i in load_items(verified, load_scenes(verified))}
    for e in data(f"data.path={verified / 'export' / 'test'}"):
        assert isinstance(e.target, Box)
        assert e.target == gold[e.expression] or e.expression in gold
