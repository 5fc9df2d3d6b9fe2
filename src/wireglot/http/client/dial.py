"""Opens a connection: name, address, proxy, TLS. Nothing of a request is sent before all of these have
succeeded."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeVar

import certifi

from wireglot.http.client.connection import ClientConnection, Home
from wireglot.http.client.origin import HttpOrigin, socks5, tunnel
from wireglot.http.transport import Timeouts, TransportFault

if TYPE_CHECKING:
    from wireglot.http.client.websocket import UpstreamSocket

Address = tuple[socket.AddressFamily, str, int]
Reach = Callable[[Address], Awaitable[socket.socket]]
Dialed = TypeVar("Dialed", ClientConnection, "UpstreamSocket")
Screen = Callable[[HttpOrigin, Sequence[Address]], None]
"""Called with the addresses that are about to be connected to; raises if one is not allowed."""

_PROBES: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""TCP keep-alive: seconds before the first probe and between probes, and how many are sent. Without it a peer
that vanished during a silent stream goes unnoticed, and middleboxes drop the idle connection."""
_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    # Not every system has them.
    *((socket.IPPROTO_TCP, getattr(socket, name), n) for name, n in _PROBES.items() if hasattr(socket, name)),
)

_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})

HEAD_START_SECONDS: Final = 0.2
"""RFC 8305 names 250 ms, and no less than 100; broken IPv6 is to cost no more than 250 ms in all."""

# TLS sessions that are kept for the next connection.
_MAX_SESSIONS: Final = 1024


def default_context() -> ssl.SSLContext:
    """The system's authorities (SSL_CERT_FILE and SSL_CERT_DIR are honoured) and certifi's."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialer:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float],
        context: ssl.SSLContext | None,
        screen: Screen | None = None,
    ) -> None:
        self._loop = loop
        self._now = now
        self._context = context
        self._screen = screen
        self._getaddrinfo = loop.getaddrinfo
        self._lookups: dict[tuple[str, int], asyncio.Task[list[Address]]] = {}
        self._sessions = Sessions()

    def dial(self, origin: HttpOrigin, home: Home, timeouts: Timeouts) -> Awaitable[ClientConnection]:
        return self.connect(origin, timeouts, partial(ClientConnection, home, self._loop, self._now))

    async def connect(self, origin: HttpOrigin, timeouts: Timeouts, make: Callable[[], Dialed]) -> Dialed:
        """A connection on which nothing was sent yet, with the protocol that `make` creates."""
        again = False
        while True:
            sock = await self._reach(origin, timeouts.connect)
            connection = make()
            try:
                if origin.scheme == "https":
                    await self._handshake(sock, origin, connection, timeouts.tls)
                else:
                    factory = lambda: connection  # noqa: B023, E731 - called before the loop goes on
                    await self._loop.create_connection(factory, sock=sock)
                return connection
            except BaseException as fault:  # the socket is closed, whatever it was
                # Otherwise asyncio would shut down a TLS connection gracefully, and wait.
                connection.drop()
                sock.close()
                # A server that cannot resume a session should say so and continue without. Some fail.
                refused = isinstance(fault, TransportFault) and fault.problem == "tls"
                if again or not refused or not self._sessions.forget(origin):
                    raise
            again = True

    def close(self) -> None:
        for lookup in self._lookups.values():
            lookup.cancel()

    # Connecting to the upstream

    async def _reach(self, origin: HttpOrigin, seconds: float) -> socket.socket:
        proxy = origin.proxy
        deadline = self._loop.time() + seconds
        first = proxy or origin
        addresses = literal(first.host, first.port)
        addresses = addresses or await self._resolve(first.host, first.port, seconds)
        if self._screen is not None and proxy is None:
            self._screen(origin, addresses)
        try:
            async with asyncio.timeout_at(deadline):
                if len(addresses) == 1:
                    sock = await self._connect_to(addresses[0])
                else:
                    sock = await first_reached(self._connect_to, addresses)
        except (OSError, TimeoutError):
            raise _unreachable() from None
        if proxy is None or (proxy.scheme == "http" and not origin.tls):
            return sock
        try:
            async with asyncio.timeout_at(deadline):
                if proxy.scheme == "http":
                    await tunnel(self._loop, sock, origin, proxy)
                else:
                    host = origin.host
                    if proxy.scheme == "socks5" and literal(host, origin.port) is None:
                        found = await self._resolve(host, origin.port, deadline - self._loop.time())
                        host = found[0][1]
                    await socks5(self._loop, sock, host, origin.port, proxy)
        except (OSError, TimeoutError):
            sock.close()
            raise _unreachable() from None
        except BaseException:
            sock.close()
            raise
        return sock

    async def _resolve(self, host: str, port: int, seconds: float) -> list[Address]:
        # One lookup is shared by all callers: a name server that stalls blocks one thread, not all of them.
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
            addresses = []  # the lookup was cancelled by close, not the caller
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

    async def _connect_to(self, address: Address) -> socket.socket:
        family, host, port = address
        sock = _open(family)  # OSError: the machine does not support this family
        try:
            sock.setblocking(False)
            for option in _OPTIONS:
                sock.setsockopt(*option)
            await self._loop.sock_connect(sock, (host, port))
        except BaseException:
            sock.close()
            raise
        return sock

    async def _handshake(
        self,
        sock: socket.socket,
        origin: HttpOrigin,
        connection: ClientConnection | UpstreamSocket,
        seconds: float,
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
            if fault.errno in _NO_DESCRIPTOR:  # the CA certificates are files
                raise _busy() from None
            raise TransportFault("tls", "the upstream ended the TLS handshake", sent=False) from None


def _open(family: socket.AddressFamily) -> socket.socket:
    try:
        return socket.socket(family, socket.SOCK_STREAM)
    except OSError as fault:
        if fault.errno in _NO_DESCRIPTOR:
            raise _busy() from None
        raise


@lru_cache(maxsize=1024)
def literal(host: str, port: int) -> list[Address] | None:
    """The address if the host is one; None if it is a name."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return None
    return [(socket.AF_INET if version == 4 else socket.AF_INET6, host, port)]


