"""A job process of a local sweep ends with its launcher: nobody else would stop it from asking on and on."""

from __future__ import annotations

import os
import signal
import threading
import time

LAST_WORDS = 15.0
"""Seconds for a job to write down that it was stopped."""
_launchers: list[int] = []
"""The one that this process watches."""


def end_with(launcher: int) -> None:
    """Interrupts this process, as Ctrl-C does, once the launcher (its parent's process id) is gone.

    Processes that are no children of the launcher, such as those of a cluster, are let alone: their
    scheduler ends them. Raises KeyboardInterrupt where a watched launcher is gone already.
    """
    if not _launchers and os.getppid() == launcher:
        _launchers.append(launcher)
        threading.Thread(target=_watch, args=(launcher,), name="launcher", daemon=True).start()
    elif _launchers and os.getppid() != _launchers[0]:
        raise KeyboardInterrupt


def _watch(launcher: int) -> None:
    while os.getppid() == launcher:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(LAST_WORDS)
    os._exit(130)  # a worker of a pool would wait for its next job, and hold its device
