"""Mistakes in a command's set-up: one sentence, and no run in the log until something was answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from refadv_ablate.cli import main
from refadv_ablate.errors import UserError
from refadv_ablate.running import launch
from refadv_ablate.running.job import set_up_wrongly
from tests.models.server import BOX, Fail, Say, Server


class Log:
    """A tracker that remembers which calls ended a run."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def open_sweep(self, *_: Any) -> str:
        return "sweep"

    def open_cell(self, *_: Any) -> str:
        return "cell"

    def where(self, parent: str) -> list[str]:
        return []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.ends.append(f"{name} {args[0]}" if args else name)


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> tuple[int, list[str]]:
    log = Log()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFADV_SWEEP", "")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(launch, "tracker_of", lambda config: log)
    shared = ("perturb=bow", "data=shapes", "data.n=4", "gallery=0", "progress=off", "pages=false")
    return main([*words, *shared]), log.ends


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["model=qwen3_vl", "data=shapes", "backend=openai"], "needs the address of a server"),
        (["model=qwen3_vl", "data=shapes", "backend=openai", "backend.base_url=h:1/v1"], "needs http://"),
        (["model=gpt4o", "data=shapes"], "needs an API key in the environment variable OPENAI_API_KEY"),
        (["-m", "data=shapes", "model=qwen3_vl", "backend=openai"], "needs the address of a server"),
    ],
)
def test_a_mistake_leaves_no_run(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, ends = run(monkeypatch, tmp_path, *words)
    said = capsys.readouterr()
    assert status == (1 if "-m" in words else 2)
    assert says in " ".join((said.out + said.err).split())
    assert ends in ([], ["prepare", "discard cell", "discard sweep"])  # found before the log, or with it


def test_a_server_that_ends_the_run_after_an_answer_leaves_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(lambda n, body: Say(BOX) if n < 1 else Fail(401, "key withdrawn")) as server:
        words = (
            "model=qwen3_vl",
            "data=shapes",
            "backend=openai",
            f"backend.base_url={server.url}",
            "backend.concurrency=1",
        )
        status, ends = run(monkeypatch, tmp_path, *words)
    assert status == 2
    assert ends == ["prepare", "fail_cell cell", "fail_cell sweep"]


def test_a_fault_of_ours_is_no_mistake_in_the_command() -> None:
    assert set_up_wrongly(UserError("x"))
    assert not set_up_wrongly(ValueError("x")) and not set_up_wrongly(KeyboardInterrupt())
