"""Files that were cut short heal themselves; a finished command needs no place to write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from refadv_ablate.cli import main
from refadv_ablate.errors import UserError, printable
from refadv_ablate.running import launch

WORDS = ["perturb=bow", "model=listener", "data=shapes", "data.n=4", "gallery=0", "pages=false"]


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFADV_SWEEP", "")
    assert run() == 0
    (folder,) = tmp_path.glob("results/cells/*")
    return folder


def run() -> int:
    return main([*WORDS, "tracking=none", "progress=off"])


@pytest.mark.parametrize("name", ["summary.json", "status.json"])
@pytest.mark.parametrize("keep", [0, 25])
def test_a_file_that_was_cut_short_is_made_again(cell: Path, name: str, keep: int) -> None:
    whole = (cell / name).read_bytes()
    summary = json.loads((cell / "summary.json").read_text())["deltas"]
    (cell / name).write_bytes(whole[:keep])
    assert run() == 0
    assert json.loads((cell / "summary.json").read_text())["deltas"] == summary
    assert json.loads((cell / "status.json").read_text())["state"] == "done"


@pytest.mark.parametrize("lines", [1, 3])
def test_texts_that_were_cut_at_the_end_of_a_line_are_made_whole(cell: Path, lines: int) -> None:
    (texts,) = cell.parents[1].glob("texts/*.jsonl")
    whole = texts.read_bytes()
    texts.write_bytes(b"".join(whole.splitlines(keepends=True)[:lines]))
    (cell / "status.json").unlink()
    assert run() == 0
    assert texts.read_bytes() == whole


def test_texts_that_were_cut_and_do_not_say_how_long_they_were_are_refused(
    cell: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (texts,) = cell.parents[1].glob("texts/*.jsonl")
    texts.write_bytes(texts.read_bytes().splitlines(keepends=True)[0])
    texts.with_suffix(".lines").unlink()  # as version 0.1 left them
    (cell / "status.json").unlink()
    assert run() == 2
    assert "the texts of bow end before the data does" in capsys.readouterr().err


@pytest.mark.parametrize("keep", [0, 300])
def test_texts_that_were_cut_short_are_made_whole(cell: Path, keep: int) -> None:
    (texts,) = cell.parents[1].glob("texts/*.jsonl")
    whole = texts.read_bytes()
    texts.write_bytes(whole[:keep])
    (cell / "status.json").unlink()
    assert run() == 0
    assert texts.read_bytes() == whole


def test_a_finished_command_answers_from_a_folder_that_cannot_be_written(
    cell: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(out: Path) -> None:
        raise UserError(f"out={out} can't be written to")

    monkeypatch.setattr(launch, "_check_writable", refuse)
    before = {path: path.read_bytes() for path in cell.parents[2].rglob("*") if path.is_file()}
    capsys.readouterr()
    assert run() == 0
    assert "bow" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in cell.parents[2].rglob("*") if path.is_file()} == before
    (cell / "status.json").unlink()
    assert run() == 2
    assert "can't be written to" in capsys.readouterr().err


def test_a_finished_sweep_answers_from_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(out: Path) -> None:
        raise UserError(f"out={out} can't be written to")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFADV_SWEEP", "")
    for model in ("listener", "listener_deaf"):
        assert main([*WORDS, f"model={model}", "tracking=none", "progress=off"]) == 0
    monkeypatch.setattr(launch, "_check_writable", refuse)
    sweep = ["-m", *WORDS, "model=listener,listener_deaf", "tracking=none", "progress=off"]
    capsys.readouterr()
    assert main(sweep) == 0
    said = capsys.readouterr().out
    assert "listener-deaf on shapes" in said and "Holm-adjusted over 2 cells" in said
    assert main([*sweep, "seed=0,1"]) == 2
    assert "can't be written to" in capsys.readouterr().err


def test_control_characters_are_written_out() -> None:
    assert printable("a\x1b[31mred\x9b\x07\r\nend\tx é") == "a\\x1b[31mred\\x9b\\x07\\x0d\nend\tx é"


def test_a_mistake_with_escape_codes_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perturb=bow", "\x1b[2Jx"]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said and "\\x1b[2J" in said


STOPPED_TWICE = """
import os, signal, sys, time
from refadv_ablate import cli

def stopped(words):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    finally:
        time.sleep(float(sys.argv[1]))  # putting things in order, while the second signal comes
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)

cli._dispatch = stopped
sys.exit(cli.main(["x=1"]))
"""


@pytest.mark.parametrize("later", ["0", "1.2"])
def test_a_second_signal_has_the_status_of_the_first(later: str) -> None:
    done = subprocess.run([sys.executable, "-c", STOPPED_TWICE, later], capture_output=True, text=True)
    assert done.returncode == 130 and "Traceback" not in done.stderr
