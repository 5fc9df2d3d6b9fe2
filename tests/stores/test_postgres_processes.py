"""Several processes on one PostgreSQL behave as one (FAULTS 101, 102)."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from typing import Any

from tests.stores.children import CHILDREN
from tests.stores.servers import needs_postgres, postgres_url
from tests.waiting import DEADLINE_SECONDS
from wireglot.stores import open_engine
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.records import Document, UsageQuery, UsageRow

pytestmark = needs_postgres


def _write(url: str, who: str, reported: Any) -> None:
    async def work() -> tuple[list[int], list[int]]:
        engine = await PostgresEngine.open(
            url, command_seconds=60.0
        )  # on a busy machine a lock takes its time
        numbers, first = [], []

        async def appends(task: int) -> None:
            for turn in range(20):
                pieces = [
                    Document("a", "k", f"{who}-{task}-{turn}-{at}", b"x", parent="p") for at in range(2)
                ]
                numbers.append(await engine.documents.append(pieces))

        async def competes() -> None:
            for turn in range(40):
                if await engine.documents.put([Document("a", "new", str(turn), who.encode())], new=True):
                    first.append(turn)
                row = UsageRow(f"u{turn}", "a", 1, outcome="ok", finished=2, input=1, model=who)
                await engine.ledger.apply([row])

        await asyncio.gather(*(appends(task) for task in range(4)), competes())
        await engine.close()
        return numbers, first

    reported.put(asyncio.run(work()))


def test_pieces_get_each_number_once_and_a_new_document_has_one_writer() -> None:
    """FAULTS 101: two processes append to one parent; FAULTS 102: both finish the same request."""
    url = postgres_url()
    reported = CHILDREN.SimpleQueue()
    children = [CHILDREN.Process(target=_write, args=(url, who, reported)) for who in ("one", "two")]
    for child in children:
        child.start()
    answers = [reported.get() for _ in children]
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0, 0]
    numbers = sorted(number for given, _ in answers for number in given)
    assert numbers == [*range(1, 2 * 2 * 4 * 20, 2)]
    assert sorted(turn for _, first in answers for turn in first) == [*range(40)]

    async def test() -> None:
        engine = await PostgresEngine.open(url)
        pieces = await engine.documents.pieces("a", "k", "p")
        assert [piece.number for piece in pieces] == [*range(1, 2 * 2 * 4 * 20 + 1)]
        assert (await engine.ledger.totals(UsageQuery()))[0].tokens["input"] == 40
        await engine.close()

    asyncio.run(test())


def _write_until_killed(url: str, reported: Any) -> None:
    async def work() -> None:
        engine = await open_engine(url)
        await engine.ledger.beat("dead")
        for number in itertools.count():
            await engine.ledger.apply([UsageRow(f"u{number}", "a", 1000, instance="dead")])
            os.write(reported.fileno(), f"{number}\n".encode())

    asyncio.run(work())


def test_what_a_killed_process_was_reported_is_written_is_there_and_its_open_rows_become_crashes() -> None:
    """FAULTS 95, rule L: kill -9 of one of two writers; the other one closes its rows."""
    url = postgres_url()
    reader, writer = CHILDREN.Pipe(duplex=False)
    child = CHILDREN.Process(target=_write_until_killed, args=(url, writer))
    child.start()
    writer.close()
    said = b""
    while said.count(b"\n") < 50 and (piece := os.read(reader.fileno(), 4096)):
        said += piece
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    while piece := os.read(reader.fileno(), 4096):
        said += piece
    reader.close()
    child.join(DEADLINE_SECONDS)
    assert child.exitcode == -signal.SIGKILL
    reported = said.decode().split()
    assert len(reported) >= 50

    async def test() -> None:
        engine = await PostgresEngine.open(url)
        await engine._pool.execute("UPDATE instances SET heard = heard - 3600000")  # an hour ago
        await engine.ledger.beat("alive")
        await engine.ledger.apply([UsageRow("mine", "a", 1000, instance="alive")])
        rows = await engine.ledger.rows(UsageQuery(), limit=10**6)
        assert {f"u{number}" for number in reported} <= {row.id for row in rows}
        swept = await engine.sweep(1_800_000, usage_before=0, dead_before=1, kinds={})
        assert swept.crashed == len(rows) - 1
        after = {row.id: row.outcome for row in await engine.ledger.rows(UsageQuery(), limit=10**6)}
        assert after.pop("mine") == ""
        assert set(after.values()) == {"crash"}
        await engine.close()

    asyncio.run(test())
