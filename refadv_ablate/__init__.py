"""Ablation and robustness harness for referring expression comprehension."""

__version__ = "0.1.0"
