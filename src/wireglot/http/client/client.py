"""The way to the upstreams: HTTP/1.1 over pooled connections. No redirect is followed, no cookie kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

from wireglot.http.client.answer import HttpAnswer
from wireglot.http.client.connection import ClientConnection
from wireglot.http.client.dial import Dialer
from wireglot.http.client.pool import Pool
from wireglot.http.client.proxy import proxy_authorization
from wireglot.http.client.request import Heads, Origin, opening, parse_url
from wireglot.http.limits import ClientLimits
from wireglot.http.transport import Outbound, Timeouts, TransportFault

_BODILESS: Final = frozenset({"GET", "HEAD"})
_GOODBYE: Final = 408
_REMEMBERED_URLS: Final = 1024
"""URLs remembered with what was made of them (a URL may hold a model's name, so there is no end of them)."""

_Route = tuple[Pool, Heads]


class HttpTransport:
    """Implements `Transport`. To be used in one event loop, the one that first sends.

    `limits` gives those now in force.
    """

    def __init__(
        self,
        limits: Callable[[], ClientLimits],
        *,
        now: Callable[[], float] | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        self._now = now
        self._context = ssl_context
        self._dialer: Dialer | None = None
        self._pools: dict[Origin, Pool] = {}
        self._routes: dict[tuple[str, str, str, str], _Route] = {}
        self._closed = False

    async def send(self, request: Outbound, timeouts: Timeouts) -> HttpAnswer:
        """Send a request; return when the head of its answer is there."""
        key = (request.method, request.url, request.proxy, request.pool)
        pool, heads = self._routes.get(key) or self._route(key)
        bodiless = request.method in _BODILESS and not request.body
        head = heads.render(request.headers, None if bodiless else len(request.body))
        room = self._limits().write_pending
        retry = False
        while True:
            connection = None if retry else pool.take()
            if connection is None:
                connection = await self._obtain(pool, timeouts, retry)
            reused = connection.reused
            answer = connection.start(head, request.body, timeouts, room, bodiless=request.method == "HEAD")
            try:
                await answer.expect()
            except BaseException:
                answer.abort()
                raise
            if answer.status:
                # A goodbye to a connection that waits, on its way while our request was (RFC 9110, 15.5.9).
                if answer.status != _GOODBYE or retry or not (reused and connection.answered_at_once):
                    return answer
                answer.abort()
            else:
                assert answer.error is not None
                if retry or not connection.stale:
                    raise answer.given_up()
            # The server had closed a connection of the pool, and we learned of it only by using it.
            retry = True

    async def _obtain(self, pool: Pool, timeouts: Timeouts, retry: bool) -> ClientConnection:
        try:
            return await pool.obtain(timeouts, fresh=retry)
        except TransportFault as fault:
            fault.sent = retry  # by the first attempt, for all we know
            raise

    async def close(self) -> None:
        """Close every connection, in use or not."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()
        if self._dialer is not None:
            self._dialer.close()
        # Sockets close in the loop's next round.
        await asyncio.sleep(0)

    # Figures

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
        if len(self._routes) >= _REMEMBERED_URLS:
            self._prune()
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = Pool(self._limits, partial(self._dialing().dial, origin))
        route = pool, Heads(opening(method, origin, target, proxy_authorization(origin.proxy)))
        self._routes[key] = route
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
            self._dialer = Dialer(loop, self._now, self._context)
        return self._dialer
