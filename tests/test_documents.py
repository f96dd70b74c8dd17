"""README and documents, followed word for word: commands as they are written, pages, links, the site."""

from __future__ import annotations

import contextlib
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from refadv_ablate import cli
from refadv_ablate.curate import cli as curate
from tests.chat_server import chat_server
from tests.curate.writer import write_as_the_paper

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)( run)?\n(.*?)^```", re.M | re.S)
PROGRAM = ["python", "-m", "refadv_ablate"]
CURATE = ["python", "-m", "refadv_ablate.curate"]
SERVER = "http://localhost:8000/v1"
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)]*)?\)")


def commands(text: str) -> list[list[str]]:
    """The words of each command of a shell block: continued lines joined, comments and variables left out."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words:
            found.append(words)
    return found


def written() -> list[tuple[str, list[str]]]:
    """(page, words) of every call of the program in a shell block, those with placeholders left out."""
    pages = [page for page in PAGES if page.name != "extending.md"]  # its own test writes its parts first
    return [
        (page.relative_to(ROOT).as_posix(), words[3:])
        for page in pages
        for language, _, body in BLOCK.findall(page.read_text(encoding="utf-8"))
        if language in ("bash", "sh", "")
        for words in (commands(body) if "python -m refadv_ablate" in body else [])
        if words[:3] == PROGRAM and not any(word in ("…", "COMMAND") for word in words)
    ]


def test_there_are_commands_to_test():
    assert len(written()) > 25
    assert {page for page, _ in written()} >= {"README.md", "docs/tutorials/reproduce.md"}


@pytest.mark.parametrize(("page", "words"), written(), ids=lambda value: str(value)[:70])
def test_every_command_is_one_that_the_program_takes(page, words, monkeypatch, capsys):
    """Each key and option of it exists and composes; nothing is run."""
    heard = []

    def nothing(*told, **_more):
        heard.append(told)
        return 0

    monkeypatch.setattr(cli, "_sweep", nothing)
    if words[0] in cli.commands():
        module = importlib.import_module(f"refadv_ablate.commands.{words[0]}")
        monkeypatch.setattr(module, "run", nothing)
    assert cli.main(words) == 0, f"{page}: {capsys.readouterr().err}"
    assert heard or {"--help", "--version"} & set(words)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_it_is_written(page, tmp_path, monkeypatch, capsys):
    """Its blocks marked `run`, one after another in one folder; the others need weights or data.

    A scripted server stands where a page names one, and three scripted annotators open the page of `verify`.
    """
    monkeypatch.chdir(tmp_path)
    ran = 0
    blocks = [(language, body) for language, run, body in BLOCK.findall(page.read_text("utf-8")) if run]
    with contextlib.ExitStack() as stack:
        there = ""
        if any(SERVER in body for _, body in blocks):
            pytest.importorskip("fastapi", reason="the annotation page comes with the curate extra")
            there = stack.enter_context(chat_server(write_as_the_paper)).url
            monkeypatch.setattr("refadv_ablate.curate.annotation.server.serve", three_annotators)
        for language, body in blocks:
            ran += 1
            if language == "python":
                exec(compile(body, str(page), "exec"), {"__name__": "__main__"})
                continue
            for words in commands(body.replace(SERVER, there)):
                main = {tuple(PROGRAM): cli.main, tuple(CURATE): curate.main}[tuple(words[:3])]
                monkeypatch.setattr(sys, "argv", ["refadv-ablate", *words[3:]])
                assert main(words[3:]) == 0, capsys.readouterr().err
    assert ran
    assert list(tmp_path.iterdir())


def three_annotators(app, host, port):
    """Stands in for the server of the page: all answer whatever there is; ben says no to his first."""
    from fastapi.testclient import TestClient

    client = TestClient(app, base_url=f"http://{host}:{port}")
    for name in client.get("/api/setup").json()["annotators"]:
        first = True
        while (told := client.get("/api/next", params={"annotator": name}).json())["item"]:
            about = {"annotator": name, "item": told["item"]}
            assert (
                client.post("/api/answer", json={"kind": "blind", "none": True, **about}).status_code == 200
            )
            said = {"kind": "verdict", "correct": not (first and name == "ben"), "hard": True, **about}
            assert client.post("/api/answer", json=said).status_code == 200
            first = False


def test_the_day_of_curation_says_what_came_of_it(capsys, tmp_path, monkeypatch):
    page = next(page for page in TUTORIALS if page.stem == "curate")
    test_a_tutorial_runs_as_it_is_written(page, tmp_path, monkeypatch, capsys)
    said = capsys.readouterr().out
    assert "48 expressions: 47 kept, 1 dropped, 0 open" in said
    assert "test: 47 expressions" in said


OFFLINE = [words for page, words in written() if page == "README.md" and {*words} & {"power", "--help"}]


@pytest.mark.parametrize("words", OFFLINE, ids=lambda words: words[0])
def test_what_the_readme_says_runs_offline_does(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 0
    assert len(capsys.readouterr().out) > 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_that_are_there(page):
    for target, _ in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_site_builds_and_every_link_and_name_of_it_is_found(tmp_path):
    pytest.importorskip("mkdocs", reason="the site's generator comes with the dev extra")
    words = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "s"),
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reference = (tmp_path / "s" / "api" / "inference.html").read_text(encoding="utf-8")
    assert "refadv_ablate.statistics.contrasts.contrast" in reference
    assert "b − a with its 95% interval" in reference
    tutorial = (tmp_path / "s" / "tutorials" / "own_data.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in tutorial


def test_the_papers_that_go_with_a_release_agree_with_it():
    import tomllib

    import yaml

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0" and cited["message"] and cited["authors"]
    assert cited["version"] == project["version"] and cited["license"] == project["license"]
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")[:200]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {project['version']}" in changes and "## Unreleased" in changes
    for card in (ROOT / "refadv_ablate" / "checkpoints").glob("*/README.md"):
        assert re.search("licence.{0,200}Apache-2.0", card.read_text(encoding="utf-8"), re.I | re.S), card
