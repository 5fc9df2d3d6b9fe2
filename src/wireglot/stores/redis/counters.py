"""Limits and agreements of a fleet. Every key expires: nothing grows for ever."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redis.exceptions import AuthenticationError, AuthorizationError, RedisError

from wireglot.stores.base import Counters, StoreUnusable
from wireglot.stores.records import Budget, Denied, Rate
from wireglot.stores.redis import scripts
from wireglot.stores.redis.address import read_address
from wireglot.stores.redis.pool import RedisPool
from wireglot.stores.servers import tls_fault


class RedisVault:
    def __init__(self, pool: RedisPool, prefix: str) -> None:
        self._pool = pool
        self._prefix = prefix

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        if not entries:
            return
        start = self._start(caller)

        async def work() -> None:
            # The values are independent, so no transaction is needed, but one round trip is enough.
            async with self._pool.client.pipeline(transaction=False) as journey:
                for name, body in entries.items():
                    journey.set(start + name, body, px=max(1, seconds * 1000))
                await journey.execute()

        await self._pool.run(work)

    async def recall(self, caller: str, names: Sequence[str]) -> dict[str, bytes]:
        if not names:
            return {}
        start = self._start(caller)
        values: list[Any] = await self._pool.run(
            lambda: self._pool.client.mget([start + name for name in names])
        )
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    async def forget(self, caller: str) -> int:
        """Remove everything of a tenant. Returns how many there were."""
        # The operator chooses the prefix: a `*` in it is not a wildcard.
        pattern = re.sub(r"([*?\[\]\\^-])", r"\\\1", self._start(caller)) + "*"

        async def work() -> int:
            gone = 0
            cursor = 0
            while True:
                cursor, names = await self._pool.client.scan(cursor, match=pattern, count=1000)
                if names:
                    gone += await self._pool.client.unlink(*names)
                if not cursor:
                    return gone

        return await self._pool.run(work)

    async def close(self) -> None:
        await self._pool.close()

    def _start(self, caller: str) -> str:
        """Of the same length for every tenant: no name of one can be taken for a name of another."""
        return f"{self._prefix}v:{hashlib.sha256(caller.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}:"


class RedisCounters(Counters):
    """Its timeouts are short: callers can decide without it (FAULTS 100)."""

    def __init__(self, pool: RedisPool, prefix: str, vault: RedisVault) -> None:
        self._pool = pool
        self._prefix = prefix
        self._vault = vault

    async def take(self, claims: Sequence[Rate | Budget]) -> Denied | None:
        if not claims:
            return None
        # Not retried after a lost connection: what is taken twice is returned once.
        denied = await self._pool.script(scripts.TAKE, *self._arguments(claims), again=False)
        if not denied:
            return None
        return Denied(claims[int(denied[0]) - 1].name, float(denied[1]) / 1000)

    async def settle(self, claims: Sequence[Rate | Budget]) -> None:
        if claims:
            await self._pool.script(scripts.SETTLE, *self._arguments(claims), again=False)

    async def known(self, names: Sequence[str]) -> dict[str, int]:
        if not names:
            return {}
        values = await self._pool.run(
            lambda: self._pool.client.mget([self._key("budget", name) for name in names])
        )
        return {name: int(value) for name, value in zip(names, values, strict=True) if value is not None}

    async def seed(self, name: str, value: int, until: int) -> None:
        await self._pool.run(
            lambda: self._pool.client.set(self._key("budget", name), value, nx=True, pxat=max(until, 1))
        )

    async def enter(self, name: str, holder: str, limit: int, seconds: float) -> bool:
        keys = [self._key("places", name)]
        return bool(await self._pool.script(scripts.ENTER, keys, [holder, limit, seconds * 1000]))

    async def leave(self, name: str, holder: str) -> None:
        await self._pool.run(lambda: self._pool.client.zrem(self._key("places", name), holder))

    async def cool(self, entries: Mapping[str, float]) -> None:
        if entries:
            values = [value for name, seconds in entries.items() for value in (name, seconds * 1000)]
            await self._pool.script(scripts.COOL, [self._key("cooling")], values)

    async def cooling(self) -> dict[str, float]:
        found = await self._pool.script(scripts.COOLING, [self._key("cooling")], [])
        names = (name.decode("utf-8", "surrogatepass") for name in found[::2])
        return {name: float(left) / 1000 for name, left in zip(names, found[1::2], strict=True)}

    async def lock(self, name: str, holder: str, seconds: float) -> bool:
        values: list[str | int | float] = [holder, max(1, math.ceil(seconds * 1000))]
        return bool(await self._pool.script(scripts.LOCK, [self._key("lock", name)], values))

    async def unlock(self, name: str, holder: str) -> None:
        await self._pool.script(scripts.UNLOCK, [self._key("lock", name)], [holder])

    async def check(self) -> None:
        await self._pool.run(lambda: self._pool.client.ping())

    async def close(self) -> None:
        """Closes the vault too: it was opened with the counters."""
        await self._pool.close()
        await self._vault.close()

    def _arguments(self, claims: Sequence[Rate | Budget]) -> tuple[list[str], list[str | int | float]]:
        keys: list[str] = []
        values: list[str | int | float] = []
        for claim in claims:
            if isinstance(claim, Rate):
                keys.append(self._key("rate", claim.name))
                values += ["rate", claim.amount, claim.limit, claim.seconds * 1000]
            else:
                keys.append(self._key("budget", claim.name))
                values += ["budget", claim.amount, claim.limit, claim.until]
        return keys, values

    def _key(self, sort: str, name: str = "") -> str:
        return f"{self._prefix}{sort}:{name}"


_OLDEST_VERSION: Final = (6, 2)
"""The first with ZADD GT and SET PXAT."""


async def open_redis(
    url: str, *, connect_seconds: float = 0.25, call_seconds: float = 0.25, vault_seconds: float = 2.0
) -> tuple[RedisCounters, RedisVault]:
    """`?prefix=` begins every key (`wireglot:`). One server, one address that follows a failover, or the
    primary that Sentinels name: a Redis Cluster is not supported, since a limit's keys would be on several of
    its nodes.

    Raises StoreUnusable if waiting would not help, StoreDown if it might.
    """
    address = read_address(url)
    try:
        pools = [
            RedisPool(address, connect_seconds=connect, call_seconds=call)
            for connect, call in ((connect_seconds, call_seconds), (vault_seconds, vault_seconds))
        ]
    except (ValueError, TypeError, AttributeError, RedisError):
        # The driver's message may repeat the URL, and with it the password.
        raise StoreUnusable("store.shared: not a Redis URL the driver understands") from None
    prefix = address.prefix
    vault = RedisVault(pools[1], prefix)
    counters = RedisCounters(pools[0], prefix, vault)
    try:
        await _meet(pools[1])
    except BaseException:
        await counters.close()
        raise
    return counters, vault


async def _meet(pool: RedisPool) -> None:
    """With the vault's time limit: at the start there is time, and the first connection takes the longest."""
    if pool.sentinels is not None:
        await pool.sentinels.meet()
    try:
        found = await pool.run(lambda: _version(pool))
    except TypeError:
        raise StoreUnusable("store.shared: the Redis URL has an option the driver does not know") from None
    if found and found < _OLDEST_VERSION:
        raise StoreUnusable(f"store.shared: Redis {'.'.join(map(str, _OLDEST_VERSION))} or newer is needed")


async def _version(pool: RedisPool) -> tuple[int, ...]:
    try:
        await pool.client.ping()
    except (AuthenticationError, AuthorizationError):
        raise StoreUnusable("store.shared: Redis refuses the user or the password") from None
    except RedisError as problem:
        if fault := tls_fault(problem):
            raise StoreUnusable(f"store.shared: Redis: {fault}") from None
        raise
    try:
        reported = await pool.client.info("server")
    except RedisError:
        return ()  # some hosted servers do not report it; the first command will show
    if reported.get("redis_mode") == "cluster":
        raise StoreUnusable("store.shared: a Redis Cluster is not supported; use one server with replicas")
    return tuple(
        int(part) for part in str(reported.get("redis_version", "")).split(".")[:2] if part.isdigit()
    )
