"""Several processes on one file, and processes that die while they write."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import apsw

from tests.stores.children import CHILDREN
from wireglot.stores.records import Document, Rate, UsageQuery, UsageRow
from wireglot.stores.sqlite import SqliteCounters, SqliteEngine

PROCESSES = 3
CALLERS = 5
TURNS = 30


def _append(path: str, name: str, reported) -> None:
    async def work() -> list[tuple[str, int]]:
        engine = await SqliteEngine.open(path)
        numbers: list[tuple[str, int]] = []

        async def caller(who: str) -> None:
            for turn in range(TURNS):
                id = f"{name}-{who}-{turn}"
                number = await engine.documents.append([Document("t", "k", id, b"x" * 200, parent="p")])
                await engine.ledger.apply(
                    [UsageRow(id, "c", 1, outcome="ok", output=1), UsageRow("same", "c", 1)]
                )
                numbers.append((id, number))

        await asyncio.gather(*(caller(f"{n}") for n in range(CALLERS)))
        await engine.close()
        return numbers

    reported.put(asyncio.run(work()))


def test_processes_that_write_one_file_lose_nothing_and_share_no_number(run, tmp_path):
    path = str(tmp_path / "store.db")
    reported = CHILDREN.SimpleQueue()
    children = [CHILDREN.Process(target=_append, args=(path, f"p{n}", reported)) for n in range(PROCESSES)]
    for child in children:
        child.start()
    acknowledged = {number: id for _ in children for id, number in reported.get()}
    for child in children:
        child.join()
    total = PROCESSES * CALLERS * TURNS
    assert sorted(acknowledged) == list(range(1, total + 1))

    engine = run(SqliteEngine.open(path))
    assert {one.number: one.id for one in run(engine.documents.pieces("t", "k", "p"))} == acknowledged
    assert run(engine.ledger.spent("c", 0)) == (total, 0)
    assert len(run(engine.ledger.rows(UsageQuery(), limit=total * 2))) == total + 1
    run(engine.close())


def _write_until_killed(path: str, turn: int, reported) -> None:
    """Says which writes were acknowledged, a line each, until the process ends."""

    acknowledged = reported.fileno()

    async def work() -> None:
        engine = await SqliteEngine.open(path)

        async def caller(who: int) -> None:
            n = 0
            while True:
                id = f"{turn}-{who}-{n}"
                row = UsageRow(id, "c", 1, instance=f"{turn}")
                await engine.ledger.apply([row])
                os.write(acknowledged, f"intent {id}\n".encode())
                await engine.documents.put([Document("t", "k", id, os.urandom(8000), expires=n % 2)])
                os.write(acknowledged, f"document {id} {n % 2}\n".encode())
                await engine.ledger.apply([UsageRow(id, "c", 1, outcome="ok", finished=2, output=n)])
                os.write(acknowledged, f"done {id}\n".encode())
                n += 1

        async def sweeper() -> None:
            while True:
                await engine.sweep(2, usage_before=0, dead_before=0, kinds={})
                await engine._database.write(lambda c: None)

        await asyncio.gather(*(caller(who) for who in range(6)), sweeper())

    asyncio.run(work())


def test_nothing_that_was_acknowledged_is_lost_to_kill_9(run, tmp_path):
    """FAULTS 95, 96, C41: at 15 random points, checkpoints among them."""
    path = str(tmp_path / "store.db")
    chance = random.Random(9)
    intents: set[str] = set()
    done: set[str] = set()
    stored: set[str] = set()
    for turn in range(15):
        reader, writer = CHILDREN.Pipe(duplex=False)
        child = CHILDREN.Process(target=_write_until_killed, args=(path, turn, writer))
        child.start()
        writer.close()
        lines = _read_and_kill(reader, child, chance.randint(1, 8_000))
        child.join()
        assert child.exitcode == -signal.SIGKILL
        for line in lines:
            match line.split():
                case ["intent", id]:
                    intents.add(id)
                case ["document", id, "0"]:
                    stored.add(id)
                case ["done", id]:
                    done.add(id)
        _assert_sound(path)
    assert len(done) > 50

    engine = run(SqliteEngine.open(path))
    rows = {row.id: row for row in run(engine.ledger.rows(UsageQuery(), limit=10**6))}
    assert rows.keys() >= intents
    assert all(rows[id].outcome == "ok" for id in done)
    assert {one.id for one in run(engine.documents.recent("t", "k", limit=10**6))} >= stored
    open_rows = sum(row.outcome == "" for row in rows.values())
    assert run(engine.ledger.close_open([f"{turn}" for turn in range(15)], 3)) == open_rows
    assert run(engine.ledger.totals(UsageQuery()))[0].open == 0
    run(engine.close())


def _read_and_kill(reader, child, after: int) -> list[str]:
    """What was acknowledged by a process that is killed once it has said so many bytes."""
    said = b""
    while piece := os.read(reader.fileno(), 4096):
        said += piece
        if len(said) >= after and child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
    reader.close()
    # The last line may have been cut.
    return [line.decode() for line in said.split(b"\n")[:-1]]


def _assert_sound(path: str) -> None:
    if Path(path).exists():
        connection = apsw.Connection(path)
        assert connection.pragma("integrity_check") == "ok"
        connection.close()


def _take(path: str, reported) -> None:
    async def work() -> tuple[int, int, bool]:
        counters = await SqliteCounters.open(path)
        answers = await asyncio.gather(*(counters.take([Rate("r", 1, 50, 3600.0)]) for _ in range(40)))
        places = [await counters.enter("n", f"{os.getpid()}-{n}", 7, 3600.0) for n in range(5)]
        locked = await counters.lock("l", f"{os.getpid()}", 3600.0)
        await counters.close()
        return (answers.count(None), sum(places), locked)

    reported.put(asyncio.run(work()))


def test_limits_hold_across_processes(tmp_path):
    """R-Z, T20: of 120 asked by three processes 50 pass."""
    reported = CHILDREN.SimpleQueue()
    children = [CHILDREN.Process(target=_take, args=(str(tmp_path / "c.db"), reported)) for _ in range(3)]
    for child in children:
        child.start()
    answers = [reported.get() for _ in children]
    for child in children:
        child.join()
    assert [sum(column) for column in zip(*answers, strict=True)] == [50, 7, 1]
