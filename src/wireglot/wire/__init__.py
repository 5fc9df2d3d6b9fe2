"""Bytes, frames and JSON text. No knowledge of LLMs."""
