"""Resolves a model to targets. Pure."""
