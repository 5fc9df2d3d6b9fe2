"""One small request to a token server, answered quickly or not at all. It blocks: for threads only."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    BaseHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

import certifi
import msgspec

from wireglot_core.wire.json import BadJson, decode

TIMEOUT_SECONDS: Final = 10.0
# Bytes of an answer to a sign-in.
_MAX_ANSWER_BYTES: Final = 1024 * 1024


class Unreachable(Exception):
    """There was no answer. The message names the host and contains no secret."""


class WebAnswer(msgspec.Struct, frozen=True):
    """Also in the form that google-auth needs."""

    status: int
    headers: dict[str, str]
    data: bytes

    def document(self) -> dict[str, Any]:
        """The JSON object in the body; {} if it is not one."""
        try:
            value = decode(self.data)
        except BadJson:
            return {}
        return value if isinstance(value, dict) else {}


class _NoRedirects(HTTPRedirectHandler):
    """A secret is sent to no other host than the named one."""

    def redirect_request(self, *given: Any, **named: Any) -> None:
        return None


def ask(
    url: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    proxy: str = "",
) -> WebAnswer:
    """Returns an answer of any status."""
    request = Request(url, data=body, headers=dict(headers or {}), method=method)
    host = urlsplit(url).hostname or "an unknown host"
    try:
        with _opener(proxy).open(request, timeout=timeout or TIMEOUT_SECONDS) as answer:
            return WebAnswer(answer.status, _lower(answer.headers), answer.read(_MAX_ANSWER_BYTES))
    except HTTPError as refused:
        with refused:
            return WebAnswer(refused.code, _lower(refused.headers), refused.read(_MAX_ANSWER_BYTES))
    except (URLError, OSError, ValueError) as fault:
        reason = fault.reason if isinstance(fault, URLError) else fault
        raise Unreachable(f"{host} could not be reached ({type(reason).__name__})") from None


def post_form(url: str, fields: Mapping[str, str], proxy: str = "") -> WebAnswer:
    return ask(
        url,
        method="POST",
        body=urlencode(fields).encode(),
        headers={"content-type": "application/x-www-form-urlencoded", "accept": "application/json"},
        proxy=proxy,
    )


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _opener(proxy: str) -> OpenerDirector:
    """Proxies from the environment are not used, as everywhere in this program."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    handlers: list[BaseHandler] = [
        ProxyHandler({"http": proxy, "https": proxy} if proxy else {}),
        HTTPSHandler(context=context),
        _NoRedirects(),
    ]
    return build_opener(*handlers)
