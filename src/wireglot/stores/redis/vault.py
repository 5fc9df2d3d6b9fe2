"""Values under names nobody can guess, for a while."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from wireglot.stores.redis.pool import RedisPool


class RedisVault:
    def __init__(self, pool: RedisPool, prefix: str) -> None:
        self._pool = pool
        self._prefix = prefix

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        if not entries:
            return
        start = self._start(caller)

        async def work() -> None:
            # Each value stands for itself, so no transaction is needed: one journey is.
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
        """Remove everything of a tenant. How many there were."""
        # The prefix is the owner's own word: its stars are no wildcards.
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
        """Of one length for every tenant: no name of one can be read as a name of another."""
        return f"{self._prefix}v:{hashlib.sha256(caller.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}:"
