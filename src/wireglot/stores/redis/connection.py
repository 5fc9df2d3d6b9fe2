"""A connection to Redis: encrypted or not, to a given place or to wherever the primary is by now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from ssl import SSLContext
from typing import Any, Final

from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

_HANDSHAKE_FACTOR: Final = 4
"""Two journeys more, and sums for both sides: it takes longer than a connection that is not encrypted."""


class RedisConnection(Connection):
    """`primary` tells where it is at the moment of connecting; its certificate has to be for that address."""

    def __init__(
        self,
        *,
        tls: SSLContext | None = None,
        primary: Callable[[], Awaitable[tuple[str, int]]] | None = None,
        **options: Any,
    ) -> None:
        self._tls = tls
        self._primary = primary
        super().__init__(**options)

    async def _connect(self) -> None:
        if self._primary is not None:
            self.host, self.port = await self._primary()
        await super()._connect()  # type: ignore[no-untyped-call]  # redis-py does not type it

    def _connection_arguments(self) -> Mapping[str, Any]:
        arguments = dict(super()._connection_arguments())
        return arguments if self._tls is None else arguments | {"ssl": self._tls}


def connection_options(
    *, tls: SSLContext | None, connect_seconds: float, call_seconds: float
) -> dict[str, Any]:
    return {
        "connection_class": RedisConnection,
        "tls": tls,
        "socket_connect_timeout": connect_seconds * (1 if tls is None else _HANDSHAKE_FACTOR),
        "socket_timeout": call_seconds,
        "socket_keepalive": True,
        # We say ourselves what is tried again: a claim that is taken twice would be lost to the budget.
        "retry": Retry(NoBackoff(), 0),
        # Names come from clients, and may hold half a surrogate pair.
        "encoding_errors": "surrogatepass",
        # Version 2 is what every server speaks, and needs no greeting.
        "protocol": 2,
    }
