"""Ollama's native API."""
