"""Adapts a request to what an endpoint and its model accept."""
