"""The contract of kept sums, over every store: they equal the rows, whatever becomes of those."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest

from wireglot.stores.durations import BOUNDS, Durations, letter_of, merged, of_letters, packed
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.memory.engine import MemoryLedger
from wireglot.stores.records import Outcome, UsageQuery, UsageRow, UsageTotal
from wireglot.stores.sqlite import SqliteEngine
from wireglot.stores.usage_sums import COLUMNS, DAY, HOUR, MARKS, SUMMED_FROM, SUMS, _taken

FIRST = 1_772_323_200_000
"""2026-03-01"""
NOW = FIRST + 3 * DAY
OUTCOMES: tuple[Outcome, ...] = ("ok", "ok", "ok", "error", "client_abort", "gateway_abort")
QUERIES = (
    UsageQuery(),
    UsageQuery(("day", "model")),
    UsageQuery(("caller", "caller_group"), since=FIRST + HOUR // 2, until=NOW - HOUR // 3),
    UsageQuery(("provider", "outcome"), since=FIRST + 1, caller="a"),
    UsageQuery(("client", "agent", "purpose", "operation"), model="big"),
    UsageQuery(("step", "provider"), since=FIRST, until=NOW, step=6 * HOUR),
    UsageQuery(("step",), since=FIRST + 5 * HOUR, step=DAY, group="team"),
    UsageQuery(("step",), since=FIRST + 5 * HOUR, step=HOUR // 4, client="codex"),
    UsageQuery(("session",), since=FIRST + HOUR, provider="p", agent="Explore"),
)


@pytest.fixture
def ledger(engine):
    return engine.ledger


def made_up(chance: random.Random, id: str) -> UsageRow:
    started = FIRST + chance.randrange(3 * DAY)
    return UsageRow(
        id,
        chance.choice(("a", "b", "c\\", "")),
        started,
        instance=chance.choice(("one", "two")),
        session=chance.choice(("", "s")),
        model=chance.choice(("small", "big", "Größe")),
        upstream_model=chance.choice(("", "big")),
        provider=chance.choice(("p", "q")),
        caller_group=chance.choice(("", "team")),
        client=chance.choice(("", "codex", "claude-code")),
        agent=chance.choice(("", "Explore")),
        purpose=chance.choice(("", "main")),
        operation=chance.choice(("generate", "search")),
    )


def ended(chance: random.Random, row: UsageRow) -> UsageRow:
    return msgspec.structs.replace(
        row,
        outcome=chance.choice(OUTCOMES),
        finished=row.started + chance.choice((0, 7, 950, 12_345, 400_000, 90_000_000)),
        first_byte=chance.choice((0, 3, 800)),
        input=chance.randrange(1000),
        cache_read=chance.choice((0, 50_000)),
        cache_write=chance.randrange(9),
        cache_write_long=chance.randrange(9),
        tool_prompt=chance.randrange(9),
        output=chance.choice((0, 77)),
        reasoning=chance.randrange(5),
        cost=chance.choice((None, 0, 12, 2**40)),
        source=chance.choice(("provider", "none")),
        losses=chance.choice(((), (), ("top_k",), ("seed", "top_k"))),
    )


async def sum_all_up(ledger, until: int = NOW + DAY) -> int:
    count = 0
    while await ledger.sum_up(until):
        count += 1
        assert count < 500, "it ends"
    return count


def without_durations(total: UsageTotal) -> UsageTotal:
    return msgspec.structs.replace(total, took=Durations(), first_byte=Durations())


def assert_close(found: Durations, exact: Durations) -> None:
    """Each value within 5 %, and none more or less."""
    assert sum(found.counts.values()) == sum(exact.counts.values())
    for percent in (1, 50, 95, 99, 100):
        value, wanted = found.percentile(percent), exact.percentile(percent)
        assert value == wanted or (
            value is not None and wanted is not None and abs(value - wanted) <= wanted / 20
        )


async def assert_equals_the_rows(ledger, rows: list[UsageRow] | None = None) -> None:
    """`rows`: those that there must be; otherwise what the store says there is."""
    fold = MemoryLedger()
    await fold.apply(await ledger.rows(UsageQuery(), limit=100_000) if rows is None else rows)
    for query in QUERIES:
        found, wanted = await ledger.totals(query), await fold.totals(query)
        assert list(map(without_durations, found)) == list(map(without_durations, wanted)), query
        for total, exact in zip(found, wanted, strict=True):
            assert_close(total.took, exact.took)
            assert_close(total.first_byte, exact.first_byte)
        assert await ledger.losses(query) == await fold.losses(query), query
        bare = await ledger.totals(msgspec.structs.replace(query, durations=False))
        assert bare == list(map(without_durations, wanted)), query


@pytest.mark.parametrize("seed", range(2))
def test_sums_equal_the_rows_whatever_happens_to_them(run, engine, ledger, seed):
    """FAULTS rule L: rows come late, twice and out of order, crash and come back, are forgotten and pruned."""
    chance = random.Random(seed)
    rows = [made_up(chance, f"r{n:03}") for n in range(80)]
    ends = [ended(chance, row) for row in rows]

    async def one_step() -> None:
        match chance.randrange(7):
            case 0 | 1:
                await ledger.apply(chance.sample(rows, 20) + chance.sample(ends, 20))
            case 2:
                await sum_all_up(ledger, FIRST + chance.randrange(4 * DAY))
            case 3:
                await ledger.sum_up(NOW)
            case 4:
                await ledger.close_open([chance.choice(("one", "two"))], NOW)
            case 5:
                await engine.sweep(
                    NOW, usage_before=FIRST + chance.randrange(DAY), dead_before=NOW - DAY, kinds={}
                )
            case 6:
                await ledger.forget_session("a", "s")
                await engine.wipe("b")

    async def everything() -> None:
        for _ in range(10):
            await one_step()
        await assert_equals_the_rows(ledger)
        await sum_all_up(ledger)
        await assert_equals_the_rows(ledger)

    run(everything())


def test_what_is_kept_is_used_and_what_changed_is_not(run, ledger):
    """Otherwise the other tests would prove nothing."""
    chance = random.Random(7)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(60)]

    async def is_exact() -> bool:
        (total,) = await ledger.totals(UsageQuery(until=NOW))
        return bool(total.took.is_exact)

    async def work() -> None:
        await ledger.apply(rows)
        assert await is_exact()
        assert await ledger.sum_up(NOW) is not isinstance(ledger, MemoryLedger)
        await sum_all_up(ledger)
        assert await is_exact() is isinstance(ledger, MemoryLedger)
        await assert_equals_the_rows(ledger, rows)
        assert await ledger.sum_up(NOW) is False
        late = msgspec.structs.replace(rows[0], id="late")
        await ledger.apply([late])
        await assert_equals_the_rows(ledger, [*rows, late])
        await ledger.sum_up(NOW)
        await assert_equals_the_rows(ledger, [*rows, late])

    run(work())


def test_hours_that_are_not_over_are_left_to_their_rows(run, ledger):
    row = UsageRow("a", "c", FIRST + HOUR, outcome="ok", finished=FIRST + HOUR + 5)

    async def work() -> None:
        await ledger.apply([row])
        assert await ledger.sum_up(FIRST + HOUR) is False
        await sum_all_up(ledger, FIRST + 2 * HOUR - 1)
        assert (await ledger.totals(UsageQuery()))[0].took.is_exact
        await sum_all_up(ledger, FIRST + 2 * HOUR)
        assert (await ledger.totals(UsageQuery()))[0].took.is_exact is isinstance(ledger, MemoryLedger)

    run(work())


@pytest.mark.sampled(each=2)
def test_rows_of_a_clock_that_was_wrong_are_counted_and_no_decades_are_added_up(run, ledger):
    times = (5, 10 * 365 * DAY, FIRST, NOW, NOW + 15 * 365 * DAY)
    run(ledger.apply([UsageRow(f"r{place}", "a", at, model="small") for place, at in enumerate(times)]))
    for until in (NOW + DAY, times[-1] + DAY):
        run(sum_all_up(ledger, until))
        run(assert_equals_the_rows(ledger))


def test_several_processes_that_add_up_at_once_count_nothing_twice(run, ledger):
    chance = random.Random(3)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(80)]

    async def work() -> None:
        await ledger.apply(rows[:40])
        await asyncio.gather(
            *(sum_all_up(ledger) for _ in range(4)),
            *(ledger.apply(rows[at : at + 5]) for at in range(40, 80, 5)),
        )
        await sum_all_up(ledger)
        await assert_equals_the_rows(ledger, rows)

    run(work())


def test_a_process_that_died_while_it_added_up_leaves_nothing_behind(run, ledger, monkeypatch):
    """Its marks are there, and its sums are not."""
    if isinstance(ledger, MemoryLedger):
        return  # it keeps no sums
    chance = random.Random(5)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(30)]

    class Killed(Exception):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    async def work() -> None:
        await ledger.apply(rows)
        with monkeypatch.context() as patch:
            patch.setattr(f"{type(ledger).__module__}.kept", killed)
            with pytest.raises(Killed):
                await ledger.sum_up(NOW)
        await assert_equals_the_rows(ledger, rows)
        await sum_all_up(ledger)
        await assert_equals_the_rows(ledger, rows)
        assert not (await ledger.totals(UsageQuery(until=NOW)))[0].took.is_exact

    run(work())


def test_a_row_that_comes_between_reading_and_keeping_is_not_lost(run, ledger, monkeypatch):
    if isinstance(ledger, MemoryLedger):
        return
    chance = random.Random(6)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(30)]
    late = msgspec.structs.replace(rows[3], id="late")

    async def work() -> None:
        await ledger.apply(rows)
        keep = ledger._keep

        async def keep_later(*arguments: Any) -> None:
            await ledger.apply([late])
            await keep(*arguments)

        monkeypatch.setattr(ledger, "_keep", keep_later)
        await ledger.sum_up(NOW)
        monkeypatch.undo()
        await assert_equals_the_rows(ledger, [*rows, late])
        await sum_all_up(ledger)
        await assert_equals_the_rows(ledger, [*rows, late])

    run(work())


def test_a_store_that_was_exported_sums_up_its_copy_by_itself(run, engine):
    chance = random.Random(8)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(20)]

    async def work() -> None:
        await engine.ledger.apply(rows)
        await sum_all_up(engine.ledger)
        copy = MemoryEngine()
        await copy.load([record async for record in engine.export()])
        await assert_equals_the_rows(copy.ledger, rows)
        await engine.load([msgspec.structs.replace(rows[0], id="loaded"), rows[1]])
        await assert_equals_the_rows(engine.ledger, [*rows, msgspec.structs.replace(rows[0], id="loaded")])

    run(work())


def test_durations_are_within_five_percent_in_their_buckets():
    for value in (*range(3000), *range(3000, BOUNDS[-1], 99_973)):
        ((found, count),) = of_letters(letter_of(value)).counts.items()
        assert count == 1
        assert abs(found - value) <= value / 20
    assert of_letters(letter_of(-5)).counts == {0: 1}
    assert of_letters(letter_of(10**12)).counts == {BOUNDS[-1]: 1}


def test_durations_are_merged_and_ranked():
    assert Durations().percentile(50) is None
    hundred = Durations(dict.fromkeys(range(1, 101), 1))
    assert [hundred.percentile(each) for each in (50, 95, 99, 100)] == [50, 95, 99, 100]
    both = merged([hundred, Durations({7: 2}, is_exact=False)])
    assert (both.counts[7], both.is_exact) == (3, False)
    assert packed("ĀāĀ") == "ĀĀā"
    assert packed(packed("Āā" * 6) + "Ā5ĂĂ12") == "Ā11āāāāāāĂ13"
    assert of_letters("Ā11āĂ13").counts == {0: 11, 1: 1, 2: 13}


def test_cells_are_taken_out_of_gaps():
    assert _taken([(5, 45)], [0, 10, 20, 40], 10) == ([(10, 30)], [(5, 10), (30, 45)])
    assert _taken([(0, 20), (50, 60)], [0, 10, 30, 50], 10) == ([(0, 20), (50, 60)], [])
    assert _taken([(0, 20)], [], 10) == ([], [(0, 20)])


def test_a_sum_depends_on_all_columns_that_it_is_made_of():
    """A change of one of them must take it away. What it is made of has a name of its own in these tables: a
    change of the columns is another table, so that an older program next to a newer one is right as well."""
    not_summed = {
        "id",
        "instance",
        "dialect",
        "session",
        "upstream_dialect",
        "stream",
        "status",
        "error",
        "attempts",
        "flags",
    }
    assert set(UsageRow.__struct_fields__) - set(SUMMED_FROM) == not_summed
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert SUMS.removeprefix("usage_sums_") == MARKS.removeprefix("usage_summed_")


async def changed_by_hand(engine, statement: str) -> None:
    """As a person does it, or a program that knows of no sums."""
    if isinstance(engine, SqliteEngine):
        await engine._database.write(lambda connection: connection.execute(statement).fetchall())
    else:
        await engine._pool.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE usage SET cost = 5 WHERE id = 'r003'",
        "UPDATE usage SET started = started + 7200000 WHERE id < 'r005'",
        "DELETE FROM usage WHERE id = 'r004'",
        "INSERT INTO usage (id, caller, started, instance, operation, dialect, session, model, provider,"
        " upstream_model, upstream_dialect, stream, outcome, finished, status, error, attempts, first_byte, input,"
        " cache_read, cache_write, cache_write_long, tool_prompt, output, reasoning, source, cost, losses, flags)"
        " SELECT 'copy', caller, started, instance, operation, dialect, session, model, provider, upstream_model,"
        " upstream_dialect, stream, outcome, finished, status, error, attempts, first_byte, input, cache_read,"
        " cache_write, cache_write_long, tool_prompt, output, reasoning, source, cost, losses, flags"
        " FROM usage WHERE id = 'r001'",
    ],
    ids=lambda statement: statement.split(" ")[0] + statement[13:21].strip(),
)
def test_rows_that_others_change_are_added_up_again(run, engine, ledger, statement):
    if isinstance(ledger, MemoryLedger):
        return  # nobody else reaches its rows
    chance = random.Random(9)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(12)]

    async def work() -> None:
        await ledger.apply(rows)
        await sum_all_up(ledger)
        await changed_by_hand(engine, statement)
        assert await ledger.rows(UsageQuery(), limit=99) != sorted(rows, key=lambda row: -row.started)
        await assert_equals_the_rows(ledger)
        await sum_all_up(ledger)
        await assert_equals_the_rows(ledger)

    run(work())


def test_a_store_of_before_there_were_sums_gets_them_while_it_is_used(run, tmp_path):
    chance = random.Random(10)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(30)]
    path = str(tmp_path / "old.db")

    async def work() -> None:
        engine = await SqliteEngine.open(path)
        await engine.ledger.apply(rows[:20])
        for name in ("inserted", "deleted", "updated", "gone"):
            await changed_by_hand(engine, f"DROP TRIGGER {MARKS}_{name}")
        await changed_by_hand(engine, f"DROP TABLE {MARKS}; DROP TABLE {SUMS}")
        await engine.close()

        engine = await SqliteEngine.open(path)
        await assert_equals_the_rows(engine.ledger, rows[:20])
        await engine.ledger.sum_up(NOW)
        await engine.close()

        engine = await SqliteEngine.open(path)
        await engine.ledger.apply(rows[20:])
        await sum_all_up(engine.ledger)
        await assert_equals_the_rows(engine.ledger, rows)
        assert not (await engine.ledger.totals(UsageQuery(until=NOW)))[0].took.is_exact
        await engine.close()

    run(work())


def test_a_row_that_is_not_committed_while_its_hour_is_marked_is_waited_for(run, engine, ledger):
    """It cannot see the mark, and the sums could not see it."""
    if not hasattr(engine, "_pool"):
        return  # others write one after the other
    chance = random.Random(11)
    rows = [ended(chance, made_up(chance, f"r{n:03}")) for n in range(12)]

    async def work() -> None:
        await ledger.apply(rows)
        async with engine._pool._pool.acquire() as connection:
            writing = connection.transaction()
            await writing.start()
            await connection.execute(f"SET LOCAL search_path = {engine._address.quoted_schema}")
            await connection.execute("UPDATE usage SET cost = 7 WHERE id = 'r002'")
            adding_up = asyncio.ensure_future(sum_all_up(ledger))
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while not await connection.fetchval(waiting):
                assert not adding_up.done()
                await asyncio.sleep(0.01)
            await writing.commit()
        await adding_up
        await assert_equals_the_rows(ledger, [*rows[:2], msgspec.structs.replace(rows[2], cost=7), *rows[3:]])

    run(work())
