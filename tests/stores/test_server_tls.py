"""PostgreSQL and Redis that have to prove who they are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from proofs.servers import PostgresServer, RedisServer
from tests.stores.servers import needs_own_postgres, needs_own_redis
from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.records import Document
from wireglot.stores.redis import open_redis

AUTHORITY = trustme.CA()
NOT_TRUSTED = "not signed by an authority that is trusted here"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer(authority=AUTHORITY) as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer(authority=AUTHORITY) as server:
        yield server


@pytest.fixture
def stranger(tmp_path: Path) -> str:
    path = tmp_path / "stranger.pem"
    trustme.CA().cert_pem.write_to_path(path)
    return str(path)


@needs_own_postgres
def test_postgresql_is_verified(postgres: PostgresServer, stranger: str) -> None:
    async def test() -> None:
        engine = await PostgresEngine.open(postgres.url)
        assert await engine.documents.put([Document("a", "k", "1", b"x")])
        await engine.close()

    asyncio.run(test())
    by_a_stranger = postgres.url.replace(str(postgres.authority), stranger)
    _refused(PostgresEngine.open, by_a_stranger, StoreUnusable, NOT_TRUSTED)
    by_the_system = postgres.url.partition("?")[0] + "?sslmode=verify-full&sslrootcert=system"
    _refused(PostgresEngine.open, by_the_system, StoreUnusable, NOT_TRUSTED)


@needs_own_postgres
def test_a_certificate_for_another_name_is_refused(postgres: PostgresServer) -> None:
    with _showing(postgres, AUTHORITY.issue_cert("elsewhere.test")):
        _refused(PostgresEngine.open, postgres.url, StoreUnusable, "its certificate is for another name")
        asyncio.run(_opens(postgres.url.replace("verify-full", "verify-ca")))


@needs_own_postgres
def test_a_certificate_that_is_not_trusted_any_more_is_an_outage_while_the_gateway_runs(
    postgres: PostgresServer,
) -> None:
    """For Python it is a ValueError, too: it must not be taken for a fault of this program."""

    async def test() -> None:
        engine = await PostgresEngine.open(postgres.url)
        another = trustme.CA().issue_cert("127.0.0.1")
        with _showing(postgres, another), pytest.raises(StoreDown, match=NOT_TRUSTED):
            await engine.check()
        await engine.check()
        await engine.close()

    asyncio.run(test())


@needs_own_postgres
def test_a_server_without_tls_is_not_talked_to_where_tls_is_asked_for() -> None:
    with PostgresServer() as plain:
        for mode in ("require", "verify-full"):
            url = f"{plain.url}?sslmode={mode}"
            _refused(PostgresEngine.open, url, StoreUnusable, "does not speak TLS")


@needs_own_redis
def test_redis_is_verified(redis: RedisServer, stranger: str) -> None:
    async def test() -> None:
        counters, vault = await open_redis(redis.url, connect_seconds=10, call_seconds=10)
        assert await counters.lock("name", "holder", 10)
        await vault.keep("a", {"name": b"value"}, 10)
        assert await vault.recall("a", ["name"]) == {"name": b"value"}
        await counters.close()

    asyncio.run(test())
    by_a_stranger = redis.url.replace(str(redis.authority), stranger)
    _refused(open_redis, by_a_stranger, StoreUnusable, NOT_TRUSTED)
    _refused(open_redis, redis.url.partition("?")[0], StoreUnusable, NOT_TRUSTED)
    plain = redis.url.partition("?")[0].replace("rediss", "redis")
    _refused(open_redis, plain, StoreDown, "Redis cannot be reached")


@contextmanager
def _showing(server: PostgresServer, issued: trustme.LeafCert) -> Iterator[None]:
    kept = server.certificate.read_bytes(), server.key.read_bytes()
    try:
        server.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        server.key.write_bytes(issued.private_key_pem.bytes())
        server.restart()
        yield
    finally:
        server.certificate.write_bytes(kept[0])
        server.key.write_bytes(kept[1])
        server.restart()


async def _opens(url: str) -> None:
    await (await PostgresEngine.open(url)).close()


def _refused(open: Callable[[str], Awaitable[object]], url: str, kind: type[Exception], reason: str) -> None:
    async def test() -> None:
        await open(url)

    with pytest.raises(kind, match=reason) as reported:
        asyncio.run(test())
    assert "password" not in str(reported.value)
