"""Answers that need no relay of a conversation."""
