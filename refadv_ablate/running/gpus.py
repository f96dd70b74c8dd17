"""One GPU for each job process of a local sweep: a lock a device, held as long as the process lives."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from refadv_ablate.errors import UserError

_held: list[FileLock] = []


def take_one(gpus: Sequence[int | str], folder: Path, patience: float = 60.0) -> str:
    """Takes the first free device for this process and makes it the only one that CUDA sees.

    A process that holds one keeps it: CUDA can't change devices once it has begun. Raises UserError
    when all stay taken for `patience` seconds, since then more jobs run at once than there are devices.
    """
    if _held:
        return os.environ["CUDA_VISIBLE_DEVICES"]
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    while True:
        for gpu in gpus:
            lock = FileLock(folder / f"gpu-{gpu}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            _held.append(lock)
            os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
            return str(gpu)
        if time.monotonic() > deadline:
            raise UserError(
                f"all of gpus={list(gpus)} are taken; set hydra.launcher.n_jobs to {len(gpus)} or fewer"
            )
        time.sleep(0.2)
