"""Redis and Valkey engine: counters and a vault shared by the gateways of a fleet."""

from __future__ import annotations

from wireglot.stores.redis.counters import RedisCounters, RedisVault, open_redis
from wireglot.stores.redis.log import RedisLog

__all__ = ["RedisCounters", "RedisLog", "RedisVault", "open_redis"]
