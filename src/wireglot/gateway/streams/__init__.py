"""Translates streams or passes them through, chunk by chunk, without waiting."""
