"""The HTTP client for upstreams: HTTP/1.1 over pooled connections. No redirect is followed, no cookie
kept."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from wireglot.http.application import Headers
from wireglot.http.client.answer import HttpAnswer
from wireglot.http.client.connection import ClientConnection
from wireglot.http.client.dial import Dialer, Screen
from wireglot.http.client.origin import HttpOrigin, parse_url, proxy_authorization
from wireglot.http.limits import ClientLimits
from wireglot.http.transport import Outbound, Timeouts, TransportFault

if TYPE_CHECKING:
    from wireglot.http.client.websocket import UpstreamSocket

_BODILESS: Final = frozenset({"GET", "HEAD"})
_GOODBYE: Final = 408
_MAX_ROUTES: Final = 1024
"""Cached URLs, parsed (a URL may contain a model's name, so their number is unlimited)."""
_MAX_HEADS: Final = 64
"""Cached heads of one URL: headers that differ each time must not fill the memory."""

_OURS: Final = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "accept-encoding", "te",
    "trailer", "upgrade", "expect", "proxy-connection", "proxy-authorization",
})  # fmt: skip
"""Headers that frame a message are ours to set: a second value could let one request hide another."""
_OF_BODIES: Final = frozenset({"accept", "content-type"})
"""Not sent for a WebSocket, which has no body."""


class HttpTransport:
    """Implements `Transport`. Bound to the event loop that first sends."""

    def __init__(
        self,
        limits: ClientLimits,
        *,
        now: Callable[[], float] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        screen: Screen | None = None,
    ) -> None:
        """`screen` may refuse the addresses of an upstream before they are connected to. Those of a proxy are
        not checked."""
        self._limits = limits
        self._now = now
        self._context = ssl_context
        self._screen = screen
        self._dialer: Dialer | None = None
        self._pools: dict[HttpOrigin, Pool] = {}
        self._routes: dict[tuple[str, str, str, str], _Route] = {}
        self._sockets: set[UpstreamSocket] = set()
        self._closed = False

    def adopt(self, limits: ClientLimits) -> None:
        """Apply new limits."""
        self._limits = limits
        for pool in self._pools.values():
            pool.limits = limits

    async def send(self, request: Outbound, timeouts: Timeouts) -> HttpAnswer:
        """Send a request; returns when the head of its answer is complete."""
        key = (request.method, request.url, request.proxy, request.pool)
        route = self._routes.get(key) or self._route(key)
        pool, body, method = route.pool, request.body, request.method
        head = route.heads.get(tuple(request.headers)) or route.render(request.headers)
        head += b"\r\n" if method in _BODILESS and not body else b"content-length: %d\r\n\r\n" % len(body)
        room = self._limits.write_pending
        retry = False
        while True:
            connection = None if retry else pool.take()
            if connection is None:
                try:
                    connection = await pool.obtain(timeouts, fresh=retry)
                except TransportFault as fault:
                    fault.sent = retry  # the first attempt may have sent it
                    raise
            reused = connection.reused
            answer = connection.start(head, body, timeouts, room, bodiless=method == "HEAD")
            try:
                await answer.waiter
            except BaseException:
                answer.abort()
                raise
            if answer.status:
                # A goodbye to an idle connection that crossed our request (RFC 9110, 15.5.9).
                if answer.status != _GOODBYE or retry or not (reused and connection.answered_at_once):
                    return answer
                answer.abort()
            elif retry or not connection.stale:
                raise answer.given_up()
            # The server had closed a pooled connection, which we noticed only by using it.
            retry = True

    async def open_socket(self, request: Outbound, timeouts: Timeouts, limit: int) -> UpstreamSocket:
        """Open a WebSocket at the URL of a request, with its headers, for messages up to `limit` bytes.
        Raises TransportFault, and SocketRefused if the upstream does not switch to it."""
        from wsproto.events import Request  # only used by gateways: other commands start faster without it

        from wireglot.http.client.websocket import SocketRefused, UpstreamSocket

        if self._closed:
            raise _closing()
        origin, target = parse_url(request.url, request.proxy, request.pool)
        target, authorization = _through_proxy(origin, target)
        sent = [header for header in request.headers if header[0] not in _OURS | _OF_BODIES]
        if authorization:
            sent.append(("proxy-authorization", authorization))
        _rendered("", sent)  # raises for invalid header values
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent]
        dialer, loop = self._dialing(), asyncio.get_running_loop()
        socket = await dialer.connect(
            origin, timeouts, lambda: UpstreamSocket(loop, limit, self._sockets.discard)
        )
        if not socket.usable:  # a close that comes with the last bytes of a TLS handshake is seen before this
            raise SocketRefused(0)
        self._sockets.add(socket)
        await socket.open(Request(origin.authority, target, extra_headers=headers), timeouts.connect)
        return socket

    async def close(self) -> None:
        """Close every connection, in use or not."""
        self._closed = True
        for socket in list(self._sockets):
            socket.sever()
        for pool in self._pools.values():
            pool.close()
        if self._dialer is not None:
            self._dialer.close()
        # Sockets close in the loop's next round.
        await asyncio.sleep(0)

    # Figures

    @property
    def open_sockets(self) -> int:
        return len(self._sockets)

    @property
    def open_connections(self) -> int:
        return sum(pool.open for pool in self._pools.values())

    @property
    def idle_connections(self) -> int:
        return sum(pool.idle for pool in self._pools.values())

    @property
    def waiting(self) -> int:
        """Requests that wait for a connection to be free."""
        return sum(pool.waiting for pool in self._pools.values())

    # Routes

    def _route(self, key: tuple[str, str, str, str]) -> _Route:
        if self._closed:
            raise TransportFault("connect", "the gateway is shutting down", sent=False)
        method, url, proxy, name = key
        origin, target = parse_url(url, proxy, name)
        if len(self._routes) >= _MAX_ROUTES:
            self._prune()
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = Pool(self._limits, partial(self._dialing().dial, origin))
        route = self._routes[key] = _Route(pool, _opening(method, origin, target))
        return route

    def _prune(self) -> None:
        self._routes.clear()
        for origin in [origin for origin, pool in self._pools.items() if pool.unused]:
            del self._pools[origin]

    def _dialing(self) -> Dialer:
        if self._dialer is None:
            loop = asyncio.get_running_loop()
            if self._now is None:
                self._now = loop.time
            self._dialer = Dialer(loop, self._now, self._context, self._screen)
        return self._dialer


