"""Tiny checkpoints, each built once a session, and requests about real or drawn images through the YAMLs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builder's name in `tiny` → the folder of its checkpoint."""
    from tests.models import tiny

    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        import torch

        torch.set_num_threads(1)
        if name not in made:
            made[name] = getattr(tiny, name)(tmp_path_factory.mktemp("tiny") / name)
        return made[name]

    return get


@pytest.fixture(scope="session")
def composed() -> Callable[..., Any]:
    """Overrides → the parts of a job, on real images where they lie beside the checkout."""
    from refadv_ablate.assets import compose
    from refadv_ablate.running.parts import parts_of

    folder = Path(os.environ.get("REFADV_SHARED", ROOT.parent / "shared")) / "data" / "ref_adv_s_sample"
    data = ["data=ref_adv_s", f"data.path={folder}"] if folder.is_dir() else ["data=shapes"]

    def get(*overrides: str) -> Any:
        return parts_of(compose([*data, "perturb=[identity,bow]", "tracking=none", *overrides]))

    return get
