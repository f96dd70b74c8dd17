"""Figures: Δ with intervals, accuracy curves, data set statistics, and their common style."""
