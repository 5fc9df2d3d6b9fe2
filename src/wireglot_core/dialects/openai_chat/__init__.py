"""Codec of OpenAI's Chat Completions API, also for the many servers that speak it, such as Kimi's."""

from wireglot_core.dialects.openai_chat.dialect import DIALECT

__all__ = ["DIALECT"]
