"""The account of requests: FAULTS rule L, rows 93, 95, 101, 102, 104; R-DE-12."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.state.ledger_kit import (
    ORDERS,
    Ledger,
    Notes,
    answered,
    answering,
    begin,
    job_of,
    ledger_settings,
    target,
    usage_ledger,
)
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.settings import Settings, SyncOrder
from wireglot.gateway.state.ledger.drain import DrainPace, collapsed
from wireglot.gateway.state.ledger.usage_ledger import completed
from wireglot.stores import StoreDown
from wireglot.stores.memory.engine import MemoryLedger
from wireglot.stores.records import UsageRow
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage


@pytest.fixture(autouse=True, params=ORDERS, ids=str)
def order(request: pytest.FixtureRequest) -> None:
    """The books are the same whenever the disk has them."""
    _ORDER[:] = [request.param]


_ORDER: list[SyncOrder] = []


def given(folder: Path, **store: Any) -> Settings:
    return ledger_settings(folder, **{"sync": _ORDER[0], **store})


def test_a_request_is_one_row_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    """R-DE-12, R-DE-13"""

    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        job = job_of(1, settings, session="s1", losses=[])
        begin(kept, job, target(settings))
        await answering(job)
        answered(job, usage=Usage(input=1000, cache_read=100, output=20, reasoning=5))
        job.record.losses = [Loss("$.a", "user", "dropped"), Loss("$.b", "user", "dropped")]
        job.record.first_byte = job.record.started + 0.007
        job.ending.complete()
        job.record.outcome = "error"  # whatever comes later changes nothing
        job.ending.complete()
        kept.finish(job.record)
        await kept.flush(DEADLINE_SECONDS)
        row = ledger.rows["req_1"]
        assert row == UsageRow(
            id="req_1",
            caller="alice",
            started=row.started,
            instance="one",
            operation="generate",
            dialect="anthropic",
            session="s1",
            model="fast",
            provider="mine",
            upstream_model="fast-1",
            upstream_dialect="openai-chat",
            outcome="ok",
            finished=row.finished,
            status=200,
            attempts=1,
            first_byte=7,
            input=1000,
            cache_read=100,
            output=20,
            reasoning=5,
            source="provider",
            cost=1000 + 100 + 40 + 10,
            losses=("user",),
        )
        assert row.finished >= row.started > 1_700_000_000_000
        await kept.close()

    asyncio.run(work())


@pytest.mark.parametrize("uptime", [0.0, 0.3, 1_234.567, 86_400.1, 3_000_000.9, 400_000_000.7])
def test_a_duration_does_not_depend_on_how_long_the_machine_has_been_up(uptime: float) -> None:
    settings = ledger_settings(None)
    job = job_of(1, settings, started=uptime)
    begun = UsageRow("req_1", "alice", 1_800_000_000_000, "one", "generate", "anthropic")
    for milliseconds in range(1, 300):
        passed = uptime + milliseconds / 1000
        row = completed(begun, job.record, price=None, flags=(), first_byte=passed, now=passed)
        assert (row.first_byte, row.finished - row.started) == (milliseconds, milliseconds)


def test_anyone_who_asks_does_not_wait_for_the_next_try_of_a_store_that_was_down(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger, notes = given(tmp_path), Ledger(), Notes()
        kept = usage_ledger(
            ledger, settings, notes=notes, pace=DrainPace(gather=0.0, retry=3600.0, close=0.05)
        )
        await kept.start()
        ledger.down = True
        begin(kept, job_of(1, settings), target(settings))
        await until(lambda: "usage spooled" in notes.events())
        ledger.down = False
        assert await kept.flush(DEADLINE_SECONDS)
        assert list(ledger.rows) == ["req_1"]
        await kept.close()

    asyncio.run(work())


def test_the_intent_is_in_the_store_while_the_request_runs(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        job = job_of(1, settings)
        begin(kept, job, target(settings))
        await kept.flush(DEADLINE_SECONDS)
        row = ledger.rows["req_1"]
        assert (row.outcome, row.provider, row.upstream_model) == ("", "mine", "fast-1")
        kept.finish(job.record)
        await kept.flush(DEADLINE_SECONDS)
        assert ledger.rows["req_1"].outcome == "ok"
        await kept.close()

    asyncio.run(work())


def test_the_provider_that_answered_in_the_end_is_billed(tmp_path: Path) -> None:
    """A fallback: the intent named another, whose price is not this one's."""

    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        for number, (name, model) in enumerate([("mine", "fast-2"), ("other", "big"), ("demo", "demo")]):
            job = job_of(number, settings)
            begin(kept, job, target(settings, "other", "big"))
            answered(job, name, model, Usage(input=10, output=10))
            job.record.attempts = 2
            kept.finish(job.record)
        await kept.flush(DEADLINE_SECONDS)
        reported = [
            (row.provider, row.upstream_model, row.attempts, row.cost)
            for row in sorted(ledger.rows.values(), key=lambda row: row.id)
        ]
        # No known price is not a price of nothing; the demo's is.
        assert reported == [("mine", "fast-2", 2, 30), ("other", "big", 2, None), ("demo", "demo", 2, 0)]
        await kept.close()

    asyncio.run(work())


