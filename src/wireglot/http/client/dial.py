"""Opening a connection: name, address, proxy, TLS. Nothing of a request is sent before all of it has held."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

import certifi

from wireglot.http.client.connection import ClientConnection, Home
from wireglot.http.client.proxy import socks5, tunnel
from wireglot.http.client.race import Address, first_reached
from wireglot.http.client.request import Origin
from wireglot.http.client.sessions import Sessions
from wireglot.http.transport import Timeouts, TransportFault

_PROBE_AFTER_SECONDS: Final = 15
_PROBE_EVERY_SECONDS: Final = 5
_PROBES: Final = 3
"""Of TCP's keep-alive. A stream may be silent for minutes: without it a peer that vanished goes unnoticed,
and what stands between us and the peer forgets a connection of which it hears nothing."""

_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})


def default_context() -> ssl.SSLContext:
    """The system's authorities (SSL_CERT_FILE and SSL_CERT_DIR are honoured) and certifi's."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialer:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, now: Callable[[], float], context: ssl.SSLContext | None
    ) -> None:
        self._loop = loop
        self._now = now
        self._context = context
        self._getaddrinfo = loop.getaddrinfo
        self._lookups: dict[tuple[str, int], asyncio.Task[list[Address]]] = {}
        self._sessions = Sessions()

    async def dial(self, origin: Origin, home: Home, timeouts: Timeouts) -> ClientConnection:
        try:
            return await self._dial(origin, home, timeouts)
        except TransportFault as fault:
            # A server that cannot take up a session should say so and go on without. Some fail.
            if fault.problem != "tls" or not self._sessions.forget(origin):
                raise
        return await self._dial(origin, home, timeouts)

    async def _dial(self, origin: Origin, home: Home, timeouts: Timeouts) -> ClientConnection:
        sock = await self._reach(origin, timeouts.connect)
        try:
            return await self._secure(sock, origin, home, timeouts.tls)
        except BaseException:
            sock.close()
            raise

    def close(self) -> None:
        for lookup in self._lookups.values():
            lookup.cancel()

    # The way to the upstream

    async def _reach(self, origin: Origin, seconds: float) -> socket.socket:
        proxy = origin.proxy
        deadline = self._loop.time() + seconds
        first = proxy or origin
        addresses = await self._resolve(first.host, first.port, seconds)
        sock = await self._connect(addresses, deadline)
        if proxy is None or (proxy.scheme == "http" and not origin.tls):
            return sock
        try:
            async with asyncio.timeout_at(deadline):
                if proxy.scheme == "http":
                    await tunnel(self._loop, sock, origin, proxy)
                else:
                    host = origin.host
                    if proxy.scheme == "socks5":
                        host = (await self._resolve(host, origin.port, deadline - self._loop.time()))[0][1]
                    await socks5(self._loop, sock, host, origin.port, proxy)
        except (OSError, TimeoutError):
            sock.close()
            raise _unreachable() from None
        except BaseException:
            sock.close()
            raise
        return sock

    async def _resolve(self, host: str, port: int, seconds: float) -> list[Address]:
        try:
            version = ipaddress.ip_address(host).version
        except ValueError:
            pass
        else:
            return [(socket.AF_INET if version == 4 else socket.AF_INET6, host, port)]
        # One lookup for all who ask: a name server that stalls holds one thread, not all of them.
        lookup = self._lookups.get((host, port))
        if lookup is None:
            lookup = self._lookups[host, port] = self._loop.create_task(self._look_up(host, port))
            lookup.add_done_callback(lambda _: self._lookups.pop((host, port), None))
        try:
            async with asyncio.timeout(seconds):
                addresses = await asyncio.shield(lookup)
        except TimeoutError:
            addresses = []
        except asyncio.CancelledError:
            if not lookup.cancelled():
                raise
            addresses = []  # not we were cancelled but the lookup, by close
        if not addresses:
            _need_descriptor()
            raise TransportFault("dns", "could not resolve the upstream's name", sent=False) from None
        return addresses

    async def _look_up(self, host: str, port: int) -> list[Address]:
        try:
            found = await self._getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return []
        return [(family, str(where[0]), int(where[1])) for family, _, _, _, where in found]

    async def _connect(self, addresses: list[Address], deadline: float) -> socket.socket:
        try:
            async with asyncio.timeout_at(deadline):
                return await first_reached(self._connect_to, addresses)
        except (OSError, TimeoutError):
            raise _unreachable() from None

    async def _connect_to(self, address: Address) -> socket.socket:
        family, host, port = address
        sock = _open(family)  # OSError: a family this machine has not
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _keep_alive(sock)
            await self._loop.sock_connect(sock, (host, port))
        except BaseException:
            sock.close()
            raise
        return sock

    async def _secure(
        self, sock: socket.socket, origin: Origin, home: Home, seconds: float
    ) -> ClientConnection:
        connection = ClientConnection(home, self._loop, self._now)
        try:
            if origin.tls:
                await self._handshake(sock, origin, connection, seconds)
            else:
                await self._loop.create_connection(lambda: connection, sock=sock)
        except BaseException:
            # Made and given up in the same moment: asyncio would see a TLS connection off politely, and wait.
            connection.drop()
            raise
        return connection

    async def _handshake(
        self, sock: socket.socket, origin: Origin, connection: ClientConnection, seconds: float
    ) -> None:
        try:
            if self._context is None:
                self._context = default_context()
            context = self._sessions.context(self._context, origin)
            connection.on_answered = partial(self._sessions.keep, origin)
            async with asyncio.timeout(seconds):
                await self._loop.create_connection(
                    lambda: connection, sock=sock, ssl=context, server_hostname=origin.host
                )
        except ssl.SSLError:
            raise TransportFault("tls", "upstream TLS verification failed", sent=False) from None
        except TimeoutError:
            raise TransportFault("tls", "the upstream's TLS handshake took too long", sent=False) from None
        except OSError as fault:
            if fault.errno in _NO_DESCRIPTOR:  # the authorities are files
                raise _busy() from None
            raise TransportFault("tls", "the upstream ended the TLS handshake", sent=False) from None


def _open(family: socket.AddressFamily) -> socket.socket:
    try:
        return socket.socket(family, socket.SOCK_STREAM)
    except OSError as fault:
        if fault.errno in _NO_DESCRIPTOR:
            raise _busy() from None
        raise


def _keep_alive(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_AFTER_SECONDS),
        ("TCP_KEEPINTVL", _PROBE_EVERY_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
    ):
        option = getattr(socket, name, None)  # not every system can be told
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _need_descriptor() -> None:
    """A lookup needs descriptors as well, and does not say that it had none."""
    with contextlib.suppress(OSError):
        _open(socket.AF_INET).close()


def _busy() -> TransportFault:
    return TransportFault("busy", "no file descriptor is left for a connection", sent=False)


def _unreachable() -> TransportFault:
    return TransportFault("connect", "could not connect to the upstream", sent=False)
