"""A curation folder with composed expressions, made by the real stages and a scripted writer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from refadv_ablate.curate.cli import main
from tests.chat_server import chat_server
from tests.curate.writer import write


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("curation") / "out"
    words = [f"out={out}", "source=drawn", "source.n=3", "llm=openai", "llm.model=scripted"]
    with chat_server(write) as chat:
        for stage in ("prepare", "judge", "compose"):
            assert main([stage, *words, f"llm.base_url={chat.url}", "limit=3"]) == 0
    return out


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """A copy to write to."""
    return Path(shutil.copytree(made, tmp_path / "out"))
