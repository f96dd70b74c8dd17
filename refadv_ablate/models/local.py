"""What the engines on this machine share: devices, memory, and a quiet loading."""

from __future__ import annotations

import gc
import sys


def quiet() -> None:
    """No progress bars of transformers where nobody watches."""
    if not sys.stderr.isatty():
        from transformers.utils import logging

        logging.disable_progress_bar()


def best_device() -> str:
    """cuda, mps or cpu."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


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
