"""Bytes, frames and JSON text. Nothing in here knows what a language model is."""
