"""Real engines against each other: `make engines` writes the tables of docs/engines.md."""
