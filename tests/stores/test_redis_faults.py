"""Redis lost, silent, restarted, full, read-only (FAULTS 100). Each test hurts a server of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial

import pytest
from redis.asyncio import Redis

from proofs.server_groups import WatchedRedis
from proofs.servers import RedisServer, free_port
from tests.stores.servers import needs_own_redis
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.stores.base import Shared, StoreDown, StoreUnusable
from wireglot.stores.bounded import FAILURES_TO_OPEN, BoundedShared
from wireglot.stores.records import Budget, Rate
from wireglot.stores.redis import RedisCounters, open_redis

pytestmark = needs_own_redis


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as one:
        yield one


async def is_up(counters: RedisCounters) -> bool:
    try:
        await counters.check()
    except StoreDown:
        return False
    return True


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_counters_work_again_after_the_server_was_restarted_under_load(server: RedisServer, how: str) -> None:
    """FAULTS 100: no call fails otherwise than by StoreDown, and all work again by themselves."""

    async def test() -> None:
        counters, vault = await open_redis(server.url, call_seconds=2)
        ended = asyncio.Event()
        taken = refused = 0

        async def asks() -> None:
            nonlocal taken, refused
            while not ended.is_set():
                try:
                    await counters.take([Rate("r", 1, 10**6, 60)])
                    await vault.keep("a", {"n": b"v"}, 60)
                    taken += 1
                except StoreDown:
                    refused += 1
                await asyncio.sleep(0.001)

        tasks = [asyncio.create_task(asks()) for _ in range(8)]
        for _ in range(2):
            if how == "kill":
                await asyncio.to_thread(server.kill)
                await until(lambda: refused)
                await asyncio.to_thread(server.start)
            else:
                await asyncio.to_thread(server.restart)
            before = taken
            await until(partial(lambda before: taken >= before + 50, before))
        ended.set()
        await asyncio.gather(*tasks)
        assert await vault.recall("a", ["n"]) == {"n": b"v"}
        await counters.close()

    asyncio.run(test())


def test_the_first_call_after_an_idle_restart_finds_the_server(server: RedisServer) -> None:
    """The connections in the pool are dead, and nobody has noticed."""

    async def test() -> None:
        counters, vault = await open_redis(server.url, call_seconds=2)
        assert await counters.lock("l", "h", 60)
        assert await counters.take([Budget("b", 5, 10, int(time.time() * 1000) + 60_000)]) is None
        await asyncio.to_thread(server.restart)
        assert await counters.take([Rate("r", 1, 10, 60)]) is None
        await asyncio.to_thread(server.restart)
        assert await counters.known(["b"]) == {}
        assert await counters.lock("l", "another", 60)
        assert await vault.recall("a", ["n"]) == {}
        await counters.close()

    asyncio.run(test())


def test_a_silent_server_is_down_soon_and_comes_back_by_itself(server: RedisServer) -> None:
    """FAULTS 100: SIGSTOP, with more callers than connections."""

    async def test() -> None:
        counters, vault = await open_redis(server.url, call_seconds=1, vault_seconds=1)
        server.pause()
        async with asyncio.timeout(DEADLINE_SECONDS):
            answers = await asyncio.gather(
                *(counters.take([Rate("r", 1, 10, 60)]) for _ in range(80)),
                *(vault.recall("a", ["n"]) for _ in range(80)),
                counters.check(),
                return_exceptions=True,
            )
        assert {type(answer) for answer in answers} == {StoreDown}
        server.resume()
        await until(lambda: is_up(counters))
        await vault.keep("a", {"n": b"v"}, 60)
        assert await vault.recall("a", ["n"]) == {"n": b"v"}
        await counters.close()

    asyncio.run(test())


def test_a_silent_server_costs_requests_no_more_than_a_moment(server: RedisServer) -> None:
    """FAULTS 100: SIGSTOP. The driver and the settings would wait for an hour."""

    async def test() -> None:
        counters, vault = await open_redis(server.url, call_seconds=3600, vault_seconds=3600)
        shared = BoundedShared(Shared(counters, vault), 3600.0, answers_soon=True)
        assert shared.vault is not None
        await shared.vault.keep("a", {"n": b"v"}, 60)
        assert await shared.counters.take([Rate("r", 1, 10, 60)]) is None
        server.pause()
        async with asyncio.timeout(DEADLINE_SECONDS):
            for _ in range(FAILURES_TO_OPEN):
                with pytest.raises(StoreDown):
                    await shared.vault.recall("a", ["n"])
                with pytest.raises(StoreDown):
                    await shared.counters.take([Rate("r", 1, 10, 60)])
        assert all(breaker.why for breaker in shared.bounds.breakers.values())
        server.resume()
        await shared.counters.check()
        assert await shared.vault.recall("a", ["n"]) == {"n": b"v"}
        await shared.counters.close()

    asyncio.run(test())


def test_a_replica_is_down_for_writers_until_it_is_the_master(server: RedisServer) -> None:
    """FAULTS 100: failover."""

    async def test() -> None:
        counters, vault = await open_redis(server.url, call_seconds=2)
        async with Redis.from_url(server.url) as admin:
            await admin.replicaof("127.0.0.1", "1")
            for asked in (counters.take([Rate("r", 1, 10, 60)]), vault.keep("a", {"n": b"v"}, 60)):
                with pytest.raises(StoreDown, match="read-only"):
                    await asked
            await admin.replicaof("NO", "ONE")
        assert await counters.take([Rate("r", 1, 10, 60)]) is None
        await counters.close()

    asyncio.run(test())


def test_what_was_kept_is_at_the_server_that_the_sentinels_name_next() -> None:
    """FAULTS 100: failover."""

    async def test(watched: WatchedRedis) -> None:
        counters, vault = await open_redis(watched.url, call_seconds=2)
        await vault.keep("a", {"n": b"v"}, 60)
        async with Redis.from_url(watched.primary.url) as admin:
            assert await admin.wait(1, int(1000 * DEADLINE_SECONDS)) == 1, "the replica has it"
        await asyncio.to_thread(watched.fail_over)
        await until(partial(is_up, counters))
        assert await vault.recall("a", ["n"]) == {"n": b"v"}
        assert await counters.take([Rate("r", 1, 10, 60)]) is None
        await counters.close()

    with WatchedRedis() as watched:
        asyncio.run(test(watched))


def test_a_full_server_is_down_for_writers(server: RedisServer) -> None:
    async def test() -> None:
        counters, vault = await open_redis(server.url, call_seconds=2)
        async with Redis.from_url(server.url) as admin:
            await admin.config_set("maxmemory", "1")
            for asked in (
                vault.keep("a", {"n": b"v"}, 60),
                counters.seed("b", 1, int(time.time() * 1000) + 60_000),
            ):
                with pytest.raises(StoreDown, match="out of memory"):
                    await asked
            await admin.config_set("maxmemory", "0")
        await vault.keep("a", {"n": b"v"}, 60)
        await counters.close()

    asyncio.run(test())


def test_a_wrong_password_is_reported_without_it() -> None:
    """R-DE-18"""
    with RedisServer(password="the-right-s3cret") as server:

        async def test() -> None:
            counters, _ = await open_redis(server.url)
            await counters.check()
            await counters.close()
            for url in (
                server.url.replace("the-right", "a-wrong"),
                server.url.replace(":the-right-s3cret@", ""),
            ):
                with pytest.raises(StoreUnusable, match="refuses the user or the password") as reported:
                    await open_redis(url)
                assert "s3cret" not in str(reported.value)

        asyncio.run(test())


def test_a_cluster_is_refused_in_a_plain_line() -> None:
    with (
        # By itself it takes a second port 10,000 above the first, which may be somebody's.
        RedisServer(settings=("--cluster-enabled", "yes", "--cluster-port", str(free_port()))) as server,
        pytest.raises(StoreUnusable, match="Cluster"),
    ):
        asyncio.run(open_redis(server.url))


def test_what_a_durable_server_was_reported_is_there_after_kill_9() -> None:
    with RedisServer(durable=True) as server:

        async def test() -> None:
            end = int(time.time() * 1000) + 86_400_000
            counters, vault = await open_redis(server.url, call_seconds=5)
            assert await counters.take([Budget("b", 10, 10, end)]) is None
            await vault.keep("a", {"n": b"v"}, 600)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            assert await counters.known(["b"]) == {"b": 10}
            assert await counters.take([Budget("b", 1, 10, end)]) is not None
            assert await vault.recall("a", ["n"]) == {"n": b"v"}
            await counters.close()

        asyncio.run(test())
