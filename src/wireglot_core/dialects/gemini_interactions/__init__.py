"""Codec of Google's Gemini Interactions API: stateful answers made of steps."""

from wireglot_core.dialects.gemini_interactions.dialect import DIALECT

__all__ = ["DIALECT"]
