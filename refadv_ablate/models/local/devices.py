"""What the engines on this machine share: devices, memory, and a quiet loading."""

from __future__ import annotations

import gc
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version


def quiet() -> None:
    """No progress bars of transformers where nobody watches."""
    if not sys.stderr.isatty():
        from transformers.utils import logging

        logging.disable_progress_bar()


@cache
def versioned(package: str) -> str:
    """The engine as an answer names it: package and installed version, such as "transformers 5.24.0"."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (version not told)"


def best_device() -> str:
    """cuda, mps or cpu."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def dtype_used(dtype: str | None, device: str | None, spread: bool = False) -> str:
    """What "auto" or None comes to: float32 on the CPU, else "auto", the checkpoint's own.

    spread: whether accelerate places the weights. Answers differ between the two, so that an identity
    names this and not what was configured.
    """
    if dtype not in (None, "auto"):
        return str(dtype)
    return "auto" if spread or (device or best_device()).split(":")[0] != "cpu" else "float32"


def out_of_memory(error: Exception) -> bool:
    """Whether this is a lack of memory: the accelerator's, or the CPU allocator's."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)


def free_memory() -> None:
    """Gives cached memory of the accelerator back."""
    gc.collect()
    if "torch" in sys.modules:
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
