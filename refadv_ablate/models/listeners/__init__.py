"""Symbolic models for drawn shapes: they find the shapes in the pixels and resolve the expression by rule."""