@pytest.mark.parametrize("outcome", ["error", "client_abort", "gateway_abort"])
def test_requests_that_end_badly_are_completed_with_what_is_known(tmp_path: Path, outcome: Any) -> None:
    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        job = job_of(1, settings)
        begin(kept, job, target(settings))
        answered(job, usage=Usage(input=7))
        record = job.record
        record.outcome, record.status, record.usage_source = outcome, 499, "partial"
        record.error_kind = "server"
        kept.finish(record)
        await kept.flush(DEADLINE_SECONDS)
        row = ledger.rows["req_1"]
        assert (row.outcome, row.status, row.input, row.source) == (outcome, 499, 7, "partial")
        assert (row.error, row.cost) == ("server", 7)
        await kept.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("outcome", "status", "reported"),
    [("ok", 0, 200), ("client_abort", 0, 200), ("gateway_abort", 0, 0), ("gateway_abort", 503, 503)],
)
def test_a_status_is_reported_only_where_one_was_or_will_be_sent(
    outcome: Any, status: int, reported: int
) -> None:
    """A stream is completed before its status is noted; what the gateway gave up itself has none."""
    job = job_of(1, ledger_settings(None), outcome=outcome, status=status, started=1.0)
    begun = UsageRow("req_1", "alice", 1_800_000_000_000, "one", "generate", "anthropic")
    row = completed(begun, job.record, price=None, flags=(), first_byte=None, now=2.0)
    assert (row.status, row.first_byte) == (reported, 0)


