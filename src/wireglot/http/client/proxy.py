"""Asking a proxy for a way through, on a raw socket before anything of ours is said to the upstream."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
from typing import Final

from wireglot.http.client.request import Origin, Proxy
from wireglot.http.transport import TransportFault

_HEAD_BYTES: Final = 16 * 1024


async def tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, origin: Origin, proxy: Proxy) -> None:
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
    # In TLS the client speaks first: bytes behind the head are not the upstream's.
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
    return TransportFault("connect", "the proxy did not let us through to the upstream", sent=False)
