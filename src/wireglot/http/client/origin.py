"""Targets of requests: URLs, origins and proxies, and the handshake with a proxy on a raw socket, before
anything is sent to the upstream."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from wireglot.http.transport import TransportFault

_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_HEAD_BYTES: Final = 16 * 1024
"""Of a proxy's answer."""


class Proxy(msgspec.Struct, frozen=True):
    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.scheme})"


class HttpOrigin(msgspec.Struct, frozen=True):
    """The target of a connection, and the credentials it is used with: connections are shared only within
    one."""

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
        """In the form of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str, proxy: str, pool: str) -> tuple[HttpOrigin, str]:
    """The origin of a URL and its request target."""
    host, port, scheme = _address(url, ("http", "https"), "the upstream's URL cannot be used")
    origin = HttpOrigin(scheme, host, port, parse_proxy(proxy) if proxy else None, pool)
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
        # Not chained: the message of a ValueError may contain the URL, and with it a password.
        raise _unusable(message) from None
    if parts.scheme not in schemes or not host or any(ord(c) <= 32 for c in url):
        raise _unusable(message)
    return host, _PORTS[parts.scheme] if port is None else port, parts.scheme


def _unusable(message: str) -> TransportFault:
    return TransportFault("protocol", message, sent=False)


async def tunnel(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, origin: HttpOrigin, proxy: Proxy
) -> None:
    """HTTP CONNECT."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    lines = [f"CONNECT {host}:{origin.port} HTTP/1.1", f"host: {host}:{origin.port}"]
    if authorization := proxy_authorization(proxy):
        lines.append(f"proxy-authorization: {authorization}")
    await loop.sock_sendall(sock, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        data = await loop.sock_recv(sock, 4096)
        head += data
        if not data or len(head) > _HEAD_BYTES:
            raise _refused()
    status = head.split(b"\r\n", 1)[0].split(b" ")
    # In TLS the client speaks first: bytes after the head are not the upstream's.
    if (
        len(status) < 2
        or not status[0].startswith(b"HTTP/1.")
        or status[1] != b"200"
        or head[-4:] != b"\r\n\r\n"
    ):
        raise _refused()


def proxy_authorization(proxy: Proxy | None) -> str:
    if proxy is None or not (proxy.user or proxy.password):
        return ""
    return "Basic " + base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode("ascii")


async def socks5(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, host: str, port: int, proxy: Proxy
) -> None:
    """RFC 1928, with RFC 1929's user and password. `host`: an address, or a name for the proxy to resolve."""
    method = 2 if proxy.user or proxy.password else 0
    await loop.sock_sendall(sock, bytes((5, 1, method)))
    if await _exactly(loop, sock, 2) != bytes((5, method)):
        raise _refused()
    if method == 2:
        await loop.sock_sendall(sock, b"\x01" + _short(proxy.user) + _short(proxy.password))
        if (await _exactly(loop, sock, 2))[1] != 0:
            raise _refused()
    await loop.sock_sendall(sock, b"\x05\x01\x00" + _destination(host) + port.to_bytes(2, "big"))
    version, reply, _, kind = await _exactly(loop, sock, 4)
    if version != 5 or reply != 0:
        raise _refused()
    if kind == 3:
        length = (await _exactly(loop, sock, 1))[0]
    else:
        length = {1: 4, 4: 16}.get(kind, -1)
    if length < 0:
        raise _refused()
    await _exactly(loop, sock, length + 2)


def _destination(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return b"\x03" + _short(host)
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed


def _short(text: str) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise _refused()
    return bytes((len(data),)) + data


async def _exactly(loop: asyncio.AbstractEventLoop, sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await loop.sock_recv(sock, count - len(data))
        if not more:
            raise _refused()
        data += more
    return data


def _refused() -> TransportFault:
    return TransportFault("connect", "the proxy refused the connection to the upstream", sent=False)
