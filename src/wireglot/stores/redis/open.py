"""A Redis or Valkey by its URL."""

from __future__ import annotations

from typing import Final

from redis.exceptions import AuthenticationError, AuthorizationError, RedisError

from wireglot.stores.base import StoreUnusable
from wireglot.stores.redis.address import read_address
from wireglot.stores.redis.counters import RedisCounters
from wireglot.stores.redis.pool import RedisPool
from wireglot.stores.redis.vault import RedisVault
from wireglot.stores.servers import tls_fault

_OLDEST_VERSION: Final = (6, 2)
"""The first with ZADD GT and SET PXAT."""


async def open_redis(
    url: str, *, connect_seconds: float = 0.25, call_seconds: float = 0.25, vault_seconds: float = 2.0
) -> tuple[RedisCounters, RedisVault]:
    """`?prefix=` begins every key (`wireglot:`). One server, one address that follows a failover, or the
    primary that Sentinels name: a Redis Cluster is not supported, since a limit's keys would lie on several
    of its nodes.

    Raises StoreUnusable where waiting would not help, StoreDown where it might.
    """
    address = read_address(url)
    try:
        pools = [
            RedisPool(address, connect_seconds=connect, call_seconds=call)
            for connect, call in ((connect_seconds, call_seconds), (vault_seconds, vault_seconds))
        ]
    except (ValueError, TypeError, AttributeError, RedisError):
        # The driver's own words may repeat the URL, and with it the password.
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
    """With the vault's patience: at the start there is time, and the first connection takes the longest."""
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
        told = await pool.client.info("server")
    except RedisError:
        return ()  # some hosted servers keep it to themselves; the first command will tell
    if told.get("redis_mode") == "cluster":
        raise StoreUnusable("store.shared: a Redis Cluster is not supported; use one server with replicas")
    return tuple(int(part) for part in str(told.get("redis_version", "")).split(".")[:2] if part.isdigit())
