"""Helpers of the config: parts built from its nodes, and hints for names that aren't there."""
