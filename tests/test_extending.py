"""The worked examples of docs/extending.md, put where the document says and run as it says."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from refadv_ablate import assets
from refadv_ablate.cli import main
from refadv_ablate.parsing import scoring

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S))
SAID = {
    "An operator": "last_words",
    "A model family": "My-VL-2B",
    "An engine": "bow",
    "A data set": "first_shapes",
    "A metric": "tight",
    "A command": "words: the",
}


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", SECTIONS[section], re.M | re.S)


def place(code: str) -> str:
    """The path in a block's first comment."""
    return code.splitlines()[0].removeprefix("# ")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A conf/ of its own, into which examples can be written, and modules that are gone afterwards."""
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    real = assets.asset_dir
    monkeypatch.setattr(assets, "asset_dir", lambda name: tmp_path / "conf" if name == "conf" else real(name))
    monkeypatch.setattr(scoring, "OF_IOU", scoring.OF_IOU)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules), dict(scoring.OF_IOU)
    yield tmp_path
    for name in set(sys.modules) - before[0]:
        if name in {place(code)[:-3].replace("/", ".") for s in SECTIONS for code in blocks(s, "python")}:
            del sys.modules[name]
    scoring.OF_IOU.clear()
    scoring.OF_IOU.update(before[1])


def put(code: str, folder: Path) -> None:
    """A module of this code, imported under the name that its path gives it."""
    name = place(code)[:-3].replace("/", ".")
    path = folder / place(code)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def test_every_kind_of_part_has_its_example():
    assert set(SECTIONS) == set(SAID)


@pytest.mark.parametrize("section", SAID)
def test_the_example_runs_as_the_document_says(section, checkout, capsys):
    for code in blocks(section, "python"):
        put(code, checkout)
    for text in blocks(section, "yaml"):
        (checkout / place(text)).write_text(text.split("\n", 1)[1], encoding="utf-8")
    (line,) = blocks(section, "bash")
    words = shlex.split(line.strip().replace("\\\n", " "))
    assert words[:3] == ["python", "-m", "refadv_ablate"]
    assert main(words[3:]) == 0
    written = "".join(p.read_text(encoding="utf-8") for p in checkout.glob("results/cells/*/summary.json"))
    assert SAID[section] in capsys.readouterr().out + written
