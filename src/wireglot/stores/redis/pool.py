"""The pool of connections, and what happens when one of them fails (FAULTS 100)."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from redis import exceptions as faults
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import parse_url

from wireglot.stores.base import StoreDown
from wireglot.stores.redis.address import RedisAddress
from wireglot.stores.redis.connection import connection_options
from wireglot.stores.redis.sentinel import Sentinels
from wireglot.stores.servers import tls_fault

T = TypeVar("T")

CONNECTIONS_MAX: Final = 32
_REASONS: Final[tuple[tuple[type[faults.RedisError], str], ...]] = (
    (faults.TimeoutError, "does not answer in time"),
    (faults.BusyLoadingError, "is starting"),
    (faults.AuthenticationError, "refuses the user or the password"),
    (faults.AuthorizationError, "refuses the user or the password"),
    (faults.ConnectionError, "cannot be reached"),
    (faults.NoPermissionError, "does not let the user do this"),
    (faults.ReadOnlyError, "is read-only"),
    (faults.OutOfMemoryError, "is out of memory"),
)


class Script:
    """Lua that runs in one step on the server. Sent whole where the server does not know it (any more)."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


class RedisPool:
    def __init__(self, address: RedisAddress, *, connect_seconds: float, call_seconds: float) -> None:
        """Raises ValueError or TypeError where the URL makes no sense."""
        self.sentinels = Sentinels(address, seconds=connect_seconds) if address.sentinels else None
        options: dict[str, Any] = {"max_connections": CONNECTIONS_MAX, "timeout": call_seconds}
        options |= connection_options(
            tls=address.tls, connect_seconds=connect_seconds, call_seconds=call_seconds
        )
        options |= parse_url(address.url)
        if self.sentinels is not None:
            options["primary"] = self.sentinels.primary
        self._pool = BlockingConnectionPool(**options)
        self.client: Redis = Redis(connection_pool=self._pool)

    async def run(self, work: Callable[[], Awaitable[T]], *, again: bool = True) -> T:
        """`again`: harmless if it happens twice, so a lost connection is replaced by another."""
        try:
            try:
                return await work()
            except faults.ReadOnlyError:
                # After a failover the old connections lead to what is now a replica.
                await self._pool.disconnect(inuse_connections=False)
                return await work()
            except faults.TimeoutError:
                raise
            except faults.ConnectionError as problem:
                if not again or isinstance(problem, faults.BusyLoadingError | faults.AuthenticationError):
                    raise
                return await work()
        except faults.RedisError as problem:
            raise StoreDown(f"Redis {_reason(problem)}") from problem
        except OSError as problem:
            raise StoreDown("Redis cannot be reached") from problem

    async def script(
        self, script: Script, keys: list[str], values: list[str | int | float], *, again: bool = True
    ) -> Any:
        async def work() -> Any:
            try:
                return await self.client.evalsha(script.digest, len(keys), *keys, *values)
            except faults.NoScriptError:
                return await self.client.eval(script.source, len(keys), *keys, *values)

        return await self.run(work, again=again)

    async def close(self) -> None:
        await self.client.aclose()
        await self._pool.aclose()
        if self.sentinels is not None:
            await self.sentinels.close()


def _reason(problem: faults.RedisError) -> str:
    """In our own words: the server's may hold names of hosts and users."""
    if fault := tls_fault(problem):
        return f"cannot be trusted: {fault}"
    for kind, reason in _REASONS:
        if isinstance(problem, kind):
            return reason
    word = str(problem).partition(" ")[0]
    return f"refused the request ({word})" if word.isupper() and word.isalpha() else "refused the request"
