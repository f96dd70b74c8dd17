"""Engines: requests in, replies out."""
