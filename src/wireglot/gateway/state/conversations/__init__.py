"""Conversations stored by the gateway, for every dialect, and their sessions."""
