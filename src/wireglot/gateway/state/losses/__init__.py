"""Losses of recent requests, stored for one hour."""