def _need_descriptor() -> None:
    """A lookup needs descriptors as well, and does not report their lack."""
    with contextlib.suppress(OSError):
        _open(socket.AF_INET).close()


def _busy() -> TransportFault:
    return TransportFault("busy", "no file descriptor is free for a connection", sent=False)


def _unreachable() -> TransportFault:
    return TransportFault("connect", "could not connect to the upstream", sent=False)


def interleaved(addresses: Iterable[Address]) -> list[Address]:
    """The families alternate, the resolver's first choice first: a broken family delays the other only
    once."""
    families: dict[socket.AddressFamily, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]


async def first_reached(
    reach: Reach, addresses: Sequence[Address], head_start: float = HEAD_START_SECONDS
) -> socket.socket:
    """Reach one of several addresses (RFC 8305, Happy Eyeballs): one that does not answer is not waited for.

    The next address is tried when the one before has failed, or has not connected within `head_start`; then
    both are tried, and the first to connect is used. A broken family costs that time. Raises the OSError of
    the last address to fail, and at once whatever is no OSError.
    """
    loop = asyncio.get_running_loop()
    attempts: list[asyncio.Task[socket.socket]] = []
    left = iter(interleaved(addresses))
    fault: OSError = OSError("no address")
    try:
        while True:
            following = next(left, None)
            if following is not None:
                attempts.append(loop.create_task(_run(reach, following)))
            elif not attempts:
                raise fault
            done, _ = await asyncio.wait(
                attempts,
                timeout=head_start if following is not None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in [attempt for attempt in attempts if attempt in done]:
                try:
                    reached = attempt.result()
                except OSError as failed:
                    fault = failed
                    attempts.remove(attempt)
                else:
                    attempts.remove(attempt)
                    return reached
    finally:
        if attempts:
            await _end(attempts)


async def _run(reach: Reach, address: Address) -> socket.socket:
    return await reach(address)


async def _end(attempts: list[asyncio.Task[socket.socket]]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for ended in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(ended, socket.socket):  # connected in the same moment as the one that is used
            ended.close()


class Sessions:
    """The newest TLS session of each origin, so that the next connection needs no full handshake.

    asyncio and uvloop create their TLS objects themselves, with `wrap_bio` of the context that they are
    given, and do not support sessions: so a context with a session wraps the real one.
    """

    def __init__(self) -> None:
        self._kept: dict[HttpOrigin, ssl.SSLSession] = {}

    def context(self, real: ssl.SSLContext, origin: HttpOrigin) -> ssl.SSLContext:
        """The context to connect with: `real` itself if no session is known."""
        session = self._kept.get(origin)
        return real if session is None else _Resuming(real, session)

    def keep(self, origin: HttpOrigin, transport: Any) -> None:
        """Called after an answer: in TLS 1.3 tickets come after the handshake."""
        spoken = transport.get_extra_info("ssl_object")
        session = spoken.session if spoken is not None else None
        if session is None or not session.has_ticket:
            return
        if len(self._kept) >= _MAX_SESSIONS:
            self._kept.clear()
        self._kept[origin] = session

    def forget(self, origin: HttpOrigin) -> bool:
        """Returns whether there was one."""
        return self._kept.pop(origin, None) is not None


class _Resuming(ssl.SSLContext):
    """Its own attributes are never set or read: every access goes to the real context."""

    _real: ssl.SSLContext
    _session: ssl.SSLSession

    def __new__(cls, real: ssl.SSLContext, session: ssl.SSLSession) -> _Resuming:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._real, made._session = real, session
        return made

    def __init__(self, real: ssl.SSLContext, session: ssl.SSLSession) -> None:
        pass

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return self._real.wrap_bio(
            incoming,
            outgoing,
            server_side,
            server_hostname,
            session or self._session,
        )
