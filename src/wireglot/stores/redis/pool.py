"""The pool of connections, and what happens when one of them fails (FAULTS 100)."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from redis import exceptions as faults
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from wireglot.stores.base import StoreDown

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
    def __init__(self, url: str, *, connect_seconds: float, call_seconds: float) -> None:
        """Raises ValueError or TypeError where the URL makes no sense."""
        self._pool = BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS_MAX,
            timeout=call_seconds,
            socket_connect_timeout=connect_seconds,
            socket_timeout=call_seconds,
            socket_keepalive=True,
            # We say ourselves what is tried again: a claim that is taken twice would be lost to the budget.
            retry=Retry(NoBackoff(), 0),
            # Names come from clients, and may hold half a surrogate pair.
            encoding_errors="surrogatepass",
            # Version 2 is what every server speaks, and needs no greeting.
            protocol=2,
        )
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


def _reason(problem: faults.RedisError) -> str:
    """In our own words: the server's may hold names of hosts and users."""
    for kind, reason in _REASONS:
        if isinstance(problem, kind):
            return reason
    word = str(problem).partition(" ")[0]
    return f"refused the request ({word})" if word.isupper() and word.isalpha() else "refused the request"
