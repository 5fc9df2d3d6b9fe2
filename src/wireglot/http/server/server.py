"""The HTTP/1.1 server: listens, sweeps its connections, and drains them at the end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from wireglot.http.account import ByteAccount
from wireglot.http.application import Application
from wireglot.http.limits import ServerLimits
from wireglot.http.server.connection import Hub, ServerConnection

_BACKLOG_CONNECTIONS: Final = 1024
_SLOWEST_TICK_SECONDS: Final = 1.0
_FASTEST_TICK_SECONDS: Final = 0.01
_FLUSH_SECONDS: Final = 1.0
"""For unsent output when a drain closes its connections."""


class HttpServer:
    """Hands requests to an application."""

    def __init__(
        self,
        app: Application,
        limits: ServerLimits,
        account: ByteAccount | None = None,
        on_refusal: Callable[[str, str], None] = lambda code, message: None,
    ) -> None:
        """As for `Hub`."""
        self._hub = Hub(app, limits, account, on_refusal)
        self._listeners: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def adopt(self, limits: ServerLimits) -> None:
        """Apply new limits at once, also to open connections."""
        self._hub.limits = limits
        self._hub.account.limit = limits.buffered

    @property
    def connections(self) -> int:
        return len(self._hub.connections)

    @property
    def requests(self) -> int:
        """Requests whose handler is running."""
        return len(self._hub.tasks)

    @property
    def buffered(self) -> int:
        """Bytes in the account: request bodies that are arriving or being handled, output that clients have
        yet to take, and data of others that share it."""
        return self._hub.account.held

    @property
    def refused(self) -> dict[str, int]:
        """How often each error of the HTTP class was given, by its code."""
        return dict(self._hub.refused)

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> tuple[str, int]:
        """Accept connections at an address; returns the real one (for port 0)."""
        self._hub.open()
        listener = await self._hub.loop.create_server(
            partial(ServerConnection, self._hub),
            host,
            port,
            reuse_port=reuse_port or None,
            backlog=_BACKLOG_CONNECTIONS,
        )
        self._begin(listener)
        address = listener.sockets[0].getsockname()
        return str(address[0]), int(address[1])

    @property
    def bound(self) -> tuple[str, ...]:
        """The addresses it listens on: a name may resolve to several."""
        sockets = (socket for listener in self._listeners for socket in listener.sockets)
        return tuple(str(socket.getsockname()[0]) for socket in sockets)

    async def drain(self, seconds: float) -> None:
        """Accept nothing more, let requests finish for SECONDS, cancel the others, close everything.

        A second call with less time takes precedence. A cancelled handler may still end its answer.
        """
        hub = self._hub
        hub.draining = True
        for listener in self._listeners:
            listener.close()
        for connection in tuple(hub.connections):
            connection.close_if_idle()
        await self._wait_empty(seconds)
        for task in tuple(hub.tasks):
            task.cancel("the server is shutting down")
        if hub.tasks:
            await asyncio.wait(tuple(hub.tasks), timeout=hub.limits.drain_again)
        for connection in tuple(hub.connections):
            connection.close()
        await self._wait_empty(_FLUSH_SECONDS)
        for connection in tuple(hub.connections):
            connection.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _wait_empty(self, seconds: float) -> None:
        hub = self._hub
        if not hub.connections and not hub.tasks:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await hub.empty.wait()

    def _begin(self, listener: asyncio.Server) -> None:
        self._listeners.append(listener)
        if self._timer is None:
            self._schedule()

    def _schedule(self) -> None:
        limits = self._hub.limits
        shortest = min(
            limits.header_time, limits.body_idle, limits.body_total, limits.keep_alive, limits.write_stall
        )
        tick = max(_FASTEST_TICK_SECONDS, min(_SLOWEST_TICK_SECONDS, shortest / 4))
        self._due = self._hub.loop.time() + tick
        self._timer = self._hub.loop.call_at(self._due, self._sweep)

    def _sweep(self) -> None:
        hub = self._hub
        now = hub.loop.time()
        hub.status_lines.set_date(time.time())
        # After a pause of the whole process, data that clients have sent meanwhile has not been read yet.
        if now - self._due < _SLOWEST_TICK_SECONDS:
            limits = hub.limits
            for connection in tuple(hub.connections):
                try:
                    connection.sweep(now, limits)
                except Exception as problem:  # the application words the error; others must continue
                    hub.report("a connection could not be ended in good order", problem)
                    connection.abort()
        self._schedule()
