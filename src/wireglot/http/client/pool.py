"""The connections to one origin: the last one used is used first, and there are never too many."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from wireglot.http.client.connection import ClientConnection
from wireglot.http.limits import ClientLimits
from wireglot.http.transport import Timeouts, TransportFault

Dial = Callable[["Pool", Timeouts], Awaitable[ClientConnection]]


class Pool:
    """A slot is a connection, or the right to open one. Waiters are served in the order they came.

    A slot that becomes free passes to the first waiter directly: nobody who comes later can take it first.
    """

    __slots__ = ("_closed", "_connections", "_dial", "_idle", "_limits", "_slots", "_waiters")

    def __init__(self, limits: Callable[[], ClientLimits], dial: Dial) -> None:
        self._limits = limits
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
        """A connection, when there may be one more: at once or soon, else TransportFault("busy").

        `fresh`: not one that was used before."""
        while not self._closed:
            if fresh and self._idle and self._slots >= self._limits().pool:
                self._idle.pop(0).drop()
            if self._slots < self._limits().pool:
                self._slots += 1
                return await self._connect(timeouts)
            connection = await self._wait()
            if connection is None:
                return await self._connect(timeouts)
            if connection.usable:
                if not fresh:
                    return connection
                self._slots += 1  # ours, before dropping the connection gives one away
                connection.drop()
                return await self._connect(timeouts)
        raise _closing()

    async def _connect(self, timeouts: Timeouts) -> ClientConnection:
        try:
            connection = await self._dial(self, timeouts)
        except BaseException:
            self._free()
            raise
        self._connections.add(connection)
        if self._closed or not connection.usable:
            connection.drop()
            raise (
                _closing()
                if self._closed
                else TransportFault("connect", "could not connect to the upstream", sent=False)
            )
        return connection

    async def _wait(self) -> ClientConnection | None:
        limits = self._limits()
        if len(self._waiters) >= limits.queue:
            raise _busy()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[ClientConnection | None] = loop.create_future()
        self._waiters.append(waiter)
        # A timer and not `asyncio.timeout`: whoever is served in the moment that it fires keeps what it got.
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
        """A connection whose exchange is over, fit for another."""
        limits = self._limits()
        if self._closed or self._slots > limits.pool:
            connection.drop()
            return
        connection.rest(limits.pool_idle)
        waiter = self._next() if self._waiters else None
        if waiter is not None:
            waiter.set_result(connection)
        else:
            self._idle.append(connection)

    def forget(self, connection: ClientConnection) -> None:
        """A connection that is closed."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._free()

    def _free(self) -> None:
        waiter = self._next() if self._slots <= self._limits().pool else None
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
