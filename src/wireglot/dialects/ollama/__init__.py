"""Ollama's native API: `/api/chat` and `/api/generate`, with their models and streams of JSON lines."""

from wireglot.dialects.ollama.dialect import DIALECT

__all__ = ["DIALECT"]
