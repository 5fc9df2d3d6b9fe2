"""What every whole store does beyond its parts: sweeping, wiping, telling about itself, going elsewhere."""

from __future__ import annotations

import time

from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import Document, KeyRow, KindLimits, UsageQuery, UsageRow, VaultEntry
from wireglot.stores.sqlite import SqliteEngine


def now() -> int:
    return int(time.time() * 1000)


def swept(run, engine, at=None, *, usage_before=0, dead_before=0, kinds=None):
    return run(
        engine.sweep(at or now(), usage_before=usage_before, dead_before=dead_before, kinds=kinds or {})
    )


async def age_beats(engine, milliseconds: int) -> None:
    """As if all that was heard so far had been heard so much earlier; by the store's clock, which we cannot set."""
    match engine:
        case MemoryEngine():
            beats = engine._ledger.beats
            beats.update({name: beat - milliseconds for name, beat in beats.items()})
        case SqliteEngine():
            await engine._database.write(
                lambda connection: (
                    connection.execute("UPDATE instances SET beat = beat - ?", (milliseconds,)).get
                )
            )
        case _:
            await engine._pool.execute("UPDATE instances SET heard = heard - $1", milliseconds)


def exported(run, engine):
    async def everything() -> list:
        return [record async for record in engine.export()]

    return run(everything())


FAR = 10**14

RECORDS = [
    KeyRow("team", "d" * 64, "wg-abc", 1, models=("m",)),
    Document("t", "k", "a", b"\0\xff", parent="p", number=4, created=3, expires=FAR),
    Document("u", "l", "b", b"", created=1),
    VaultEntry("t", "n", b"\x80", FAR),
    UsageRow("r1", "t", 5, losses=("x",), outcome="ok", finished=6, cost=0),
    UsageRow("r2", "t", 6, session="s"),
]


def test_what_has_expired_is_removed_and_counted_by_kind(run, engine):
    at = now()
    run(
        engine.documents.put(
            [
                *(Document("t", "k", f"k{n}", b"x", expires=at - n) for n in range(250)),
                Document("t", "l", "gone", b"x", expires=1),
                Document("t", "k", "stays", b"x", expires=at + 3_600_000),
                Document("t", "k", "forever", b"x"),
            ]
        )
    )
    run(engine.load([VaultEntry("t", "gone", b"", at - 1), VaultEntry("t", "stays", b"", at + 3_600_000)]))
    assert swept(run, engine, at).expired == {"k": 250, "l": 1, "vault": 1}
    assert swept(run, engine, at).expired == {}
    assert {one.id for one in exported(run, engine) if isinstance(one, Document)} == {"stays", "forever"}
    assert run(engine.vault.recall("t", ["gone", "stays"])) == {"stays": b""}


def test_the_oldest_go_when_a_kind_has_grown_too_large(run, engine):
    run(
        engine.documents.put(
            [
                *(Document("t", "k", f"k{n}", b"x" * 10, created=n) for n in range(300)),
                Document("t", "free", "old", b"x" * 1000, created=0),
            ]
        )
    )
    result = swept(
        run, engine, kinds={"k": KindLimits(bytes=95), "free": KindLimits(), "none": KindLimits(5)}
    )
    assert result.evicted == {"k": 291}
    left = run(engine.documents.recent("t", "k", limit=999))
    assert [one.created for one in left] == list(range(299, 290, -1))
    assert len(run(engine.documents.recent("t", "free", limit=9))) == 1
    assert swept(run, engine, kinds={"k": KindLimits(bytes=95)}).evicted == {}


def test_old_usage_goes(run, engine):
    run(engine.ledger.apply([UsageRow(f"r{n}", "c", n + 1, outcome="ok", finished=n) for n in range(1200)]))
    assert swept(run, engine, usage_before=1101).usage == 1100
    assert run(engine.ledger.totals(UsageQuery()))[0].requests == 100


