"""Limits and agreements of a fleet. Every key ends by itself: nothing grows for ever."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wireglot.stores.records import Budget, Denied, Rate
from wireglot.stores.redis import scripts
from wireglot.stores.redis.pool import RedisPool
from wireglot.stores.redis.vault import RedisVault


class RedisCounters:
    """Its timeouts are short: whoever asks can decide without it (FAULTS 100)."""

    def __init__(self, pool: RedisPool, prefix: str, vault: RedisVault) -> None:
        self._pool = pool
        self._prefix = prefix
        self._vault = vault

    async def take(self, claims: Sequence[Rate | Budget]) -> Denied | None:
        if not claims:
            return None
        # Not again after a lost connection: what is taken twice is given back once.
        denied = await self._pool.script(scripts.TAKE, *self._arguments(claims), again=False)
        if not denied:
            return None
        return Denied(claims[int(denied[0]) - 1].name, float(denied[1]) / 1000)

    async def settle(self, claims: Sequence[Rate | Budget]) -> None:
        if claims:
            await self._pool.script(scripts.SETTLE, *self._arguments(claims), again=False)

    async def known(self, names: Sequence[str]) -> set[str]:
        return set(await self.amounts(names))

    async def amounts(self, names: Sequence[str]) -> dict[str, int]:
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
        """The vault too: it was opened with the counters."""
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
