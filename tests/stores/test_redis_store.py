"""What is particular to Redis; what all counters do is in the contract tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from tests.stores.servers import needs_redis, redis_url, with_option
from tests.tiers import WHOLE, rows
from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.records import Budget, Denied, Rate
from wireglot.stores.redis import RedisCounters, RedisVault, open_redis

pytestmark = needs_redis


def tomorrow() -> int:
    return int(time.time() * 1000) + 86_400_000


def run(test: Callable[[RedisCounters, RedisVault, Redis], Awaitable[None]]) -> None:
    """With a second client that sees the server's keys as they are."""
    url = redis_url()

    async def whole() -> None:
        counters, vault = await open_redis(url, connect_seconds=10, call_seconds=10, vault_seconds=10)
        async with Redis.from_url(url.partition("?")[0]) as client:
            await test(counters, vault, client)
        await counters.close()

    asyncio.run(whole())


def test_every_key_ends_by_itself() -> None:
    """Nothing grows for ever."""

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        assert await counters.take([Rate("r", 1, 10, 60), Budget("b", 1, 10, tomorrow())]) is None
        await counters.seed("s", 5, tomorrow())
        await counters.settle([Rate("r", -1, 10, 60), Rate("t", 1, 10, 60), Budget("s", 2, 10, tomorrow())])
        await counters.settle([Budget("s", -20, 10, tomorrow())])
        assert await counters.enter("p", "h", 1, 60)
        await counters.cool({"c": 60.0})
        assert await counters.lock("l", "h", 60)
        await vault.keep("a", {"n": b"v"}, 60)
        keys = [key async for key in client.scan_iter(match=counters._prefix + "*", count=1000)]
        assert len(keys) == 7
        for key in keys:
            assert 0 < await client.pttl(key) <= 86_400_000

    run(test)


def test_a_bucket_is_reported_to_the_millisecond() -> None:
    """T20: the wait is the truth; Lua's own way of writing numbers would round it to minutes."""

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        assert await counters.take([Rate("r", 90, 100, 60)]) is None
        denied = await counters.take([Rate("r", 20, 100, 60)])
        assert denied is not None
        assert denied.name == "r"
        assert 0 < denied.wait <= 6.0
        assert await counters.take([Rate("r", 10, 100, 60)]) is None
        await counters.settle([Rate("r", -50, 100, 60)])
        assert await counters.take([Rate("r", 45, 100, 60)]) is None

    run(test)


def test_debt_is_never_more_than_two_windows() -> None:
    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        assert await counters.take([Rate("r", 10**9, 10, 60)]) is None
        await counters.settle([Rate("r", 10**9, 10, 60)])
        denied = await counters.take([Rate("r", 10, 10, 60)])
        assert denied is not None
        assert denied.wait <= 120

    run(test)


def test_claims_are_taken_all_or_none_and_the_longest_wait_is_reported() -> None:
    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        assert await counters.take([Rate("full", 10, 10, 60), Budget("over", 10, 10, tomorrow())]) is None
        claims: list[Rate | Budget] = [
            Rate("free", 10, 10, 60),
            Rate("full", 1, 10, 60),
            Budget("over", 1, 10, tomorrow()),
        ]
        for order in (claims, claims[::-1]):
            denied = await counters.take(order)
            assert denied is not None
            assert denied.name == "over"
            assert denied.wait > 3600
        assert await counters.take([Rate("free", 10, 10, 60)]) is None

    run(test)


def test_the_script_decides_as_the_store_in_memory_does() -> None:
    """The same claims, in the same order: the same answers."""

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        plain, end = MemoryCounters(), tomorrow()
        for turn in range(120):
            name = str(turn % 3)
            # A window of a month: what leaks out between two calls changes no answer.
            claims: list[Rate | Budget] = [Rate(name, turn % 7, 40, 2_592_000)]
            if turn % 2:
                claims.append(Budget(name, turn % 5, 50, end))
            ours, theirs = await counters.take(claims), await plain.take(claims)
            assert (ours and ours.name) == (theirs and theirs.name)
            if turn % 4 == 0:
                back: list[Rate | Budget] = [
                    Rate(name, -(turn % 3), 40, 2_592_000),
                    Budget(name, 2 - turn % 4, 50, end),
                ]
                await counters.settle(back)
                await plain.settle(back)
            assert await counters.known(["0", "1", "2"]) == await plain.known(["0", "1", "2"])

    run(test)


