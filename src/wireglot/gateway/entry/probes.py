"""What the gateway says of itself at its root."""

from __future__ import annotations

from collections.abc import Sequence

from wireglot import __version__
from wireglot.dialects.base import Probe, Surface


def root_page(surfaces: Sequence[Surface]) -> Probe:
    """People ask for it with a browser, Claude Code with HEAD before its first request
    (llm-gateway-protocol)."""
    endpoints = {surface.name: list(surface.client.endpoints) for surface in surfaces}
    return Probe(
        ("GET", "HEAD"),
        {
            "name": "wireglot",
            "version": __version__,
            "help": "point a client at this address: `wireglot run CLIENT` does, docs/clients.md tells how",
            "endpoints": {
                **endpoints,
                "models": ["GET /v1/models", "GET /v1beta/models"],
                "operations": ["GET /healthz", "GET /readyz", "GET /metrics"],
            },
        },
    )
