"""The commands that the log of a fleet and the vault send to Redis."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from wireglot.stores.base import StoreUnusable
from wireglot.stores.records import LogEntry, Rate
from wireglot.stores.redis import counters as redis_counters
from wireglot.stores.redis import scripts
from wireglot.stores.redis.address import read_address
from wireglot.stores.redis.counters import RedisCounters, RedisVault, open_redis
from wireglot.stores.redis.log import RedisLog
from wireglot.stores.redis.pool import RedisPool

NOW = 1_700_000_000.5
OWNER = hashlib.sha256(b"me").hexdigest()[:32]


class Client:
    """Redis, as far as it is called. Every command is answered with the next of `answers`."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Any] = []
        self.closed = 0

    def pipeline(self, *, transaction: bool) -> _Journey:
        return _Journey(self, transaction)

    async def aclose(self) -> None:
        self.closed += 1

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **options: Any) -> Any:
            self.sent.append((name, *given, *([options] if options else [])))
            return self.answers.pop(0)

        return call


class _Journey:
    def __init__(self, client: Client, transaction: bool) -> None:
        self._client = client
        self._commands: list[Any] = []
        self._transaction = transaction

    async def __aenter__(self) -> _Journey:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        def add(*given: Any, **options: Any) -> None:
            self._commands.append((name, *given, *([options] if options else [])))

        return add

    async def execute(self) -> None:
        self._client.sent.append((self._transaction, *self._commands))


def made(monkeypatch: pytest.MonkeyPatch, client: Client, url: str = "redis://h?prefix=p:") -> RedisLog:
    monkeypatch.setattr(time, "time", lambda: NOW)
    found = RedisLog(url)
    anything: Any = client
    found._pool.client = found._pool._pool = anything
    return found


def test_an_entry_is_added_and_what_is_over_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    asyncio.run(made(monkeypatch, client).tell("news", b"body", seconds=1.5, most=7))
    assert client.sent == [
        (
            False,
            ("xadd", "p:fleet:news", {b"body": b"body"}, {"maxlen": 7, "approximate": True}),
            ("xtrim", "p:fleet:news", {"minid": "1699999999000", "approximate": True}),
            ("pexpire", "p:fleet:news", 1500),
        )
    ]


def test_entries_are_read_from_a_place_on_in_either_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(b"5-1", {b"body": b"x"})]
    client = Client(found, found, found, found, 1)
    log = made(monkeypatch, client)

    async def work() -> None:
        for after in ("", "4-0"):
            assert await log.heard("news", after, 9) == [LogEntry("5-1", 5, b"x")]
        for before in ("", "6-0"):
            assert await log.last("news", before, 9) == [LogEntry("5-1", 5, b"x")]
        await log.remove("news", ["5-1", "5-2"])
        await log.remove("news", [])

    asyncio.run(work())
    assert client.sent == [
        ("xrange", "p:fleet:news", "-", "+", 9),
        ("xrange", "p:fleet:news", "(4-0", "+", 9),
        ("xrevrange", "p:fleet:news", "+", "-", 9),
        ("xrevrange", "p:fleet:news", "(6-0", "-", 9),
        ("xdel", "p:fleet:news", "5-1", "5-2"),
    ]


def test_what_is_handed_over_is_kept_under_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(None, b"body", None, b"2")
    log = made(monkeypatch, client)

    async def work() -> None:
        await log.keep("me", "t1", b"body", seconds=1.5, max_bytes=99)
        assert await log.find("me", "t1") == b"body"
        assert await log.find("me", "t2") is None
        assert await log.forget("me") == 2
        await log.close()

    asyncio.run(work())
    start = f"p:trace:{OWNER}:"
    shelf = ("p:traces", "p:traces-bytes")
    assert client.sent == [
        ("evalsha", scripts.KEEP.digest, 3, *shelf, f"{start}t1", 1_700_000_000_500, 1500, 99, 4, b"body"),
        ("get", f"{start}t1"),
        ("get", f"{start}t2"),
        ("evalsha", scripts.FORGET.digest, 2, *shelf, start),
    ]
    assert client.closed == 2, "the client and its connections"


