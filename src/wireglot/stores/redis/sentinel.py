"""Where the primary is by now: Sentinels watch it, promote a replica when it has gone, and are asked at every
new connection."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from redis import exceptions as faults
from redis.asyncio import ConnectionPool, Redis

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.redis.address import RedisAddress
from wireglot.stores.redis.connection import connection_options
from wireglot.stores.servers import tls_fault


class Sentinels:
    """All are asked at once: the machine of one may have gone together with that of the primary."""

    def __init__(self, address: RedisAddress, *, seconds: float) -> None:
        self._service = address.service
        options = connection_options(tls=address.tls, connect_seconds=seconds, call_seconds=seconds)
        options |= {"username": address.sentinel_username, "password": address.sentinel_password}
        self._clients = [
            Redis.from_pool(ConnectionPool(host=host, port=port, **options))
            for host, port in address.sentinels
        ]

    async def meet(self) -> None:
        """Raises StoreUnusable where waiting would not help, StoreDown where it might."""
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
        """As the first says that knows one."""
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
