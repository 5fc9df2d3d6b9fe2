"""The fleet's servers as they are run where it matters: encrypted, with a replica, behind a pooler.

FAULTS 100, 101; the issue's failover: the primary is gone, a replica is promoted, and no gateway is restarted.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from proofs.server_groups import PgBouncer, PostgresPair, WatchedRedis
from proofs.servers import PostgresServer, RedisServer
from tests.fleet.fleet_kit import Caller, Fleet, chat, progress, run
from tests.stores.servers import needs_own_postgres, needs_own_redis, needs_pgbouncer
from tests.waiting import wait_until

pytestmark = [needs_own_postgres, needs_own_redis]


@pytest.mark.whole  # tests/stores verifies TLS at every change
def test_a_fleet_works_over_verified_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    with (
        PostgresServer(authority=authority) as postgres,
        RedisServer(authority=authority) as redis,
        Fleet(tmp_path, postgres.url, redis.url).running() as two,
    ):
        assert _statuses(two, [0, 1]) == ["ready", "ready"]
        _keeps_what_it_acknowledges(two)
        _a_limit_comes_to_hold(two)


@pytest.mark.whole
def test_the_primary_of_postgresql_dies_and_everything_acknowledged_is_on_the_promoted_one(
    tmp_path: Path,
) -> None:
    with (
        PostgresPair() as pair,
        RedisServer() as redis,
        Fleet(tmp_path, pair.url, redis.url).running() as two,
    ):
        processes = [machine.pid for machine in two.machines]
        callers = _keeps_what_it_acknowledges(two, pair.fail_over)
        # Anyone who asked in between was informed.
        refused = [reply for caller in callers for reply in caller.odd]
        assert {reply.status for reply in refused} <= {503}
        assert not sum(caller.broken for caller in callers)
        wait_until(lambda: _statuses(two, [0, 1]) == ["ready", "ready"])
        assert [machine.pid for machine in two.machines] == processes
        assert all(machine.ended() is None for machine in two.machines)


@pytest.mark.whole
def test_the_primary_of_redis_dies_and_limits_hold_by_the_one_that_the_sentinels_name(tmp_path: Path) -> None:
    with (
        PostgresServer() as postgres,
        WatchedRedis() as redis,
        Fleet(tmp_path, postgres.url, redis.url).running() as two,
    ):
        callers = _keeps_what_it_acknowledges(two, redis.fail_over)
        # Redis holds nothing that an answer has to wait for.
        assert not [reply for caller in callers for reply in caller.odd]
        wait_until(lambda: _statuses(two, [0, 1]) == ["ready", "ready"])
        _a_limit_comes_to_hold(two)
        assert all(machine.ended() is None for machine in two.machines)


@pytest.mark.whole  # tests/stores goes through PgBouncer at every change
@needs_pgbouncer
def test_a_fleet_works_through_pgbouncer_in_transaction_mode(tmp_path: Path) -> None:
    with (
        PostgresServer() as postgres,
        PgBouncer(postgres) as pooler,
        RedisServer() as redis,
        Fleet(tmp_path, pooler.url, redis.url).running() as two,
    ):
        callers = _keeps_what_it_acknowledges(two)
        assert not [reply for caller in callers for reply in caller.odd]
        pooler.restart()
        _keeps_what_it_acknowledges(two)
        _a_limit_comes_to_hold(two)


def _keeps_what_it_acknowledges(two: Fleet, happens: Callable[[], None] | None = None) -> list[Caller]:
    callers = [Caller(two, number) for number in range(4)]

    async def trial() -> None:
        stopped = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for caller in callers:
                group.create_task(caller.run(stopped))
            await progress(callers)
            if happens is not None:
                await asyncio.to_thread(happens)
                await progress(callers)
            stopped.set()

    run(trial())
    acknowledged = {key: word for caller in callers for key, word in caller.acknowledged.items()}
    for number, (identifier, word) in enumerate(acknowledged.items()):
        reply = two.ask(number % 2, "GET", f"/v1/responses/{identifier}")
        assert reply.status == 200, reply.body
        assert word in reply.body.decode()
    return callers


def _a_limit_comes_to_hold(two: Fleet) -> None:
    """Over both machines together. On a busy machine Redis may be too slow for a moment, and each has its own."""
    wait_until(lambda: 10 <= _allowed(two) <= 12)  # a place comes back every six seconds


def _allowed(two: Fleet) -> int:
    key = two.create_key(f"limited-{secrets.token_hex(4)}", requests_per_minute=10)
    wait_until(lambda: all(two.ask(at, "GET", "/v1/models", key=key).status == 200 for at in (0, 1)))
    statuses = [
        two.ask(number % 2, "POST", "/v1/chat/completions", chat("demo", "hi"), key=key).status
        for number in range(20)
    ]
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


def _statuses(two: Fleet, machines: list[int]) -> list[str]:
    return [two.ask(at, "GET", "/readyz").json()["status"] for at in machines]
