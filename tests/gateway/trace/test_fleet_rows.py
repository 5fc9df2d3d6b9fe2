"""Rows on their way to a fleet's store and back: bounded, counted, reported again, and never a caller's own trouble."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.trace.fleet_traces import (
    KEPT_SECONDS,
    ROWS,
    FleetMember,
    FleetRows,
    RowSender,
    pack_rows,
    packed,
)
from wireglot.gateway.trace.rows import ExchangeRows
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores import StoreDown
from wireglot.stores.document_log import DocumentLog
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.seal import Sealer
from wireglot_core.traces.trace import Row

SEALER = Sealer(b"the secret of the fleet")


class Away:
    """Documents of a store that comes and goes."""

    def __init__(self) -> None:
        self.is_down = False
        self.documents = MemoryEngine().documents

    def __call__(self) -> Any:
        if self.is_down:
            raise StoreDown("it is being moved")
        return self.documents


def _unreported(level: str, event: str, **fields: Any) -> None:
    raise AssertionError(f"{event}: {fields}")


class Process:
    """One of a fleet, as far as rows go."""

    def __init__(self, store: Away, name: str, *, sealer: Sealer = SEALER, most: int = 2000) -> None:
        self.store = store
        log = DocumentLog(store)
        self.own = ExchangeRows(name)
        member = FleetMember(log, sealer, _unreported, machine=name, worker=name)
        self.sender = RowSender(member, self.own, lambda row: row, most)
        self.now = time.time()
        self.seen = FleetRows(member, wall=lambda: self.now, fresh_seconds=0, pause_seconds=0)

    def began(self, id: str, **more: Any) -> ExchangeRecord:
        record = ExchangeRecord(id, time.monotonic(), dialect="anthropic", path="/v1/messages", **more)
        record.caller = "ada"
        self.own.begin(record)
        return record

    def ended(self, record: ExchangeRecord) -> None:
        record.finished = time.monotonic()
        self.own.finish(record)

    async def tell(self) -> None:
        await self.sender.turn()

    async def ids(self) -> list[str]:
        return [row.id for row in await self.rows()]

    async def rows(self) -> list[Row]:
        """The oldest first."""
        return (await self.seen.listed(Wanted()))[::-1]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_row_is_reported_while_it_runs_and_again_when_it_is_over() -> None:
    async def trial() -> None:
        store = Away()
        one, two = Process(store, "one"), Process(store, "two")
        record = one.began("req_1")
        await one.tell()
        assert await two.ids() == ["req_1"]
        assert (await two.rows())[0].state == "running"
        one.ended(record)
        await one.tell()
        assert await two.ids() == ["req_1"]
        assert ((await two.rows())[0].state, (await two.rows())[0].worker) == ("done", "one")

    run(trial())


def test_a_row_that_is_reported_after_its_caller_was_wiped_is_not_shown() -> None:
    async def trial() -> None:
        store = Away()
        one, two = Process(store, "one"), Process(store, "two")
        one.began("req_1")
        await one.tell()
        assert await two.ids() == ["req_1"]
        two.seen.forget("ada", time.time())
        record = one.began("req_2")
        record.started += 1.0
        one.ended(record)
        one.sender._seen.clear()
        await one.tell()
        assert await two.ids() == ["req_2"], "the second began after it"

    run(trial())


def test_what_ran_on_a_machine_that_says_nothing_more_has_failed() -> None:
    async def trial() -> None:
        store = Away()
        one, two = Process(store, "one"), Process(store, "two")
        one.began("req_1")
        await one.tell()
        await two.ids()
        two.now += 60
        (row,) = await two.rows()
        assert row.state == "failed"
        assert "one" in row.error
        found = two.seen.find("req_1")
        assert found is not None
        assert found.state == "failed"

    run(trial())


def test_while_the_store_is_away_the_newest_wait_and_what_is_left_out_is_counted() -> None:
    async def trial() -> None:
        store = Away()
        one, two = Process(store, "one", most=10), Process(store, "two")
        store.is_down = True
        for number in range(25):
            one.ended(one.began(f"req_{number}"))
        with suppress(StoreDown):
            await one.tell()
        assert one.sender.dropped == 15
        assert await two.ids() == []
        assert "it is being moved" in two.seen.trouble
        store.is_down = False
        await one.tell()
        assert await two.ids() == [f"req_{number}" for number in range(15, 25)]
        assert not two.seen.trouble
        assert two.seen.dropped == 15, "the others know that there were more"

    run(trial())


def test_words_of_an_error_are_sealed_in_the_store_and_a_row_comes_without_them_elsewhere() -> None:
    async def trial() -> None:
        store = Away()
        row = Row(id="req_1", at=time.time(), state="failed", worker="one", error="you said: my diary")
        body = packed(pack_rows("one", "one", row.at, [row], SEALER))
        await DocumentLog(store).tell(ROWS, body, seconds=KEPT_SECONDS, most=100)
        same, other = Process(store, "two"), Process(store, "three", sealer=Sealer(b"another secret"))
        await same.ids()
        assert (await same.rows())[0].error == "you said: my diary"
        await other.ids()
        assert (await other.rows())[0].state == "failed"
        assert (await other.rows())[0].error == ""

    run(trial())


def test_anyone_who_begins_to_look_late_sees_the_newest_and_an_entry_of_another_version_is_left_out() -> None:
    async def trial() -> None:
        store = Away()
        one = Process(store, "one")
        await DocumentLog(store).tell(ROWS, b"\x07what comes later", seconds=KEPT_SECONDS, most=100)
        for number in range(300):
            one.ended(one.began(f"req_{number}"))
        await one.tell()
        assert len(await Process(store, "late").ids()) == 300

    run(trial())
