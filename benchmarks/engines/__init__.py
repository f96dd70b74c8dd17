"""Real engines against each other: `python -m benchmarks.engines` (make engines) writes the table of docs/engines.md."""