def test_an_evicted_budget_is_unknown_and_begins_where_the_ledger_says() -> None:
    """FAULTS 100: eviction. A correction alone does not begin it again."""

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        end = tomorrow()
        assert await counters.take([Budget("b", 90, 100, end)]) is None
        assert await counters.known(["b", "other"]) == {"b": 90}
        await client.unlink(counters._key("budget", "b"))
        await counters.settle([Budget("b", -10, 100, end)])
        assert await counters.known(["b"]) == {}
        await counters.seed("b", 100, end)
        await counters.seed("b", 0, end)
        denied = await counters.take([Budget("b", 1, 100, end)])
        assert isinstance(denied, Denied)

    run(test)


def test_large_budgets_are_counted_exactly() -> None:
    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        end = tomorrow()
        await counters.seed("b", 4 * 10**15, end)
        for _ in range(3):
            assert await counters.take([Budget("b", 1, 5 * 10**15, end)]) is None
        assert await client.get(counters._key("budget", "b")) == b"4000000000000003"

    run(test)


def test_a_server_that_has_forgotten_the_scripts_gets_them_again() -> None:
    """FAULTS 100: NOSCRIPT after a failover."""

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        for _ in range(2):
            await client.script_flush()
            assert await counters.take([Rate("r", 1, 10, 60)]) is None
            assert await counters.lock("l", "h", 60)

    run(test)


def test_names_of_any_letters_stay_apart() -> None:
    odd = ["a\0b", "ab", "\ud800", "*", "[a-z]", "é🙂", "a b\r\nc"]

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        await counters.cool(dict.fromkeys(odd, 60.0))
        assert set(await counters.cooling()) == set(odd)
        for caller in odd:
            await vault.keep(caller, {name: f"{caller!r}{name!r}".encode() for name in odd}, 60)
        for caller in odd:
            assert await vault.recall(caller, odd) == {name: f"{caller!r}{name!r}".encode() for name in odd}

    run(test)


def test_forgetting_a_tenant_takes_its_values_and_nobody_elses() -> None:
    """T19: a caller's wipe reaches the vault."""

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        await vault.keep("a", {str(at): b"x" for at in range(2500)}, 60)
        await vault.keep("*", {"n": b"y"}, 60)
        assert await vault.forget("*") == 1
        await vault.keep("b", {"n": b"y"}, 60)
        assert await vault.forget("a") == 2500
        assert await vault.recall("a", ["1"]) == {}
        assert await vault.recall("b", ["n"]) == {"n": b"y"}

    run(test)


def test_a_request_that_is_cancelled_leaves_no_answer_for_the_next_one() -> None:
    """T19: clients hang up at any moment; nobody reads what another one asked for."""

    async def test(counters: RedisCounters, vault: RedisVault, client: Redis) -> None:
        await vault.keep("a", {str(at): str(at).encode() for at in range(50)}, 60)

        async def asks(name: str) -> None:
            assert await vault.recall("a", [name]) == {name: name.encode()}

        for turn in range(40 if WHOLE else 12):  # each moment once
            tasks = [asyncio.create_task(asks(str(at))) for at in range(48)]
            for _ in range(turn % 12):
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            for answer in (await asyncio.gather(*tasks, return_exceptions=True))[1::2]:
                assert answer is None

    run(test)


def test_valkey_by_its_own_name() -> None:
    url = "valkey" + redis_url().removeprefix("redis")

    async def test() -> None:
        counters, _ = await open_redis(url)
        await counters.check()
        await counters.close()

    asyncio.run(test())


@rows(
    ("url", "kind", "reason"),
    [
        ("redis://:a-s3cret@127.0.0.1:1/0", StoreDown, "cannot be reached"),
        ("redis://:a-s3cret@a-s3cret.invalid/0", StoreDown, "cannot be reached"),
        ("redis://:a-s3cret@127.0.0.1:a-s3cret/0", StoreUnusable, "not a Redis URL"),
        ("redis://:a-s3cret@127.0.0.1:1/0?a-s3cret=1", StoreUnusable, "does not know|not a Redis URL"),
        ("redis://[::1:a-s3cret/0", StoreUnusable, "not a Redis URL"),
    ],
)
def test_what_cannot_be_opened_says_why_and_never_the_password(url: str, kind: type, reason: str) -> None:
    """R-DE-18"""
    with pytest.raises((StoreDown, StoreUnusable), match=reason) as reported:
        asyncio.run(open_redis(url))
    assert reported.type is kind
    assert "s3cret" not in str(reported.value)


def test_a_password_the_server_does_not_want_is_refused() -> None:
    url = redis_url().replace("redis://", "redis://somebody:a-s3cret@", 1)
    with pytest.raises(StoreUnusable, match="refuses the user or the password") as reported:
        asyncio.run(open_redis(with_option(url, "db", "0")))
    assert "s3cret" not in str(reported.value)
