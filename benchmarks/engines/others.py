"""Engines that could not be run where this was measured, and why, as their packages say."""

from __future__ import annotations

from benchmarks.engines.page import Row

REASONS: dict[str, tuple[str, str]] = {
    "sglang": (
        "SGLang 0.5.23",
        "given up after 13 minutes: installed without its dependencies, its server asked for one missing "
        "module after the other (eight were added) before its own code ran. Its kernels (sglang-kernel "
        "0.4.10) come built for CUDA sm90 and sm100; those of its CPU backend are in no package and have to "
        "be compiled from its sources",
    ),
    "lmdeploy": (
        "LMDeploy 0.18.0",
        "given up after 7 minutes: installed without its dependencies, its server asked for one missing "
        "module after the other (five were added). It has no CPU device: its PyTorch engine takes cuda, "
        "ascend, maca or camb, and TurboMind is CUDA code",
    ),
    "llama.cpp": (
        "llama.cpp b11434",
        "not compiled: packages hold its sources, which take more than ten minutes; its converter was tried, "
        "does not know InternVLForConditionalGeneration, and stops at the tokenizer of tiny_qwen2_5_vl. The "
        "one package with a compiled library (llama-cpp-cffi 0.4.42) knows Qwen2-VL and not Qwen2.5-VL",
    ),
}
"""Name on the command line → name in the table, reason (2026-12-03)."""


def not_run(name: str) -> Row:
    """The line of the table."""
    shown, reason = REASONS[name]
    return Row(shown, "", not_run=reason)
