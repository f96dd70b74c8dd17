"""Verification by people: items, pages, answers, agreement, and Label Studio."""
