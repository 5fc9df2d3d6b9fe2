"""The log of a fleet in Redis, if nothing else is shared: a stream for each log, and values that expire."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any, Final

from redis.exceptions import RedisError

from wireglot.stores.base import StoreUnusable
from wireglot.stores.records import LogEntry
from wireglot.stores.redis import scripts
from wireglot.stores.redis.address import read_address
from wireglot.stores.redis.pool import RedisPool

_SECONDS: Final = 2.0
_BODY: Final = b"body"


class RedisLog:
    """Implements `FleetLog`. With separate connections, so that large values do not delay limits."""

    def __init__(self, url: str) -> None:
        """Connects with the first call. Raises StoreUnusable."""
        address = read_address(url)
        try:
            self._pool = RedisPool(address, connect_seconds=_SECONDS, call_seconds=_SECONDS)
        except (ValueError, TypeError, AttributeError, RedisError):
            raise StoreUnusable("store.shared: not a Redis URL the driver understands") from None
        self._prefix = address.prefix

    async def tell(self, log: str, body: bytes, *, seconds: float, most: int) -> None:
        key, oldest = self._log(log), int((time.time() - seconds) * 1000)

        async def work() -> None:
            async with self._pool.client.pipeline(transaction=False) as journey:
                journey.xadd(key, {_BODY: body}, maxlen=most, approximate=True)
                journey.xtrim(key, minid=str(oldest), approximate=True)
                journey.pexpire(key, int(seconds * 1000))
                await journey.execute()

        await self._pool.run(work)

    async def heard(self, log: str, after: str, limit: int) -> list[LogEntry]:
        start = f"({after}" if after else "-"
        found: Any = await self._pool.run(lambda: self._pool.client.xrange(self._log(log), start, "+", limit))
        return _entries(found)

    async def last(self, log: str, before: str, limit: int) -> list[LogEntry]:
        end = f"({before}" if before else "+"
        found: Any = await self._pool.run(
            lambda: self._pool.client.xrevrange(self._log(log), end, "-", limit)
        )
        return _entries(found)

    async def remove(self, log: str, places: Sequence[str]) -> None:
        if places:
            await self._pool.run(lambda: self._pool.client.xdel(self._log(log), *places))

    async def keep(self, caller: str, id: str, body: bytes, *, seconds: float, max_bytes: int) -> None:
        now = int(time.time() * 1000)
        values: list[Any] = [now, int(seconds * 1000), max_bytes, len(body), body]
        await self._pool.script(scripts.KEEP, [*self._shelf(), self._start(caller) + id], values)

    async def find(self, caller: str, id: str) -> bytes | None:
        found: Any = await self._pool.run(lambda: self._pool.client.get(self._start(caller) + id))
        return None if found is None else bytes(found)

    async def forget(self, caller: str) -> int:
        return int(await self._pool.script(scripts.FORGET, self._shelf(), [self._start(caller)]))

    async def close(self) -> None:
        await self._pool.close()

    def _log(self, log: str) -> str:
        return f"{self._prefix}fleet:{log}"

    def _shelf(self) -> list[str]:
        """The keys of the times and sizes of uploads."""
        return [f"{self._prefix}traces", f"{self._prefix}traces-bytes"]

    def _start(self, caller: str) -> str:
        owner = hashlib.sha256(caller.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"{self._prefix}trace:{owner}:"


def _entries(found: list[tuple[bytes, dict[bytes, bytes]]]) -> list[LogEntry]:
    entries = []
    for place, fields in found:
        name = place.decode()
        entries.append(LogEntry(name, int(name.partition("-")[0]), fields.get(_BODY, b"")))
    return entries