def test_a_url_that_the_driver_does_not_take_is_refused_without_its_password() -> None:
    for opening in (RedisLog, lambda url: asyncio.run(open_redis(url))):
        with pytest.raises(StoreUnusable, match="not a Redis URL the driver understands") as refused:
            opening("redis://me:secret@h:port")
        assert "secret" not in str(refused.value)


def test_a_log_waits_two_seconds() -> None:
    options: Any = RedisLog("redis://h")._pool._pool.connection_kwargs
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (2.0, 2.0)


def pooled(client: Client) -> RedisPool:
    found = RedisPool(read_address("redis://h"), connect_seconds=1.0, call_seconds=1.0)
    anything: Any = client
    found.client = found._pool = anything
    return found


def test_values_of_the_vault_end_and_are_forgotten_by_their_owner() -> None:
    client = Client((7, [b"a", b"b"]), 2, (0, []))
    vault = RedisVault(pooled(client), "p*:")

    async def work() -> None:
        await vault.keep("me", {"a": b"1", "b": b"2"}, 5)
        await vault.keep("me", {"c": b"3"}, 0)
        assert await vault.forget("me") == 2

    asyncio.run(work())
    start = f"p*:v:{OWNER}:"
    pattern = {"match": rf"p\*:v:{OWNER}:*", "count": 1000}
    assert client.sent == [
        (False, ("set", f"{start}a", b"1", {"px": 5000}), ("set", f"{start}b", b"2", {"px": 5000})),
        (False, ("set", f"{start}c", b"3", {"px": 1})),
        ("scan", 0, pattern),
        ("unlink", b"a", b"b"),
        ("scan", 7, pattern),
    ]


def test_counters_close_the_vault_that_was_opened_with_them() -> None:
    client, other = Client(True, 1, None, None), Client()
    counters = RedisCounters(pooled(client), "p:", RedisVault(pooled(other), "p:"))

    async def work() -> None:
        await counters.check()
        await counters.leave("n", "me")
        await counters.unlock("n", "me")
        await counters.settle([Rate("r", -1, 10, 60)])
        await counters.close()

    asyncio.run(work())
    assert client.sent == [
        ("ping",),
        ("zrem", "p:places:n", "me"),
        ("evalsha", scripts.UNLOCK.digest, 1, "p:lock:n", "me"),
        ("evalsha", scripts.SETTLE.digest, 1, "p:rate:r", "rate", -1, 10, 60_000),
    ]
    assert (client.closed, other.closed) == (2, 2)


def test_where_certificates_of_authorities_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[Any] = []
    plain = ssl.create_default_context

    def noted(**options: Any) -> ssl.SSLContext:
        given.append(options)
        return plain()

    monkeypatch.setattr(ssl, "create_default_context", noted)
    file = tmp_path / "ca.pem"
    file.write_text("x")
    read_address(f"rediss://h?ssl_ca_certs={file}&ssl_ca_path=/certs&ssl_ca_data=PEM")
    read_address("rediss://h")
    assert given == [
        {"cafile": str(file), "capath": "/certs", "cadata": "PEM"},
        {"cafile": None, "capath": None, "cadata": None},
    ]


def test_a_server_that_cannot_be_used_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    async def close(self: RedisPool) -> None:
        closed.append("closed")

    async def meet(pool: RedisPool) -> None:
        raise StoreUnusable("too old")

    monkeypatch.setattr(RedisPool, "close", close)
    monkeypatch.setattr(redis_counters, "_meet", meet)
    with pytest.raises(StoreUnusable, match="too old"):
        asyncio.run(open_redis("redis://h"))
    assert closed == ["closed", "closed"], "those of counters and of the vault"


def test_counters_are_waited_for_a_quarter_of_a_second_and_the_vault_for_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def meet(pool: RedisPool) -> None: ...

    monkeypatch.setattr(redis_counters, "_meet", meet)
    counters, vault = asyncio.run(open_redis("redis://h?prefix=q:"))
    for pool, seconds in ((counters._pool, 0.25), (vault._pool, 2.0)):
        options: Any = pool._pool.connection_kwargs
        assert (options["socket_timeout"], options["socket_connect_timeout"]) == (seconds, seconds)
    assert (counters._prefix, vault._prefix) == ("q:", "q:")
