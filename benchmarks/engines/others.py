"""Engines that were tried and could not be run here, and why."""

from __future__ import annotations

from benchmarks.engines.page import Row

REASONS: dict[str, tuple[str, str]] = {
    "sglang": ("SGLang", "not tried yet"),
    "lmdeploy": ("LMDeploy", "not tried yet"),
    "llama.cpp": ("llama.cpp", "not tried yet"),
    "openvino": ("OpenVINO", "not tried yet"),
}


def not_run(name: str) -> list[Row]:
    """The line of the table."""
    shown, reason = REASONS[name]
    return [Row(shown, "", not_run=reason)]
