"""The wheel holds all that a run needs, and works outside the checkout; so does a bare checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """What pip would unpack into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
    return folder / "site"


def run(words, cwd, path):
    environment = {**os.environ, "PYTHONPATH": str(path)}
    words = [sys.executable, "-m", "refadv_ablate", *words]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=250)


def test_the_wheel_has_configs_recipes_templates_and_checkpoints(unpacked):
    inside = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    for pattern in ("conf", "experiments"):
        wanted = {p.relative_to(ROOT).as_posix() for p in (ROOT / pattern).rglob("*.yaml")}
        assert {f"refadv_ablate/{name}" for name in wanted} <= inside
    for name in (
        "refadv_ablate/py.typed",
        "perturbations/order.py",
        "refadv_ablate/conf/prompt_text/qwen/direct.txt",
    ):
        assert name in inside
    assert not any(name.startswith(("tests/", "benchmarks/")) or name.endswith(".pyc") for name in inside)


@pytest.mark.parametrize("kind", ["wheel", "checkout"])
def test_it_runs_from_any_folder(kind, unpacked, tmp_path):
    path = unpacked if kind == "wheel" else ROOT
    words = ["-m", "perturb=bow,fixed", "limit=6", "gallery=0", "tracking=none", "progress=off"]
    done = run(words, tmp_path, path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(p.read_text()) for p in (tmp_path / "results" / "cells").glob("*/summary.json")]
    assert [s["paired"] for s in found] == [6, 6]
    where = subprocess.run(
        [sys.executable, "-c", "import refadv_ablate; print(refadv_ablate.__file__)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(path)


def test_a_recipe_is_found_in_the_wheel(unpacked, tmp_path):
    done = run(["-m", "paper=table3_bag_of_words", "using=embedded", "--dry-run"], tmp_path, unpacked)
    assert done.returncode == 0, done.stderr
    assert "4 cells" in done.stdout, "two listeners, bow and the repeated original"
