"""Anthropic Messages."""

from wireglot.dialects.anthropic.dialect import DIALECT

__all__ = ["DIALECT"]
