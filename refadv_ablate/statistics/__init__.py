"""What the scores say: accuracies, Δ with intervals and tests, slices, warnings, power and calibration."""
