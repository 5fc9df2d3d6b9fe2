"""What the endpoints of signing in read from a request, and the responses that they share."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl

from wireglot.gateway.entry.guard import host_name, is_forwarded, is_loopback
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.access import SECURITY_HEADERS
from wireglot.gateway.process_limits import KIB
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import LoginSettings
from wireglot.http.application import Head, Headers
from wireglot_core.dialects.registry import COMMON

# Bytes of a form of the sign-in pages.
MAX_BODY_BYTES: Final = 16 * KIB
_FORM: Final = "application/x-www-form-urlencoded"
# Fields of a form of the sign-in pages.
_MAX_FIELDS: Final = 64
_HOST: Final = re.compile(r"[A-Za-z0-9.\[\]:]{1,64}")
UNCACHED: Final[Headers] = [("cache-control", "no-store"), ("pragma", "no-cache")]
_PAGE_CSP: Final = (
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_PAGE_HEADERS: Final[Headers] = [
    *UNCACHED,
    *(header for header in SECURITY_HEADERS if header[0] != "referrer-policy"),
    # With no-referrer, browsers send no origin for our own forms (Origin: null).
    ("referrer-policy", "same-origin"),
    ("content-security-policy", _PAGE_CSP),
]
BUSY: Final = "Too many sign-in attempts came from your network, which other people may share."

Handler = Callable[[PageRequest, LoginSettings], Awaitable[None]]


class OAuthError(Exception):
    """An error response as RFC 6749 defines it."""

    def __init__(self, error: str, description: str = "", status: int = 400, wait: float = 0.0) -> None:
        super().__init__(error)
        self.error = error
        self.description = description
        self.status = status
        self.wait = wait


def base_url(head: Head, login: LoginSettings) -> str:
    """The gateway's own address. A Host header comes from the client: it is only trusted on this machine."""
    if login.public_url:
        return login.public_url
    host = head.headers.get("host", "")
    is_plain = _HOST.fullmatch(host) is not None and bool(host_name(host)) and is_loopback(host_name(host))
    if not is_plain or is_forwarded(head):
        raise RequestError("not_found", "signing in needs login.public_url", code="unknown_url")
    return f"http://{host}"


def is_same_site(head: Head, base: str) -> bool:
    """Whether a form was sent by our page."""
    site = head.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return head.headers.get("origin", base) == base


def form_fields(page: PageRequest) -> dict[str, str]:
    """The fields of a form; of a repeated field the first one. Unknown fields are ignored (RFC 6749, 3.2)."""
    kind = page.head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM and (kind or page.body):
        raise _bad_form(page)
    try:
        pairs = parse_qsl(
            page.body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
        )
    except ValueError:
        raise _bad_form(page) from None
    return dict(reversed(pairs))


def _bad_form(page: PageRequest) -> Exception:
    if page.asked.verb == "login.decide":
        return RequestError("bad", "expected a form", code="invalid_value")
    return OAuthError("invalid_request", f"expected a form ({_FORM})")


def send_page(page: PageRequest, body: bytes, status: int = 200, more: Headers | None = None) -> None:
    page.record.answered(status)
    headers: Headers = [("content-type", "text/html; charset=utf-8"), *_PAGE_HEADERS]
    page.reply.send(status, [*headers, *identity(page.record.id, COMMON), *(more or [])], body)


def redirect(page: PageRequest, url: str, more: Headers | None = None) -> None:
    page.record.answered(303)
    headers: Headers = [("location", url), *_PAGE_HEADERS, *(more or [])]
    page.reply.send(303, [*headers, *identity(page.record.id, COMMON)], b"")


def retry_after(seconds: float) -> tuple[str, str]:
    return "retry-after", str(max(1, round(seconds)))
