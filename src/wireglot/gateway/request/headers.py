"""What every answer tells about itself."""

from __future__ import annotations

from typing import Final

from wireglot.dialects.base import Surface
from wireglot.dialects.registry import surface
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.told_losses import DETAILS, LOSSES, told_losses, wants_details
from wireglot.http.application import Headers

JSON: Final = ("content-type", "application/json")
ESTIMATE: Final = ("x-wireglot-estimate", "true")
"""On an answer with a count of tokens that no provider reported."""

_EXPOSED: Final = ", ".join(
    ("x-wireglot-request-id", "x-request-id", "x-wireglot-route", LOSSES, DETAILS, "retry-after")
)
"""What a page in a browser may read of an answer: all others are hidden from it."""


def identity(request_id: str, dialect_name: str) -> Headers:
    """Under which id an answer is found in the log, by every name that clients look for."""
    return _identity(request_id, surface(dialect_name))


def _identity(request_id: str, spoken: Surface) -> Headers:
    headers: Headers = [("x-wireglot-request-id", request_id), ("x-request-id", request_id)]
    for name in spoken.client.identity_headers:
        headers.append((name, request_id))
    return headers


def common_headers(exchange: Exchange) -> Headers:
    record, job = exchange.record, exchange.job
    headers = _identity(record.id, job.surface)
    if record.provider:
        headers.append(("x-wireglot-route", f"{record.provider}/{record.upstream_model}"))
    origin = job.head.headers.get("origin")
    if origin is not None and origin in job.settings.server.origins:
        headers += (
            ("access-control-allow-origin", origin),
            ("access-control-expose-headers", _EXPOSED),
            ("vary", "origin"),
        )
    if exchange.losses:
        headers += told_losses(exchange.losses, details=wants_details(job.head))
    if exchange.estimates_input:
        headers.append(ESTIMATE)
    headers += exchange.passed_back
    return headers
