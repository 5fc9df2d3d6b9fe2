"""Several processes on one PostgreSQL behave as one (FAULTS 101, 102)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

from tests.stores.servers import needs_postgres, postgres_url
from tests.waiting import DEADLINE_SECONDS
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.records import UsageQuery, UsageRow

pytestmark = needs_postgres

WRITER = """
import asyncio, json, sys
from wireglot.stores.postgres import PostgresEngine
from wireglot.stores.records import Document, UsageRow

async def main(url, who):
    engine = await PostgresEngine.open(url, command_seconds=60.0)  # on a busy machine a lock takes its time
    numbers, first = [], []

    async def appends(task):
        for turn in range(20):
            pieces = [Document("a", "k", f"{who}-{task}-{turn}-{at}", b"x", parent="p") for at in range(2)]
            numbers.append(await engine.documents.append(pieces))

    async def competes():
        for turn in range(40):
            if await engine.documents.put([Document("a", "new", str(turn), who.encode())], new=True):
                first.append(turn)
            await engine.ledger.apply([UsageRow(f"u{turn}", "a", 1, outcome="ok", finished=2, input=1, model=who)])

    await asyncio.gather(*(appends(task) for task in range(4)), competes())
    print(json.dumps({"numbers": numbers, "first": first}))
    await engine.close()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def test_pieces_get_each_number_once_and_a_new_document_has_one_writer() -> None:
    """FAULTS 101: two processes append to one parent; FAULTS 102: both finish the same request."""
    url = postgres_url()
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, url, who], stdout=subprocess.PIPE, text=True)
        for who in ("one", "two")
    ]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    numbers = sorted(number for answer in answers for number in answer["numbers"])
    assert numbers == [*range(1, 2 * 2 * 4 * 20, 2)]
    assert sorted(turn for answer in answers for turn in answer["first"]) == [*range(40)]

    async def test() -> None:
        engine = await PostgresEngine.open(url)
        pieces = await engine.documents.pieces("a", "k", "p")
        assert [piece.number for piece in pieces] == [*range(1, 2 * 2 * 4 * 20 + 1)]
        assert (await engine.ledger.totals(UsageQuery()))[0].tokens["input"] == 40
        await engine.close()

    asyncio.run(test())


def test_what_a_killed_process_was_reported_is_written_is_there_and_its_open_rows_become_crashes() -> None:
    """FAULTS 95, rule L: kill -9 of one of two writers; the other one closes its rows."""
    url = postgres_url()
    program = """
import asyncio, itertools, sys
from wireglot.stores import open_engine
from wireglot.stores.records import UsageRow

async def main():
    engine = await open_engine(sys.argv[1])
    await engine.ledger.beat("dead")
    for number in itertools.count():
        row = UsageRow(f"u{number}", "a", 1000, instance="dead")
        await engine.ledger.apply([row])
        print(number, flush=True)

asyncio.run(main())
"""
    process = subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    reported = [process.stdout.readline().strip() for _ in range(50)]
    os.kill(process.pid, signal.SIGKILL)
    reported += process.stdout.read().split()
    assert process.wait(DEADLINE_SECONDS) == -signal.SIGKILL

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
