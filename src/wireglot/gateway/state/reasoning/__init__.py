"""Reasoning of previous turns, stored for clients that do not send it back."""
