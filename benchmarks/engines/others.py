"""Engines that could not be run where this was measured, and why, as their packages say."""

from __future__ import annotations

from benchmarks.engines.page import Row

REASONS: dict[str, tuple[str, str]] = {
    "sglang": (
        "SGLang 0.5.23",
        "not installed: its kernels (sglang-kernel 0.4.10) come built for CUDA sm90 and sm100; those of "
        "its CPU backend are in no package and have to be compiled from its sources",
    ),
    "lmdeploy": (
        "LMDeploy 0.18.0",
        "not installed: it has no CPU device; its PyTorch engine takes cuda, ascend, maca or camb, and "
        "TurboMind is CUDA code",
    ),
    "llama.cpp": (
        "llama.cpp b11434",
        "not compiled: packages hold its sources, which take more than ten minutes; its converter was tried, "
        "does not know InternVLForConditionalGeneration, and stops at the tokenizer of tiny_qwen2_5_vl",
    ),
    "openvino": (
        "OpenVINO 2026.4",
        "not installed: optimum-intel 2.2 wants transformers below 5.6, where the checkpoints are of 5.24, "
        "and its OpenAI-compatible server is in none of its Python packages",
    ),
}
"""Name on the command line → name in the table, reason (2026-12-03)."""


def not_run(name: str) -> Row:
    """The line of the table."""
    shown, reason = REASONS[name]
    return Row(shown, "", not_run=reason)
