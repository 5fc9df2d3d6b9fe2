"""Google Gemini: generateContent and streamGenerateContent."""

from wireglot.dialects.gemini.dialect import DIALECT

__all__ = ["DIALECT"]
