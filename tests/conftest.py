"""What every test shares: no hub, one thread, no progress bars, and the real cases where they lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real cases and published numbers, which lies beside a full checkout."""
    folder = Path(os.environ.get("REFADV_SHARED", ROOT.parent / "shared"))
    if not (folder / "data" / "README.md").is_file():
        pytest.skip(f"the shared data folder is not here ({folder}); set REFADV_SHARED to run this")
    return folder