class _Route(msgspec.Struct, eq=False):
    """A prepared URL. Most heads differ only in the length, so the rest is cached."""

    pool: Pool
    start: str
    """The beginning of every head."""
    heads: dict[tuple[tuple[str, str], ...], bytes] = {}

    def render(self, headers: Headers) -> bytes:
        """A head without its end."""
        head = _rendered(self.start, headers)
        if len(self.heads) >= _MAX_HEADS:
            self.heads.clear()
        self.heads[tuple(headers)] = head
        return head


def _rendered(start: str, headers: Headers) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in headers if name not in _OURS]
    text = start + "".join(lines)
    # Counting the lines detects a line break smuggled in by any of the values.
    wrote = start.count("\n") + len(lines)
    if text.count("\n") != wrote or text.count("\r") != wrote or "\0" in text:
        raise TransportFault("protocol", "a request header contains a control character", sent=False)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise TransportFault(
            "protocol", "a request header contains a character that is not allowed", sent=False
        ) from None


def _opening(method: str, origin: HttpOrigin, target: str) -> str:
    """The beginning of every request to one URL."""
    target, authorization = _through_proxy(origin, target)
    lines = [f"{method} {target} HTTP/1.1", f"host: {origin.authority}", "accept-encoding: identity"]
    if authorization:
        lines.append(f"proxy-authorization: {authorization}")
    return "\r\n".join(lines) + "\r\n"


def _through_proxy(origin: HttpOrigin, target: str) -> tuple[str, str]:
    """The target as the connection's peer needs it, and our credentials for the peer: a proxy that reads the
    requests itself gets the whole URL."""
    proxy = origin.proxy
    if proxy is not None and proxy.scheme == "http" and not origin.tls:
        return f"http://{origin.authority}{target}", proxy_authorization(proxy)
    return target, ""


