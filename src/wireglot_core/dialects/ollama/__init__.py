"""Codec of Ollama's native API: `/api/chat` and `/api/generate`, with their streams of JSON lines."""

from wireglot_core.dialects.ollama.dialect import DIALECT

__all__ = ["DIALECT"]
