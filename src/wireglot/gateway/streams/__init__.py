"""Bytes in, bytes out; nothing waits here."""