class Pool:
    """The connections to one origin: the last one used is used first, and their number is limited.

    A slot is a connection, or the right to open one. Waiters are served in order of arrival.

    A free slot is passed to the first waiter directly: a later one cannot take it first.
    """

    __slots__ = ("_closed", "_connections", "_dial", "_idle", "_slots", "_waiters", "limits")

    def __init__(
        self, limits: ClientLimits, dial: Callable[[Pool, Timeouts], Awaitable[ClientConnection]]
    ) -> None:
        self.limits = limits
        self._dial = dial
        self._connections: set[ClientConnection] = set()
        self._idle: list[ClientConnection] = []
        self._slots = 0
        self._waiters: deque[asyncio.Future[ClientConnection | None]] = deque()
        self._closed = False

    @property
    def open(self) -> int:
        return len(self._connections)

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    @property
    def unused(self) -> bool:
        return not self._slots and not self._waiters

    def take(self) -> ClientConnection | None:
        """An idle connection, if there is one."""
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.fit:
                return connection
            connection.drop()
        return None

    async def obtain(self, timeouts: Timeouts, *, fresh: bool = False) -> ClientConnection:
        """A connection, at once or after a short wait, else TransportFault("busy").

        `fresh`: not one that was used before.
        """
        while not self._closed:
            if fresh and self._idle and self._slots >= self.limits.pool:
                self._idle.pop(0).drop()
            if self._slots < self.limits.pool:
                self._slots += 1
            else:
                given = await self._wait()
                if given is not None:
                    if not given.usable:
                        continue
                    if not fresh:
                        return given
                    self._slots += 1  # taken before dropping the connection gives one away
                    given.drop()
            try:
                connection = await self._dial(self, timeouts)
            except BaseException:
                self._free()
                raise
            self._connections.add(connection)
            if connection.usable and not self._closed:
                return connection
            connection.drop()
            if not self._closed:
                raise TransportFault("connect", "could not connect to the upstream", sent=False)
        raise _closing()

    async def _wait(self) -> ClientConnection | None:
        limits = self.limits
        if len(self._waiters) >= limits.queue:
            raise _busy()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[ClientConnection | None] = loop.create_future()
        self._waiters.append(waiter)
        # A timer, not `asyncio.timeout`: a waiter that is served when it fires keeps its slot.
        timer = loop.call_later(limits.queue_time, _give_up, waiter)
        try:
            connection = await waiter
        except BaseException:
            if waiter.cancelled() or waiter.exception() is not None:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
            else:
                # Served and cancelled at once: pass on what was given.
                given = waiter.result()
                if given is None:
                    self._free()
                elif given.usable:
                    self.release(given)
            raise
        finally:
            timer.cancel()
        if self._closed:
            raise _closing()
        return connection

    def release(self, connection: ClientConnection) -> None:
        """Return a connection whose exchange is over and which can be used again."""
        if self._closed or self._slots > self.limits.pool:
            connection.drop()
            return
        connection.rest(self.limits.pool_idle)
        waiter = self._next() if self._waiters else None
        if waiter is not None:
            waiter.set_result(connection)
        else:
            self._idle.append(connection)

    def forget(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._free()

    def _free(self) -> None:
        waiter = self._next() if self._waiters and self._slots <= self.limits.pool else None
        if waiter is not None:
            waiter.set_result(None)
        else:
            self._slots -= 1

    def _next(self) -> asyncio.Future[ClientConnection | None] | None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter
        return None

    def close(self) -> None:
        self._closed = True
        while (waiter := self._next()) is not None:
            waiter.set_exception(_closing())
        for connection in list(self._connections):
            connection.sever()


def _give_up(waiter: asyncio.Future[ClientConnection | None]) -> None:
    if not waiter.done():
        waiter.set_exception(_busy())


def _busy() -> TransportFault:
    return TransportFault("busy", "all connections to the upstream are in use", sent=False)


def _closing() -> TransportFault:
    return TransportFault("connect", "the gateway is shutting down", sent=False)