def test_a_request_that_never_came_to_an_upstream_has_no_row(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        kept.finish(job_of(1, settings).record)
        await kept.close()
        assert ledger.rows == {}

    asyncio.run(work())


def test_while_the_store_is_down_nothing_waits_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """FAULTS 93, 101: also where the store did what it was asked and could not say so."""

    async def work() -> None:
        settings, ledger, notes = given(tmp_path), Ledger(), Notes()
        kept = usage_ledger(ledger, settings, notes=notes)
        await kept.start()
        ledger.down = True
        for number in range(1200):
            job = job_of(number, settings)
            begin(kept, job, target(settings))
            if number % 100 == 0:
                await answering(job)
            answered(job, usage=Usage(output=1))
            kept.finish(job.record)
        assert not await kept.flush(0.01)
        assert ledger.rows == {}
        assert kept.trouble == "no route to the store"
        assert not kept.full
        ledger.unsure, ledger.down = True, False
        assert await kept.flush(DEADLINE_SECONDS)
        assert len(ledger.rows) == 1200
        assert {row.outcome for row in ledger.rows.values()} == {"ok"}
        assert sum(row.output for row in ledger.rows.values()) == 1200
        assert all(len(batch) <= 500 for batch in ledger.applied)
        assert kept.trouble == ""
        assert notes.events() == ["usage spooled", "usage caught up"]
        await kept.close()

    asyncio.run(work())


def test_a_process_that_ends_while_the_store_is_down_leaves_its_rows_to_the_next(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        ledger.down = True
        job, unfinished = job_of(1, settings), job_of(2, settings)
        for each in (job, unfinished):
            begin(kept, each, target(settings))
        kept.finish(job.record)
        await kept.close()
        ledger.down = False
        after = usage_ledger(ledger, settings, "two")
        await after.start()
        assert {row.id: row.outcome for row in ledger.rows.values()} == {
            "req_1": "ok",
            "req_2": "gateway_abort",
        }
        assert ledger.closed == ["one"]
        await after.close()

    asyncio.run(work())


def test_what_a_dead_process_had_begun_becomes_a_crash_and_nothing_else_does(tmp_path: Path) -> None:
    """FAULTS 95: intents without end become `crash` at start; two workers that start at once share the work."""

    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        dead, alive = usage_ledger(ledger, settings, "dead"), usage_ledger(ledger, settings, "alive")
        for kept in (dead, alive):
            await kept.start()
        jobs = [job_of(number, settings) for number in range(4)]
        for job, kept in zip(jobs, (dead, dead, dead, alive), strict=True):
            begin(kept, job, target(settings))
        await dead.flush(DEADLINE_SECONDS)  # two are known to the store, one only to the journal
        late = job_of(9, settings)
        begin(dead, late, target(settings))
        answered(jobs[0], usage=Usage(output=3))
        dead.finish(jobs[0].record)
        await _die(dead)
        ledger.applied.clear()
        heirs = [usage_ledger(ledger, settings, "heir-1"), usage_ledger(ledger, settings, "heir-2")]
        await asyncio.gather(*(heir.start() for heir in heirs))
        await alive.flush(DEADLINE_SECONDS)
        outcomes = {row.id: row.outcome for row in ledger.rows.values()}
        assert outcomes == {"req_0": "ok", "req_1": "crash", "req_2": "crash", "req_3": "", "req_9": "crash"}
        assert ledger.rows["req_0"].output == 3
        assert ledger.closed == ["dead"]
        alive.finish(jobs[3].record)
        for kept in (alive, *heirs):
            await kept.close()
        assert ledger.rows["req_3"].outcome == "ok"
        assert [path.name for path in (tmp_path / "journal").iterdir()] == ["lock"]

    asyncio.run(work())


def _is_full(kept: Any) -> bool:
    return bool(kept.full)


async def _die(kept: Any) -> None:
    """As after kill -9: its tasks stop, its lock is free, its files stay."""
    import os

    for task in kept._drain._tasks:
        task.cancel()
    await asyncio.gather(*kept._drain._tasks, return_exceptions=True)
    os.close(kept.journal._shelf._lock)
    kept.journal.syncer._stopping = True
    kept.journal.syncer.ask()
    kept.journal.syncer._thread.join()


def test_a_full_journal_lets_requests_go_on_and_says_so_loudly(tmp_path: Path) -> None:
    """FAULTS 93: /readyz looks at `full`; what was begun can be completed all the same."""

    async def work() -> None:
        settings, ledger, notes = given(tmp_path, journal=64 * 1024), Ledger(), Notes()
        kept = usage_ledger(ledger, settings, notes=notes)
        metrics = Metrics()
        kept.publish(metrics)
        await kept.start()
        await until(lambda: kept.journal.room >= 40 * 1024)  # its files are being made
        ledger.down = True
        jobs = [job_of(number, settings) for number in range(600)]
        for job in jobs:
            begin(kept, job, target(settings))
        begun = [job for job in jobs if job.ending.account is not None]
        assert _is_full(kept)
        assert 10 < len(begun) < 200
        assert kept.dropped == 600 - len(begun)
        assert notes.events()[0] == "usage not recorded"
        assert notes.events().count("usage not recorded") == 1
        assert f"wireglot_usage_dropped_total {kept.dropped}" in metrics.render().decode()
        for job in jobs:
            kept.finish(job.record)
        assert kept.dropped == 600 - len(begun)
        ledger.down = False
        assert await kept.flush(DEADLINE_SECONDS)
        assert not _is_full(kept)
        assert {row.outcome for row in ledger.rows.values()} == {"ok"}
        assert len(ledger.rows) == len(begun)
        begin(kept, job_of(1000, settings), target(settings))
        assert notes.events()[-1] == "usage recorded again"
        await kept.close()

    asyncio.run(work())


def test_where_the_ledger_is_required_a_request_without_a_row_is_refused(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = given(tmp_path, journal=64 * 1024, ledger_required=True), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        ledger.down = True
        for number in range(600):
            if kept.full:
                break
            begin(kept, job_of(number, settings), target(settings))
        job = job_of(1000, settings)
        with pytest.raises(RequestError) as refused:
            begin(kept, job, target(settings))
        assert (refused.value.error.status, refused.value.error.code) == (503, "storage_unavailable")
        assert job.ending.account is None
        await kept.close()

    asyncio.run(work())


def test_one_row_that_no_store_can_take_does_not_hold_up_the_others(tmp_path: Path) -> None:
    class Picky(Ledger):
        async def apply(self, rows: Any) -> None:
            if any(row.id == "req_3" for row in rows):
                raise OverflowError("too large")
            await super().apply(rows)

    async def work() -> None:
        settings, ledger, notes = given(tmp_path), Picky(), Notes()
        kept = usage_ledger(ledger, settings, notes=notes)
        metrics = Metrics()
        kept.publish(metrics)
        await kept.start()
        for number in range(6):
            job = job_of(number, settings)
            begin(kept, job, target(settings))
            kept.finish(job.record)
        await kept.flush(DEADLINE_SECONDS)
        assert sorted(ledger.rows) == ["req_0", "req_1", "req_2", "req_4", "req_5"]
        assert notes.events() == ["usage refused"]
        assert "wireglot_usage_dropped_total 1\n" in metrics.render().decode()
        await kept.close()

    asyncio.run(work())


def test_an_error_that_hits_every_row_is_waited_out_and_no_row_is_dropped(tmp_path: Path) -> None:
    """FAULTS 93: the store's fault, or ours, of a kind nobody foresaw; also where there is one row only."""

    class Broken(Ledger):
        broken = True
        failed = 0

        async def apply(self, rows: Any) -> None:
            if self.broken:
                self.failed += 1
                raise LookupError("no such table: usage")
            await super().apply(rows)

    async def work() -> None:
        for count in (1, 6):
            settings, ledger, notes = given(tmp_path), Broken(), Notes()
            kept = usage_ledger(ledger, settings, f"with-{count}", notes=notes)
            await kept.start()
            for number in range(count):
                job = job_of(number, settings)
                begin(kept, job, target(settings))
                kept.finish(job.record)
            await until(partial(lambda ledger: ledger.failed >= 30, ledger))
            assert kept.trouble == "no usage can be written (LookupError)"
            ledger.broken = False
            assert await kept.flush(DEADLINE_SECONDS)
            assert len(ledger.rows) == count
            assert notes.events() == ["usage spooled", "usage caught up"]
            await kept.close()

    asyncio.run(work())


def test_a_lone_row_that_no_store_can_take_is_dropped_once_others_pass(tmp_path: Path) -> None:
    class Picky(Ledger):
        failed = 0

        async def apply(self, rows: Any) -> None:
            if any(row.id == "req_0" for row in rows):
                self.failed += 1
                raise OverflowError("too large")
            await super().apply(rows)

    async def work() -> None:
        settings, ledger, notes = given(tmp_path), Picky(), Notes()
        kept = usage_ledger(ledger, settings, notes=notes)
        await kept.start()
        for number in range(3):
            job = job_of(number, settings)
            begin(kept, job, target(settings))
            kept.finish(job.record)
            await until(lambda: ledger.failed >= 3)  # it stands there by itself
        assert await kept.flush(DEADLINE_SECONDS)
        assert sorted(ledger.rows) == ["req_1", "req_2"]
        assert notes.events() == ["usage spooled", "usage refused", "usage caught up"]
        await kept.close()

    asyncio.run(work())


async def _leave_journals(ledger: Ledger, settings: Any) -> None:
    """Of three processes that end while the store is down."""
    dead = [usage_ledger(ledger, settings, f"dead-{number}") for number in range(3)]
    for number, each in enumerate(dead):
        await each.start()
        begin(each, job_of(number, settings), target(settings))
    ledger.down = True
    for each in dead:
        await each.close()


def test_a_journal_that_cannot_be_taken_over_keeps_no_other_from_it_and_is_tried_again(
    tmp_path: Path,
) -> None:
    """FAULTS 95"""

    class Blinking(Ledger):
        blinks = True

        async def close_open(self, instances: Any, now: int) -> int:
            if self.blinks and instances == ["dead-1"]:
                raise StoreDown("a moment")
            return await super().close_open(instances, now)

    async def work() -> None:
        settings, ledger, notes = given(tmp_path), Blinking(), Notes()
        await _leave_journals(ledger, settings)
        ledger.down = False
        kept = usage_ledger(ledger, settings, notes=notes)
        await kept.start()
        assert ledger.closed == ["dead-0", "dead-2"]
        assert notes.events() == ["usage taken over", "usage waits", "usage taken over"]
        ledger.blinks = False
        await kept._drain.adopt()
        assert ledger.closed == ["dead-0", "dead-2", "dead-1"]
        await kept.close()
        assert [path.name for path in (tmp_path / "journal").iterdir()] == ["lock"]

    asyncio.run(work())


def test_who_stops_while_journals_are_taken_over_leaves_them_to_others(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        await _leave_journals(ledger, settings)
        stuck = usage_ledger(ledger, settings, "stuck")
        starting = asyncio.create_task(stuck.start())
        await until(lambda: stuck.trouble)  # it has them, and waits for the store
        await asyncio.gather(stuck.close(), starting)
        ledger.down = False
        heir = usage_ledger(ledger, settings, "heir")
        await heir.start()
        assert sorted(ledger.closed) == ["dead-0", "dead-1", "dead-2"]
        await heir.close()

    asyncio.run(work())


def test_odd_letters_and_endless_names_of_clients_are_no_reason_to_lose_a_row(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = given(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        job = job_of(1, settings, session="\ud800" + "x" * 100_000)
        begin(kept, job, target(settings))
        answered(job, usage=Usage(input=10**30, output=2))
        kept.finish(job.record)
        await kept.flush(DEADLINE_SECONDS)
        row = ledger.rows["req_1"]
        assert row.session == "?" + "x" * 255
        assert (row.input, row.output) == (10**12, 2)
        await kept.close()

    asyncio.run(work())


def test_any_order_and_any_number_of_times_gives_the_same_books() -> None:
    """FAULTS 102: batches cut anywhere, repeated, shuffled; the first completion holds."""
    chance = random.Random(7)
    intents = [UsageRow(f"r{n}", "alice", n, "one") for n in range(50)]
    ends = [
        msgspec.structs.replace(row, outcome="ok", output=n) for n, row in enumerate(intents) if n % 5
    ]  # every fifth has none

    async def applied(batches: list[list[UsageRow]]) -> dict[str, UsageRow]:
        ledger = MemoryLedger()
        for batch in batches:
            await ledger.apply(collapsed(batch))
        return ledger.usage

    expected = asyncio.run(applied([intents, ends]))
    for _ in range(50):
        rows = [*intents, *ends, *chance.choices([*intents, *ends], k=40)]
        chance.shuffle(rows)
        cuts = sorted(chance.sample(range(len(rows)), 8))
        batches = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        assert asyncio.run(applied(batches)) == expected
