"""Checks on the head of a request: host, origin, content type."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.settings import ServerSettings, Settings
from wireglot.http.application import Head, Headers, Refusal

_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = ("application/json",)
_TELEMETRY: Final = ("application/json", "application/x-protobuf")
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
PAGE_HEADERS: Final = frozenset({"origin", "sec-fetch-site"})
"""Headers that only browsers send, for their pages."""


@lru_cache(maxsize=1024)
def host_name(value: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    if value.startswith("["):
        return value[1:].partition("]")[0].lower()
    return value.rpartition(":")[0].lower() if value.count(":") == 1 else value.lower()


@lru_cache(maxsize=4096)
def is_loopback(address: str) -> bool:
    if address in ("", "localhost"):
        return True
    parsed = _address(address)
    return parsed is not None and parsed.is_loopback


_FORWARDED: Final = (
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port",
    "x-forwarded-server", "x-forwarded-by", "x-real-ip", "x-client-ip", "x-original-forwarded-for",
    "x-original-host", "x-envoy-external-address", "true-client-ip", "cf-connecting-ip", "fly-client-ip",
)  # fmt: skip


def is_forwarded(head: Head) -> bool:
    """Whether a proxy sent it: then the client is remote, however local the connection looks."""
    return any(name in head.headers for name in _FORWARDED)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(parsed, "ipv4_mapped", None)
    return mapped or parsed


def check_host(head: Head, server: ServerSettings) -> None:
    """Raises for a Host that is not ours: a page that rebinds its name to this machine still sends its own
    name."""
    name = host_name(head.headers.get("host", ""))
    if name in server.hosts:
        return
    if is_loopback(head.peer):
        allowed = name in _LOCAL_NAMES or (is_loopback(name) and bool(name))
    else:
        # An address cannot be rebound; a name must be one of this server's.
        allowed = name == server.host.lower() or _address(name) is not None or name == _own_name()
    if not allowed:
        raise RequestError(
            "permission", "this Host is not allowed: add it to server.hosts", code="host_not_allowed"
        )


@lru_cache(maxsize=1)
def _own_name() -> str:
    return socket.gethostname().lower()


def check_origin(head: Head, server: ServerSettings) -> None:
    origin = head.headers.get("origin")
    if origin is not None and origin not in server.origins:
        host = head.headers.get("host", "")
        if origin not in (f"http://{host}", f"https://{host}"):
            raise RequestError(
                "permission",
                "this Origin is not allowed: add it to server.origins",
                code="origin_not_allowed",
            )
    if head.headers.get("sec-fetch-site") == "cross-site" and origin not in server.origins:
        raise RequestError("permission", "cross-site requests are refused", code="origin_not_allowed")


def check_body_form(head: Head, *, typed: bool = True, is_telemetry: bool = False) -> None:
    """JSON only: a page can send text/plain without a preflight, but never application/json. Not `typed`: a
    body without a content type is also accepted if the request has an `authorization`, which needs a
    preflight as well, or is sent by curl (`-d`): a page needs a preflight to set another user agent.
    `is_telemetry`: OpenTelemetry may also be binary, and compressed."""
    headers = head.headers
    default = "" if typed or "authorization" not in headers else "application/json"
    kind, _, rest = headers.get("content-type", default).partition(";")
    kind = kind.strip().lower()
    by_curl = not typed and kind == _FORM and headers.get("user-agent", "").startswith("curl/")
    kinds = _TELEMETRY if is_telemetry else _JSON
    if kind not in kinds and not (by_curl and PAGE_HEADERS.isdisjoint(headers)):
        expected = " or ".join(kinds)
        raise RequestError("media", f"content-type: expected {expected}", code="unsupported_media_type")
    charset = rest.lower().partition("charset=")[2].strip(' "')
    if charset and charset not in ("utf-8", "utf8"):
        raise RequestError("media", "content-type: expected UTF-8", code="unsupported_media_type")
    if not is_telemetry and headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise RequestError(
            "media", "content-encoding: compressed requests are not supported", code="unsupported_media_type"
        )


def cors_preflight(head: Head, settings: Settings) -> Refusal | None:
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


_RANDOM_BYTES: Final = 8
"""Unique among all requests of the same second, of every process."""


def new_request_id(clock: Callable[[], float] = time.time) -> str:
    """An id that begins with the second of the request. Rows of a store are ordered by id: those of one
    moment are neighbours, and a batch of them touches a few pages. With fully random ids each row touches a
    different page, which is read, written to the log and copied back: ten times the bytes."""
    return f"req_{int(clock()):08x}{os.urandom(_RANDOM_BYTES).hex()}"
