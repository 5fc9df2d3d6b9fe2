"""The pool of connections, and the handling of failed ones (FAULTS 100)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from ssl import SSLContext
from typing import Any, Final, TypeVar

from redis import exceptions as faults
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
from redis.asyncio.connection import Connection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.redis.address import RedisAddress
from wireglot.stores.servers import tls_fault

_HANDSHAKE_FACTOR: Final = 4
"""Two more round trips, and computation on both sides: it takes longer than an unencrypted connection."""


class RedisConnection(Connection):
    """`primary` returns its address at the time of connecting; its certificate has to be for that address."""

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
        # Retries are ours: a claim that is taken twice would be lost to the budget.
        "retry": Retry(NoBackoff(), 0),
        # Names come from clients, and may contain half a surrogate pair.
        "encoding_errors": "surrogatepass",
        # Every server supports version 2, and it needs no greeting.
        "protocol": 2,
    }


class Sentinels:
    """All are queried at once: the machine of one may have failed together with that of the primary."""

    def __init__(self, address: RedisAddress, *, seconds: float) -> None:
        self._service = address.service
        options = connection_options(tls=address.tls, connect_seconds=seconds, call_seconds=seconds)
        options |= {"username": address.sentinel_username, "password": address.sentinel_password}
        self._clients = [
            Redis.from_pool(ConnectionPool(host=host, port=port, **options))
            for host, port in address.sentinels
        ]

    async def meet(self) -> None:
        """Raises StoreUnusable if waiting would not help, StoreDown if it might."""
        try:
            await self.primary()
        except _NobodyKnows as nobody:
            problems = nobody.problems
            if any(isinstance(each, faults.AuthenticationError | faults.ResponseError) for each in problems):
                raise StoreUnusable("store.shared: they want another password, or are no Sentinels") from None
            if all(each is None for each in problems):
                raise StoreUnusable("store.shared: the Sentinels know no primary of this name") from None
            for fault in filter(None, (tls_fault(each) for each in problems if each is not None)):
                raise StoreUnusable(f"store.shared: a Sentinel: {fault}") from None
            raise StoreDown("Redis: no Sentinel can be reached that names a primary") from None

    async def primary(self) -> tuple[str, int]:
        """The primary's address, from the first Sentinel that knows it."""
        tasks = [asyncio.create_task(self._ask(client)) for client in self._clients]
        problems: list[BaseException | None] = []
        try:
            for answer in asyncio.as_completed(tasks):
                try:
                    found = await answer
                except (faults.RedisError, OSError) as problem:
                    problems.append(problem)
                else:
                    if found is not None:
                        return found
                    problems.append(None)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        raise _NobodyKnows(problems)

    async def close(self) -> None:
        for client in self._clients:
            with suppress(faults.RedisError, OSError):
                await client.aclose()

    async def _ask(self, client: Redis) -> tuple[str, int] | None:
        asked: tuple[Any, ...] = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
        found = await client.execute_command(*asked)  # type: ignore[no-untyped-call]  # redis-py does not type it
        if not found:
            return None
        host, port = found
        return (host.decode() if isinstance(host, bytes) else str(host)), int(port)


class _NobodyKnows(faults.ConnectionError):
    def __init__(self, problems: list[BaseException | None]) -> None:
        super().__init__("no Sentinel names a primary")
        self.problems = problems


T = TypeVar("T")

# Connections of one process to Redis.
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


class RedisScript:
    """A Lua script that runs in one step on the server. Sent whole if the server does not know it (any
    more)."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


class RedisPool:
    def __init__(self, address: RedisAddress, *, connect_seconds: float, call_seconds: float) -> None:
        """Raises ValueError or TypeError if the URL is invalid."""
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
        """`again`: harmless if it happens twice, so it is retried on a new connection after a lost one."""
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
        self, script: RedisScript, keys: list[str], values: list[str | int | float], *, again: bool = True
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
    """In our own words: the server's may contain names of hosts and users."""
    if fault := tls_fault(problem):
        return f"cannot be trusted: {fault}"
    for kind, reason in _REASONS:
        if isinstance(problem, kind):
            return reason
    word = str(problem).partition(" ")[0]
    return f"refused the request ({word})" if word.isupper() and word.isalpha() else "refused the request"
