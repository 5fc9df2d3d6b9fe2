"""Codec of Google's Gemini API: generateContent and streamGenerateContent."""

from wireglot_core.dialects.gemini.dialect import DIALECT

__all__ = ["DIALECT"]
