"""What a browser asks before a page may call: only pages that were named are told that they may."""

from __future__ import annotations

from wireglot.gateway.settings import Settings
from wireglot.http.application import Head, Headers, Refusal


def preflight(head: Head, settings: Settings) -> Refusal | None:
    origin = head.headers.get("origin")
    if head.method != "OPTIONS" or origin is None or origin not in settings.server.origins:
        return None
    headers: Headers = [
        ("access-control-allow-origin", origin),
        ("access-control-allow-methods", "GET, POST, PATCH, DELETE"),
        ("access-control-allow-headers", head.headers.get("access-control-request-headers", "content-type")),
        ("access-control-max-age", "600"),
        ("vary", "origin"),
    ]
    return Refusal(204, headers, b"")
