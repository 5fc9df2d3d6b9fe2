"""OpenAI's Chat Completions API, and the many servers that speak it (Kimi's among them)."""

from wireglot.dialects.openai_chat.dialect import DIALECT

__all__ = ["DIALECT"]
