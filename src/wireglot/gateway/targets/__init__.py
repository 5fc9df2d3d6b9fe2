"""Resolves a model name to an ordered list of targets. Pure."""
