"""Stored responses: previous turns, storage and retrieval."""
