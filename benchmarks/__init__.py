"""Benchmarks: each measures ours against a named alternative in the same run."""
