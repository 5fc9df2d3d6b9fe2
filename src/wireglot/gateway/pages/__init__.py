"""Endpoints that need no model call."""
