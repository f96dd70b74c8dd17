"""Tables of results."""

from __future__ import annotations

from refadv_ablate.report.console import console

__all__ = ["console"]
