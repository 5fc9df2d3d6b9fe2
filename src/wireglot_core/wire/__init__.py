"""Reads and writes bytes, stream frames and JSON text. No knowledge of LLMs."""
