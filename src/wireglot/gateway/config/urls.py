"""Base URLs: their valid form, and each dialect's convention."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from wireglot.gateway.config.problems import shown
from wireglot.gateway.config.table import Table

EXPECTED: Final = "a URL that starts with https:// or http://"
_ENDPOINT: Final = re.compile(r"/(chat/completions|responses|messages|models|v1internal:?\w*)/?$")
_HOST: Final = re.compile(r"[A-Za-z0-9.:_{}-]+")


def base_url(table: Table, name: str, dialect: str) -> str:
    """The URL of a field; "" (and a problem) if it is invalid."""
    text = table.raw(name)
    if text is None:
        return ""
    if type(text) is not str:
        fault: tuple[str, str] | None = "text", shown(text)
    elif not text:
        fault = EXPECTED, "empty text"
    else:
        fault = _fault(text, dialect)
    if fault is None:
        return str(text.rstrip("/"))
    table.wrong(name, *fault)
    return ""


def _fault(text: str, dialect: str) -> tuple[str, str] | None:
    parts = split(text)
    if parts is None:
        return EXPECTED, "text that is not a URL"
    if parts.scheme not in ("http", "https"):
        return EXPECTED, f"the scheme {shown(parts.scheme)}" if parts.scheme else "no scheme"
    if "@" in parts.netloc:
        return "a URL without a user name or password (use api_key)", "one with them"
    if not parts.hostname or not _HOST.fullmatch(parts.hostname):
        return "a URL with a host name", "none, or one with illegal characters"
    if parts.query or parts.fragment or "?" in text or "#" in text:
        return "a base URL without a query", "one with a query or a fragment"
    if ".." in parts.path or not text.isprintable() or " " in text:
        return "a plain path", "one with spaces, control characters or '..'"
    ending = _ENDPOINT.search(parts.path)
    if ending is not None:
        return "a base URL: what precedes the path of the endpoint", f'one that ends in "{ending[0]}"'
    if dialect == "anthropic" and parts.path.rstrip("/").endswith("/v1"):
        return "an Anthropic base URL, which has no /v1 at its end", 'one that ends in "/v1"'
    return None


def proxy_fault(text: str) -> tuple[str, str] | None:
    """A proxy may contain a user name and password, so nothing of it is ever reported."""
    parts = split(text)
    if parts is None or parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        return "the URL of a proxy, http://host:port", "another text"
    return None


def split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port  # a port that is no number raises here
    except ValueError:
        return None
    return parts


def is_local(host: str) -> bool:
    """Loopback or a private network, by the name alone: nothing is resolved."""
    if is_loopback(host) or host.endswith((".local", ".internal", ".lan", ".home.arpa")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host  # a name without a domain: a container, a machine next door


def is_loopback(host: str) -> bool:
    name = host.lower().strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False