def test_open_rows_of_processes_that_went_silent_are_crashes(run, engine):
    """FAULTS 95, 110: intents without an end become `crash`."""
    run(engine.ledger.beat("dead"))
    run(age_beats(engine, 90_000))
    run(engine.ledger.beat("alive"))
    at = now()
    run(
        engine.ledger.apply(
            [
                UsageRow("a", "c", at - 99_000, instance="alive"),
                UsageRow("d", "c", at - 99_000, instance="dead"),
                UsageRow("e", "c", at - 99_000, instance="dead", outcome="ok", finished=at),
                UsageRow("n", "c", at - 99_000, instance="never heard of"),
                UsageRow("o", "c", at - 1000, instance="never heard of yet"),
            ]
        )
    )
    assert swept(run, engine, at, dead_before=at - 60_000).crashed == 2
    assert swept(run, engine, at, dead_before=at - 60_000).crashed == 0
    rows = run(engine.ledger.rows(UsageQuery(), limit=9))
    assert {row.id: row.outcome for row in rows} == {"a": "", "d": "crash", "e": "ok", "n": "crash", "o": ""}
    assert [row.finished for row in rows if row.id == "d"] == [at]


def test_a_wipe_removes_everything_of_one_caller_but_the_books(run, engine):
    """T19"""
    for caller in ("t", "u"):
        run(engine.documents.put([Document(caller, "k", f"k{n}", b"") for n in range(230)]))
        run(engine.documents.put([Document(caller, "l", "one", b"", parent="p", number=1)]))
        run(engine.vault.keep(caller, {"n": b"", "m": b""}, 3600))
        run(engine.ledger.apply([UsageRow(f"{caller}r", caller, 5, session="s", outcome="ok", output=3)]))
    gone = run(engine.wipe("t"))
    assert {name: gone.get(name) for name in ("k", "l", "vault")} == {"k": 230, "l": 1, "vault": 2}
    left = exported(run, engine)
    assert {record.caller for record in left if isinstance(record, Document | VaultEntry)} == {"u"}
    assert run(engine.ledger.spent("t", 0)) == (3, 0)
    assert run(engine.ledger.sessions("t", limit=9)) == []
    assert len(run(engine.ledger.sessions("u", limit=9))) == 1
    assert sum(run(engine.wipe("t")).values()) == 0


def test_stats_tell_what_there_is(run, engine):
    for record in RECORDS:
        run(engine.load([record]))
    stats = run(engine.stats())
    assert stats.engine
    assert stats.version >= 1
    counts = {kind: about.count for kind, about in stats.kinds.items()}
    assert counts == {"k": 1, "l": 1, "vault": 1, "usage": 2, "keys": 1}
    assert (stats.kinds["k"].bytes, stats.kinds["k"].oldest, stats.kinds["k"].newest) == (2, 3, 3)


def test_everything_goes_out_and_in_again(run, engine):
    run(engine.load(RECORDS))
    run(engine.load(exported(run, engine)))
    assert sorted(exported(run, engine), key=repr) == sorted(RECORDS, key=repr)


def test_what_is_there_already_stays_as_it_is(run, engine):
    run(engine.documents.put([Document("t", "k", "a", b"mine")]))
    run(engine.vault.keep("t", {"n": b"mine"}, 3600))
    run(engine.ledger.apply([UsageRow("r1", "t", 5)]))
    run(engine.keys.put(KeyRow("team", "a" * 64, "mine", 1)))
    run(engine.load(RECORDS))
    assert run(engine.documents.get("t", "k", ["a"]))[0].body == b"mine"
    assert run(engine.vault.recall("t", ["n"])) == {"n": b"mine"}
    assert [row.outcome for row in run(engine.ledger.rows(UsageQuery(), limit=9)) if row.id == "r1"] == [""]
    assert run(engine.keys.all())[0].prefix == "mine"


def test_it_says_that_it_is_there(run, engine):
    run(engine.check())


def test_a_large_export_comes_whole(run, engine):
    run(engine.load([Document("t", "k", f"{n}", b"x" * 3000) for n in range(2500)]))
    found = exported(run, engine)
    assert {one.id for one in found} == {f"{n}" for n in range(2500)}
    assert len(found) == 2500
