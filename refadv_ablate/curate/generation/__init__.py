"""Expressions written by an LLM: prompts, answer schemas, checks."""
