"""What every answer tells about itself."""

from __future__ import annotations

from typing import Final

from wireglot.dialects.base import Surface
from wireglot.dialects.registry import surface
from wireglot.gateway.request.exchange import Exchange
from wireglot.http.application import Headers

JSON: Final = ("content-type", "application/json")


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
        headers += (("access-control-allow-origin", origin), ("vary", "origin"))
    if exchange.losses:
        features = ",".join(dict.fromkeys(loss.feature for loss in exchange.losses))
        headers.append(("x-wireglot-losses", features))
    headers += exchange.passed_back
    return headers
