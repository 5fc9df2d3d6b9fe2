"""Counters and a vault in Redis or Valkey, shared by a fleet."""

from __future__ import annotations

from wireglot.stores.redis.counters import RedisCounters, RedisVault, open_redis
from wireglot.stores.redis.log import RedisLog

__all__ = ["RedisCounters", "RedisLog", "RedisVault", "open_redis"]
