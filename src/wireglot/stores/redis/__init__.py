"""Counters and a vault in Redis or Valkey, shared by a fleet."""

from __future__ import annotations

from wireglot.stores.redis.counters import RedisCounters
from wireglot.stores.redis.log import RedisLog
from wireglot.stores.redis.open import open_redis
from wireglot.stores.redis.vault import RedisVault

__all__ = ["RedisCounters", "RedisLog", "RedisVault", "open_redis"]
