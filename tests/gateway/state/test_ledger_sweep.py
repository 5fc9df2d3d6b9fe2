"""The broom: what is past its time goes, and one process of many does it."""

from __future__ import annotations

import asyncio
import time

from tests.gateway.state.ledger_kit import Notes, ledger_settings
from wireglot.gateway.state.ledger.sweeper import Sweeper
from wireglot.stores.memory import MemoryCounters, MemoryEngine
from wireglot.stores.records import UsageQuery, UsageRow

DAY = 86_400_000


def test_old_usage_goes_and_open_rows_of_the_dead_are_closed_by_one_process_of_many() -> None:
    """FAULTS 95: a machine that never comes back leaves its open rows to the others."""

    async def work() -> None:
        now = int(time.time() * 1000)
        clock = [now - DAY]
        engine, counters, notes = MemoryEngine(clock=lambda: clock[0]), MemoryCounters(), Notes()
        await engine.ledger.apply(
            [
                UsageRow("old", "alice", now - 401 * DAY, outcome="ok"),
                UsageRow("dead", "alice", now - 2 * DAY, "gone"),
                UsageRow("alive", "alice", now - 2 * DAY, "here"),
            ]
        )
        await engine.ledger.beat("gone")
        clock[0] = now
        await engine.ledger.beat("here")
        sweepers = [Sweeper(engine, counters, name, notes) for name in ("here", "there")]
        for sweeper in sweepers:
            await sweeper.sweep(ledger_settings(None))
        rows = await engine.ledger.rows(UsageQuery(), limit=10)
        assert {row.id: row.outcome for row in rows} == {"dead": "crash", "alive": ""}
        assert notes == [("info", "swept", {"removed": 1, "crashed": 1})]

    asyncio.run(work())
