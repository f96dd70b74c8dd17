"""Tables, figures, galleries and pages of what was found; `run` is the command `report`."""

from __future__ import annotations

from typing import Any


def run(cfg: Any) -> int:
    """See report.command."""
    from refadv_ablate.report import command

    return command.run(cfg)
