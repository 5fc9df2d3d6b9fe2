"""A request as bytes: where it goes, and its head."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from wireglot.http.application import Headers
from wireglot.http.transport import TransportFault

_OURS: Final = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "accept-encoding", "te",
    "trailer", "upgrade", "expect", "proxy-connection", "proxy-authorization",
})  # fmt: skip
"""What frames a message is ours to say: a second opinion on it would let one request hide another."""

_REMEMBERED_HEADS: Final = 64
"""Heads kept for one URL: headers that are new each time must not fill the memory."""

_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Proxy(msgspec.Struct, frozen=True):
    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.scheme})"


class Origin(msgspec.Struct, frozen=True):
    """Whom a connection reaches and on whose behalf: connections are shared only within one."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None
    pool: str

    @property
    def tls(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str, proxy: str, pool: str) -> tuple[Origin, str]:
    """The origin of a URL and its request target."""
    host, port, scheme = _address(url, ("http", "https"), "the upstream's URL cannot be used")
    origin = Origin(scheme, host, port, parse_proxy(proxy) if proxy else None, pool)
    parts = urlsplit(url)
    target = parts.path or "/"
    if parts.query:
        target = f"{target}?{parts.query}"
    if not target.isascii() or not target.isprintable() or " " in target:
        raise _unusable("the upstream's URL cannot be used")
    return origin, target


def parse_proxy(url: str) -> Proxy:
    message = "the proxy's URL cannot be used"
    host, port, scheme = _address(url, ("http", "socks5", "socks5h"), message)
    parts = urlsplit(url)
    return Proxy(scheme, host, port, unquote(parts.username or ""), unquote(parts.password or ""))


def _address(url: str, schemes: tuple[str, ...], message: str) -> tuple[str, int, str]:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("ascii" if url.isascii() else "idna").decode("ascii")
        port = parts.port
    except ValueError:
        # Not chained: the text of a ValueError may hold the URL, and with it a password.
        raise _unusable(message) from None
    if parts.scheme not in schemes or not host or any(ord(c) <= 32 for c in url):
        raise _unusable(message)
    return host, _PORTS[parts.scheme] if port is None else port, parts.scheme


def _unusable(message: str) -> TransportFault:
    return TransportFault("protocol", message, sent=False)


def opening(method: str, origin: Origin, target: str, proxy_authorization: str) -> str:
    """What every request to one URL begins with."""
    if origin.proxy is not None and origin.proxy.scheme == "http" and not origin.tls:
        target = f"http://{origin.authority}{target}"
    else:
        proxy_authorization = ""
    lines = [f"{method} {target} HTTP/1.1", f"host: {origin.authority}", "accept-encoding: identity"]
    if proxy_authorization:
        lines.append(f"proxy-authorization: {proxy_authorization}")
    return "\r\n".join(lines) + "\r\n"


class Heads:
    """The heads of requests to one URL. Most differ in nothing but the length, so the rest is kept."""

    __slots__ = ("_known", "_start")

    def __init__(self, start: str) -> None:
        self._start = start
        self._known: dict[tuple[tuple[str, str], ...], bytes] = {}

    def render(self, headers: Headers, length: int | None) -> bytes:
        """`length` None: a method that has no body."""
        key = tuple(headers)
        head = self._known.get(key)
        if head is None:
            if len(self._known) >= _REMEMBERED_HEADS:
                self._known.clear()
            head = self._known[key] = _render(self._start, headers)
        return head + b"\r\n" if length is None else b"%bcontent-length: %d\r\n\r\n" % (head, length)


def _render(start: str, headers: Headers) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in headers if name not in _OURS]
    text = start + "".join(lines)
    # Counting what we wrote finds a line break smuggled in by any of the values.
    wrote = start.count("\n") + len(lines)
    if text.count("\n") != wrote or text.count("\r") != wrote or "\0" in text:
        raise TransportFault("protocol", "a request header holds a control character", sent=False)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise TransportFault(
            "protocol", "a request header holds a character that headers cannot", sent=False
        ) from None
