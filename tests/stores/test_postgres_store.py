"""What is particular to PostgreSQL; what every store does is in the contract tests."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from tests.stores.servers import needs_postgres, postgres_engine, postgres_url
from wireglot.stores.base import Engine
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.records import Document, KeyRow, KindLimits, UsageQuery, UsageRow, VaultEntry

pytestmark = needs_postgres

ODD = [
    "a\0b",
    "a\\0b",
    "a\\u0000b",
    "ab",
    "\ud800",
    "\\",
    "\\\\",
    "é\u2028🙂",
    "a'; DROP TABLE documents; --",
]


def run(test) -> None:
    async def whole() -> None:
        engine = await postgres_engine()
        try:
            await test(engine)
        finally:
            await engine.close()

    asyncio.run(whole())


def test_names_that_postgres_cannot_hold_are_kept_and_stay_apart() -> None:
    """T5, T19: NUL, half a surrogate pair and quotes are names like any other."""

    async def test(engine: Engine) -> None:
        documents = [Document(name, name, name, name.encode("utf-8", "surrogatepass")) for name in ODD]
        assert await engine.documents.put(documents, new=True)
        for one in documents:
            assert await engine.documents.get(one.caller, one.kind, [*ODD]) == [one]
        await engine.vault.keep("a\0", {name: name.encode("utf-8", "surrogatepass") for name in ODD}, 60)
        assert set(await engine.vault.recall("a\0", ODD)) == set(ODD)
        rows = [UsageRow(name, name, 5, session=name, model=name, outcome="ok", finished=6) for name in ODD]
        await engine.ledger.apply(rows)
        assert sorted(await engine.ledger.rows(UsageQuery(), limit=99), key=lambda row: row.id) == sorted(
            rows, key=lambda row: row.id
        )
        groups = [total.group for total in await engine.ledger.totals(UsageQuery(groups=("caller",)))]
        assert groups == sorted((name,) for name in ODD)
        assert await engine.ledger.forget_session("a\0b", "a\0b") == 1

    run(test)


def test_the_sums_are_those_of_the_plain_reading() -> None:
    """R-DE-12: the database adds up what the store in memory adds up."""
    chance = random.Random(4)
    day = 86_400_000

    def row(number: int) -> UsageRow:
        started = chance.randrange(5 * day)
        ended = chance.random() < 0.8
        return UsageRow(
            id=f"r{number}",
            caller=chance.choice("abc"),
            started=started,
            session=chance.choice(["", "s1", "s2", "S2"]),
            dialect=chance.choice(["", "anthropic", "gemini"]),
            model=chance.choice(["m1", "m2"]),
            upstream_model=chance.choice(["", "u1", "u2"]),
            provider=chance.choice(["p", "q"]),
            outcome=chance.choice(["ok", "ok", "error", "client_abort"]) if ended else "",
            finished=started + chance.randrange(9000) if ended else 0,
            input=chance.randrange(3),
            cache_write=chance.randrange(3),
            cache_write_long=chance.randrange(3),
            output=chance.randrange(2),
            cost=chance.choice([None, 0, 7]),
            losses=("a", "b") if ended else (),
        )

    rows = [row(number) for number in range(400)]
    queries = [
        UsageQuery(),
        UsageQuery(caller="nobody"),
        UsageQuery(groups=("day", "model"), since=day // 2, until=4 * day),
        UsageQuery(groups=("session", "outcome"), caller="a"),
        UsageQuery(groups=("provider",), model="u1"),
        UsageQuery(groups=("model",), model="m2", provider="q", session="S2"),
        UsageQuery(groups=("caller",), caller="nobody"),
    ]

    async def test(engine: Engine) -> None:
        plain = MemoryEngine()
        for store in (plain, engine):
            await store.ledger.apply(rows[:250])
            await store.ledger.apply(rows[200:])
        for query in queries:
            assert await engine.ledger.totals(query) == await plain.ledger.totals(query)
            for newest in (True, False):
                assert await engine.ledger.rows(
                    query, limit=30, newest_first=newest
                ) == await plain.ledger.rows(query, limit=30, newest_first=newest)
        assert await engine.ledger.sessions("a", limit=9) == await plain.ledger.sessions("a", limit=9)
        assert await engine.ledger.spent("b", day) == await plain.ledger.spent("b", day)

    run(test)


def test_a_number_beyond_all_measure_does_not_keep_the_other_rows_from_being_written() -> None:
    """Rule L: a provider that counts 10^30 tokens, beside rows that are in order."""

    async def test(engine: Engine) -> None:
        odd = UsageRow(
            "odd", "a", 1, outcome="ok", finished=2, input=10**30, output=10**30, session="s" * 8000
        )
        await engine.ledger.apply([UsageRow("plain", "a", 1), odd])
        assert {row.id for row in await engine.ledger.rows(UsageQuery(), limit=9)} == {"plain", "odd"}
        assert (await engine.ledger.totals(UsageQuery()))[0].requests == 2
        assert (await engine.ledger.spent("a", 0))[0] > 2**60
        assert await engine.ledger.forget_session("a", "s" * 8000) == 1

    run(test)


def test_an_id_that_no_index_holds_is_the_writers_fault_and_for_a_reader_not_there() -> None:
    async def test(engine: Engine) -> None:
        with pytest.raises(ValueError, match="more than 1000"):
            await engine.documents.put([Document("a", "k", "x" * 1001, b"")])
        assert await engine.documents.get("a", "k", ["x" * 100_000]) == []

    run(test)


def test_sweeps_at_the_same_time_share_the_work() -> None:
    async def test(engine: Engine) -> None:
        other = await PostgresEngine.open(url)
        await engine.documents.put([Document("a", "k", str(at), b"x", expires=1) for at in range(1700)])
        await engine.load([VaultEntry("a", str(at), b"x", 1) for at in range(700)])
        await engine.documents.put([Document("a", "kept", "1", b"x")])
        swept = await asyncio.gather(
            *(
                store.sweep(9, usage_before=0, dead_before=0, kinds={})
                for store in (engine, other, engine, other)
            )
        )
        assert sum(one.expired.get("k", 0) for one in swept) == 1700
        assert sum(one.expired.get("vault", 0) for one in swept) == 700
        assert len(await engine.documents.get("a", "kept", ["1"])) == 1
        await other.close()

    url = postgres_url()

    async def whole() -> None:
        engine = await PostgresEngine.open(url)
        await test(engine)
        await engine.close()

    asyncio.run(whole())


def test_the_oldest_of_a_kind_go_when_it_has_grown_too_large_and_no_more_than_that() -> None:
    async def test(engine: Engine) -> None:
        await engine.documents.put([Document("a", "k", str(at), bytes(10), created=at) for at in range(1200)])
        limits = {"k": KindLimits(bytes=1005)}
        swept = await asyncio.gather(
            *(engine.sweep(9, usage_before=0, dead_before=0, kinds=limits) for _ in range(3))
        )
        assert sum(one.evicted.get("k", 0) for one in swept) == 1100
        assert [int(one.id) for one in await engine.documents.recent("a", "k", limit=2000)] == [
            *range(1199, 1099, -1)
        ]

    run(test)


def test_everything_goes_out_and_into_another_store() -> None:
    async def test(engine: Engine) -> None:
        later = int(time.time() * 1000) + 60_000
        records: list[Document | UsageRow | KeyRow | VaultEntry] = [
            KeyRow("k", "d", "wg-", 1, models=("m",)),
            *(Document("a", "k", f"{at:05}", bytes(100), parent="p", number=at + 1) for at in range(3000)),
            VaultEntry("a", "n", b"v", later),
            UsageRow("u", "a", 1, outcome="ok", finished=2, cost=3, losses=("l",)),
        ]
        await engine.load(records)
        version = await engine.keys.version()
        await engine.load(records)
        assert await engine.keys.version() >= version
        copy = await postgres_engine()
        await copy.load([record async for record in engine.export()])
        assert sorted([record async for record in copy.export()], key=repr) == sorted(records, key=repr)
        assert await copy.documents.append([Document("a", "k", "next", b"", parent="p")]) == 3001
        await copy.close()

    run(test)


def test_the_engine_tells_its_name_without_host_or_password() -> None:
    async def test(engine: Engine) -> None:
        name = (await engine.stats()).engine
        assert name.startswith("PostgreSQL ")
        assert "127.0.0.1" not in name
        assert "password" not in name

    run(test)
