"""What requests ask of PostgreSQL and Redis, counted by these servers themselves.

The gateway runs with private servers of both; counters and processor time are read before and after a number
of requests, once everything has been written: what a shared server bears is what the plan of capacity needs.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any, NamedTuple

from proofs.bench import processes
from proofs.bench.bodies import body
from proofs.bench.scenarios import DIALECTS, path_of
from proofs.bench.talking import Talk
from proofs.bench.targets import KEY, Target, wireglot
from proofs.servers import PostgresServer, RedisServer, find_postgres, find_redis
from wireglot_core.dialects.registry import DialectName

REQUESTS = 300
_SETTLED_SECONDS = 3.0
"""Usage reaches the store in batches, a moment after the answer; PostgreSQL tells counters a second late."""

LIMITED = "limited"
"""The name of the key that has limits; its secret is the bench's with this behind it."""


class Kind(NamedTuple):
    """One kind of request."""

    name: str
    title: str
    dialect: DialectName
    model: str
    stream: bool = False
    limited: bool = False


KINDS = (
    Kind("plain", "a request", DIALECTS["c"], "mine/mock"),
    Kind("limited", "a request of a key with limits", DIALECTS["c"], "mine/mock", limited=True),
    Kind("stream", "a cross stream of 20 events", DIALECTS["a"], "mine/mock-c20", stream=True),
    Kind("stored", "a stored response", DIALECTS["r"], "mine/mock"),
)


class Counters(NamedTuple):
    seconds: float
    transactions: int
    rows: int
    """Written: inserted, updated and deleted."""
    wal_bytes: int
    redis_commands: int
    postgres_cpu: float
    redis_cpu: float


def available() -> bool:
    return find_postgres() is not None and find_redis() is not None


def drive(command: list[str], upstream: int, directory: Path) -> dict[str, dict[str, float]]:
    """Of each kind: calls and processor time of one request."""
    with PostgresServer(durable=True) as postgres, RedisServer() as redis:
        store = f'url = "{postgres.url}"\nshared = "{redis.url}"\n'
        target = wireglot(command, upstream, directory, limited_key(), store=store)
        target.start(None)
        try:
            return {kind.name: _count(kind, target, postgres, redis) for kind in KINDS}
        finally:
            target.stop()


def limited_key() -> str:
    """Limits that are counted and never reached."""
    digest = hashlib.sha256(f"{KEY}-{LIMITED}".encode()).hexdigest()
    most = 10**12
    return (
        f'[keys.{LIMITED}]\nhash = "sha256:{digest}"\nrequests_per_minute = {most}\n'
        f"tokens_per_minute = {most}\ntokens_per_day = {most}\n"
    )


def _count(kind: Kind, target: Target, postgres: PostgresServer, redis: RedisServer) -> dict[str, float]:
    key = f"{KEY}-{LIMITED}" if kind.limited else KEY
    talk = Talk(target.port, [f"Authorization: Bearer {key}"])
    content = body(kind.dialect, "2k", kind.model, stream=kind.stream)
    path = path_of(kind.dialect, kind.model, stream=kind.stream)
    talk.ask(path, content)
    time.sleep(_SETTLED_SECONDS)
    before = _counters(postgres, redis)
    failed = sum(talk.ask(path, content).status != 200 for _ in range(REQUESTS))
    time.sleep(_SETTLED_SECONDS)
    busy = _counters(postgres, redis)
    # What gateway and servers do by themselves meanwhile is not of the requests.
    time.sleep(_SETTLED_SECONDS)
    idle = _counters(postgres, redis)
    talk.close()
    return {**per_request(before, busy, idle), "err": failed}


def per_request(before: Counters, after: Counters, idle: Counters) -> dict[str, float]:
    """`after` less `before`, less what is done in as long a time without any request."""
    share = (after.seconds - before.seconds) / (idle.seconds - after.seconds)
    found = {}
    for name, first, last, rest in zip(Counters._fields, before, after, idle, strict=True):
        if name != "seconds":
            found[name] = max(last - first - (rest - last) * share, 0) / REQUESTS
    return found


def _counters(postgres: PostgresServer, redis: RedisServer) -> Counters:
    assert postgres.process is not None
    assert redis.process is not None
    # The clocks first: asking costs, too.
    clocks = [_cpu(postgres.process.pid), _cpu(redis.process.pid)]
    reported: dict[str, Any] = asyncio.run(_postgres(postgres.url))
    commands = asyncio.run(_redis(redis.url))
    return Counters(
        time.monotonic(), reported["transactions"], reported["rows"], reported["wal"], commands, *clocks
    )


def _cpu(pid: int) -> float:
    return sum(processes.cpu_seconds(one) or 0.0 for one in processes.family(pid))


async def _postgres(url: str) -> dict[str, Any]:
    import asyncpg  # type: ignore[import-untyped]  # it ships no types

    connection = await asyncpg.connect(url)
    try:
        row = await connection.fetchrow(
            "select xact_commit + xact_rollback as transactions,"
            " tup_inserted + tup_updated + tup_deleted as rows,"
            " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as wal"
            " from pg_stat_database where datname = current_database()"
        )
        return dict(row)
    finally:
        await connection.close()


async def _redis(url: str) -> int:
    from redis.asyncio import Redis

    client = Redis.from_url(url)
    try:
        reported = await client.info("commandstats")
    finally:
        await client.aclose()
    own = ("info", "hello", "client", "auth", "select", "ping")
    return sum(
        stats["calls"]
        for name, stats in reported.items()
        if name.removeprefix("cmdstat_").split("|")[0] not in own
    )
