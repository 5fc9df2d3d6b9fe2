"""Real servers for the tests of the fleet's stores.

The URLs in WIREGLOT_TEST_POSTGRES and WIREGLOT_TEST_REDIS where they are set; else private servers, started
when the first test needs them and gone with the test process; else the tests are skipped, unless WIREGLOT_FLEET
says that the servers have to be here.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
from functools import cache
from urllib.parse import quote

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest
from redis.asyncio import Redis

from proofs.server_groups import PgBouncer, find_pgbouncer
from proofs.servers import PostgresServer, RedisServer, find_postgres, find_redis
from wireglot.stores.base import Counters, Engine, Vault
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.redis import open_redis

_POSTGRES = os.environ.get("WIREGLOT_TEST_POSTGRES", "")
_REDIS = os.environ.get("WIREGLOT_TEST_REDIS", "")
_REQUIRED = os.environ.get("WIREGLOT_FLEET", "") == "1"

# Tests that hurt a server start one of their own, whatever the URLs say.
CAN_START_POSTGRES = _REQUIRED or find_postgres() is not None
CAN_START_REDIS = _REQUIRED or find_redis() is not None
CAN_START_PGBOUNCER = _REQUIRED or (CAN_START_POSTGRES and find_pgbouncer() is not None)
HAVE_POSTGRES = CAN_START_POSTGRES or bool(_POSTGRES)
HAVE_REDIS = CAN_START_REDIS or bool(_REDIS)

needs_postgres = pytest.mark.skipif(
    not HAVE_POSTGRES, reason="no PostgreSQL here (make test-fleet installs it)"
)
needs_redis = pytest.mark.skipif(not HAVE_REDIS, reason="no Redis here (make test-fleet installs it)")
needs_own_postgres = pytest.mark.skipif(not CAN_START_POSTGRES, reason="no PostgreSQL binaries here")
needs_pgbouncer = pytest.mark.skipif(not CAN_START_PGBOUNCER, reason="no PgBouncer here")
needs_own_redis = pytest.mark.skipif(not CAN_START_REDIS, reason="no Redis binaries here")

_schemas: list[str] = []
_prefixes: list[str] = []


@cache
def _postgres() -> str:
    if _POSTGRES:
        atexit.register(lambda: asyncio.run(_drop_schemas()))
        return _POSTGRES
    return _own_postgres().url


@cache
def _own_postgres() -> PostgresServer:
    server = PostgresServer()
    atexit.register(server.close)
    server.start()
    return server


@cache
def _pgbouncer() -> str:
    """In front of our own server: it needs to know the address."""
    pooler = PgBouncer(_own_postgres())
    atexit.register(pooler.close)
    pooler.start()
    return pooler.url


@cache
def _redis() -> str:
    if _REDIS:
        atexit.register(lambda: asyncio.run(_drop_prefixes()))
        return _REDIS
    server = RedisServer()
    atexit.register(server.close)
    server.start()
    return server.url


def postgres_url() -> str:
    """A schema nobody has used."""
    schema = f"test_{secrets.token_hex(8)}"
    _schemas.append(schema)
    return with_option(_postgres(), "schema", schema)


def pooled_url() -> str:
    """The same, through PgBouncer in transaction mode."""
    return with_option(_pgbouncer(), "schema", f"test_{secrets.token_hex(8)}")


def redis_url() -> str:
    """A prefix nobody has used."""
    prefix = f"test-{secrets.token_hex(8)}:"
    _prefixes.append(prefix)
    return with_option(_redis(), "prefix", prefix)


def with_option(url: str, name: str, value: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{name}={quote(value, safe='')}"


async def postgres_engine() -> Engine:
    return await PostgresEngine.open(postgres_url())


async def pooled_engine() -> Engine:
    return await PostgresEngine.open(pooled_url())


async def redis_counters() -> tuple[Counters, Vault]:
    # Patient: tests share two cores, and what happens when it is slow has tests of its own.
    return await open_redis(redis_url(), connect_seconds=10, call_seconds=10, vault_seconds=10)


async def _drop_schemas() -> None:
    connection = await asyncpg.connect(_POSTGRES)
    for schema in _schemas:
        await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    await connection.close()


async def _drop_prefixes() -> None:
    async with Redis.from_url(_REDIS) as client:
        for prefix in _prefixes:
            async for key in client.scan_iter(match=f"{prefix}*", count=1000):
                await client.unlink(key)
