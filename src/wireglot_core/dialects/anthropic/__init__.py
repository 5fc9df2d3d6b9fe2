"""Codec of Anthropic's Messages API."""

from wireglot_core.dialects.anthropic.dialect import DIALECT

__all__ = ["DIALECT"]
