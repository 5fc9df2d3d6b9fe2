"""Codec of Anthropic's Messages API."""

from wireglot.dialects.anthropic.dialect import DIALECT

__all__ = ["DIALECT"]
