"""Predictions from files, the store or the log, as comparisons recomputed from boxes."""
