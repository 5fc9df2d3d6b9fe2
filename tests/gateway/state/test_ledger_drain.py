"""The ledger step by step: what an account writes and promises, and how its rows come into the store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.state.ledger_kit import (
    HURRIED,
    ORDERS,
    Ledger,
    Notes,
    answering,
    begin,
    job_of,
    ledger_settings,
    target,
    usage_ledger,
)
from tests.gateway.state.test_ledger_rows import Store, drain, rows, run
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.state.ledger import drain as drain_module
from wireglot.gateway.state.ledger.drain import PACE, DrainPace
from wireglot.gateway.state.ledger.sweeper import Sweeper
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.stores.journal.journal import JournalFull
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.records import UsageRow

SETTINGS = ledger_settings(None)


async def turns(count: int = 5) -> None:
    """Of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


# --- an account


class Book:
    """Stands for the journal of a ledger, and can be full."""

    def __init__(self, kept: UsageLedger) -> None:
        self.written: list[tuple[bool, str, int]] = []
        self.later = 0
        self.full = False
        kept.journal.append = self._append  # type: ignore[method-assign]  # a double in its place
        kept.journal.syncer.ask_later = self._sync_later  # type: ignore[method-assign]  # a double in its place

    def _append(self, row: UsageRow, leave: int = 0, *, gather: bool = False) -> int:
        if self.full:
            raise JournalFull("the journal is full")
        self.written.append((gather, row.id, leave))
        return len(self.written)

    def _sync_later(self) -> None:
        self.later += 1


@pytest.mark.parametrize(("order", "gather"), [("during", False), ("before", True), ("off", False)])
def test_each_open_account_is_promised_room_for_its_completion_which_needs_no_more(
    tmp_path: Path, order: str, gather: bool
) -> None:
    """And is in the kernel's hands at once, unless the disk is waited for before anybody is asked."""

    async def work() -> None:
        kept = usage_ledger(Ledger(), ledger_settings(tmp_path, sync=order))
        kept.journal.syncer.ask_sync = lambda expected=0: None  # type: ignore[method-assign]  # a double in its place
        kept.journal.syncer._loop = asyncio.get_running_loop()
        book = Book(kept)
        jobs = [job_of(number, SETTINGS) for number in range(3)]
        for job in jobs:
            assert not kept._drain.due.is_set()
            assert kept.begin(job, target(SETTINGS)) is not None
            assert kept._drain.due.is_set(), "there is something for the store"
            kept._drain.due.clear()
        assert book.later == 0, "who asks waits for its own"
        kept.finish(jobs[0].record)
        assert book.later == 1, "for the end of it nobody waits"
        kept.begin(job_of(3, SETTINGS), target(SETTINGS))
        assert book.written == [
            (gather, "req_0", 1024),
            (gather, "req_1", 2048),
            (gather, "req_2", 3072),
            (False, "req_0", 0),
            (gather, "req_3", 3072),
        ]

    run(work)


def test_what_could_not_be_recorded_is_counted_and_reported_once_until_it_can_again() -> None:
    async def work() -> None:
        notes = Notes()
        kept = usage_ledger(Ledger(), SETTINGS, notes=notes)
        book = Book(kept)
        open_job = job_of(0, SETTINGS)
        begin(kept, open_job, target(SETTINGS))
        assert notes == []
        book.full = True
        for number in (1, 2):
            assert kept.begin(job_of(number, SETTINGS), target(SETTINGS)) is None
        kept.finish(open_job.record)
        assert (kept.dropped, book.later) == (3, 0)
        refused = ("error", "usage not recorded", {"detail": "the journal is full"})
        again = ("warn", "usage recorded again", {"dropped": 3})
        assert notes == [refused]
        book.full = False
        for number in (3, 4):
            assert kept.begin(job_of(number, SETTINGS), target(SETTINGS)) is not None
        assert notes == [refused, again]
        book.full = True
        kept.begin(job_of(5, SETTINGS), target(SETTINGS))
        assert notes == [refused, again, refused]

    run(work)


@pytest.mark.parametrize("order", ORDERS)
def test_a_required_row_that_reaches_the_disk_lets_the_request_go_on(tmp_path: Path, order: str) -> None:
    async def work() -> None:
        settings = ledger_settings(tmp_path, ledger_required=True, sync=order)
        kept = usage_ledger(Ledger(), settings)
        await kept.start()
        job = job_of(1, settings)
        begin(kept, job, target(settings))
        await answering(job)
        assert kept.journal.holds(1)
        await kept.close()

    run(work)


@pytest.mark.parametrize("has_account", [True, False])
def test_a_request_has_its_account_before_it_is_answered(has_account: bool) -> None:
    steps: list[Any] = []
    account = object() if has_account else None

    class Books(UsageLedger):
        def __init__(self) -> None: ...

        def begin(self, exchange: Any, where: Any) -> Any:
            steps.append(where)
            return account

    exchange: Any = SimpleNamespace(
        targets=("first", "second"), ending=Ending(), record=SimpleNamespace(booked=False)
    )
    Books().open_account(exchange)
    assert steps == ["first"]
    assert exchange.ending.account is account
    assert exchange.record.booked is has_account


# --- from the journal into the store


def test_the_pace_is_that_of_the_documentation() -> None:
    assert DrainPace(0.25, 0.5, 5.0, 10.0, 2.0, 2.0) == PACE


def test_rows_are_gathered_and_written_when_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        store, waited = Store(), list[float]()
        sleep = asyncio.sleep

        async def noted(seconds: float) -> None:
            if seconds:
                waited.append(seconds)
            await sleep(0)

        fed = drain(store, Notes(), DrainPace(gather=0.25))
        await fed._journal.start()
        monkeypatch.setattr("wireglot.gateway.state.ledger.drain.asyncio.sleep", noted)
        task = asyncio.create_task(fed._keep_emptying())
        fed._journal.append(rows("1")[0])
        await turns()
        assert (store.applied, waited) == ([], []), "nobody has said so"
        fed.due.set()
        fed.due.set()
        while fed._journal.pending:
            await sleep(0)
        assert (store.applied, waited) == ([["1"]], [0.25])
        task.cancel()
        assert not fed.due.is_set(), "what comes now is for the next time"
        await fed._journal.close()

    run(work)


def test_a_store_that_is_down_is_waited_for_until_its_time_comes_or_somebody_asks() -> None:
    async def work() -> None:
        fed = drain(Store(), Notes(), DrainPace(retry=1000.0, retry_max=1000.0))
        pause = asyncio.create_task(fed._pause())
        await turns()
        assert not pause.done()
        fed._asked.set()
        await pause
        # Who asked is served by the next try; the pause after that is one again.
        assert await fed._applied(rows("1"))
        assert not fed._asked.is_set()

    run(work)


def test_a_failure_that_nobody_foresaw_is_paused_for_once() -> None:
    async def work() -> None:
        paused: list[str] = []
        fed = drain(Store(ValueError("x")), Notes())

        async def pause() -> None:
            paused.append(fed.behind)

        fed._pause = pause  # type: ignore[method-assign]  # a double in its place
        assert not await fed._applied(rows("1"))
        assert paused == ["no usage can be written (ValueError)"]
        assert await fed._applied(rows("1"))
        assert len(paused) == 1

    run(work)


def test_the_last_rows_are_written_at_the_end_and_nothing_goes_on_after_it() -> None:
    async def work() -> None:
        store = Store()
        fed = drain(store, Notes(), DrainPace(gather=1000.0, beat=1000.0))
        await fed._journal.start()
        await fed.start()
        tasks = list(fed._tasks)
        fed._journal.append(rows("1")[0])
        fed.due.set()
        await turns()
        assert store.applied == []
        await fed.close()
        assert store.applied == [["1"]]
        assert len(tasks) == 4
        assert all(task.done() for task in tasks)
        assert fed._tasks == []
        await fed._journal.close()

    run(work)


def test_a_process_gives_signs_of_life_and_looks_for_the_dead_at_its_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        waited: list[float] = []
        sleep = asyncio.sleep

        async def noted(seconds: float) -> None:
            if seconds:
                waited.append(seconds)
            await sleep(0)

        store, looked = Store(), list[int]()
        fed = drain(store, Notes(), DrainPace(beat=10.0))

        async def adopt() -> None:
            looked.append(1)

        fed.adopt = adopt  # type: ignore[method-assign]  # a double in its place
        monkeypatch.setattr("wireglot.gateway.state.tasks.asyncio.sleep", noted)
        for forever, seconds in ((fed._pulse, 10.0), (fed._adopt_again, 60.0)):
            waited.clear()
            task = asyncio.create_task(forever())
            while len(waited) < 3:
                await sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert set(waited) == {seconds}
        assert len(store.beats) >= 3
        assert len(looked) >= 2

    run(work)


@pytest.mark.parametrize("step", ["_pulse", "_adopt", "start", "sweep"])
def test_a_bug_beside_the_requests_is_reported_with_its_place(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*given: Any, **more: Any) -> Any:
        raise KeyError("bug")

    async def work() -> None:
        notes = Notes()
        fed = drain(Store(), notes, DrainPace(gather=0.0, beat=1000.0))
        where = "usage"
        if step == "sweep":
            where = "sweep"
            sleep = asyncio.sleep

            async def at_once(seconds: float) -> None:
                await sleep(0)

            monkeypatch.setattr("wireglot.gateway.state.tasks.asyncio.sleep", at_once)
            engine: Any = SimpleNamespace(sweep=broken)
            sweeper = Sweeper(engine, MemoryCounters(), "one", notes)
            sweeper.start(lambda: SETTINGS)
            while not notes:
                await sleep(0)
            await sweeper.close()
        elif step == "start":  # the task that empties the journal
            fed.empty = broken  # type: ignore[method-assign]  # a double in its place
            await fed.start()
            fed.due.set()
            while not notes:
                await asyncio.sleep(0)
            for task in fed._tasks:
                task.cancel()
        else:
            fed.adopt = broken  # type: ignore[method-assign]  # a double in its place
            fed._beat = broken  # type: ignore[method-assign]  # a double in its place
            task = asyncio.create_task(getattr(fed, step)())
            while not notes:
                await asyncio.sleep(0)
            task.cancel()
        assert notes == [("error", "bug", {"type": "KeyError", "where": where})]

    run(work)


def test_what_was_taken_over_is_reported_with_how_much_it_was(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger, notes = ledger_settings(tmp_path), Ledger(), Notes()
        dead = usage_ledger(ledger, settings, "dead")
        await dead.start()
        ledger.down = True
        for number in range(3):
            begin(dead, job_of(number, settings), target(settings))
        dead._open.clear()  # it ends without a word about them
        await dead.close()
        ledger.down = False
        heir = usage_ledger(ledger, settings, "heir", notes=notes, pace=HURRIED)
        await heir.start()
        assert notes == [("info", "usage taken over", {"of": "dead", "rows": 3, "crashed": 3})]
        assert {row.outcome for row in ledger.rows.values()} == {"crash"}
        await heir.close()

    run(work)


def test_who_is_stopped_while_taking_over_holds_no_journal_of_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process could not take them over."""
    released: list[int] = []
    dead = [SimpleNamespace(release=partial(released.append, number)) for number in range(3)]
    monkeypatch.setattr(drain_module, "orphans", lambda *_: dead)

    async def work() -> None:
        settings = ledger_settings(tmp_path)
        kept = usage_ledger(Ledger(), settings)
        taken: list[object] = []

        async def take_over(orphan: object) -> None:
            taken.append(orphan)
            if len(taken) == 2:
                await asyncio.Event().wait()

        monkeypatch.setattr(kept._drain, "_take_over", take_over)
        task = asyncio.ensure_future(kept._drain.adopt())
        while len(taken) < 2:
            await asyncio.sleep(0)
        assert released == [0]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert taken == dead[:2]
        assert released == [0, 1, 2]

    run(work)


def test_journals_of_the_dead_are_read_in_batches(tmp_path: Path) -> None:
    async def work() -> None:
        store = Store()
        fed = drain(store, Notes())
        ids = [str(number) for number in range(1201)]
        released: list[str] = []

        class Orphan:
            instance = "dead"

            def rows(self) -> Any:
                return iter([rows(*ids[:1001]), rows(*ids[1001:])])

            def release(self) -> None:
                released.append("dead")

        closed: list[Any] = []

        async def close_open(instances: Any, now: int) -> int:
            closed.append(instances)
            return 7

        store.close_open = close_open  # type: ignore[attr-defined]  # as much of a store as it needs
        assert await fed._replay(Orphan()) == (1201, 7)  # type: ignore[arg-type]  # as much of a journal as it needs
        assert [len(each) for each in store.applied] == [500, 500, 1, 200]
        assert [id for each in store.applied for id in each] == ids
        assert closed == [["dead"]]

    run(work)


class Busy(Ledger):
    """A request begins while rows are written, as long as there are any to begin."""

    def __init__(self, numbers: range) -> None:
        super().__init__()
        self.kept: UsageLedger | None = None
        self._numbers = iter(numbers)

    async def apply(self, rows: Sequence[UsageRow]) -> None:
        await super().apply(rows)
        number = next(self._numbers, None)
        if number is not None:
            assert self.kept is not None
            begin(self.kept, job_of(number, SETTINGS), target(SETTINGS))


def test_what_comes_while_rows_are_written_is_gathered_again() -> None:
    """Where requests never cease, each few of them were a commit of their own, as quickly as the disk went."""

    async def work() -> None:
        store = Busy(range(1, 3))
        store.kept = kept = usage_ledger(store, SETTINGS)
        await kept.journal.start()
        begin(kept, job_of(0, SETTINGS), target(SETTINGS))
        for turn in range(3):
            kept._drain.due.clear()
            await kept._drain.empty(gathered=True)
            assert [row.id for row in store.applied[-1]] == [f"req_{turn}"]
            assert len(store.applied) == turn + 1
            assert kept._drain.due.is_set() == (turn < 2), "what came is not forgotten"
        assert kept.journal.pending == 0
        await kept.journal.close()

    run(work)


def test_who_asks_for_all_of_it_has_also_what_comes_meanwhile() -> None:
    async def work() -> None:
        store = Busy(range(1, 3))
        store.kept = kept = usage_ledger(store, SETTINGS)
        await kept.journal.start()
        begin(kept, job_of(0, SETTINGS), target(SETTINGS))
        assert await kept.flush(5.0)
        assert sorted(store.rows) == ["req_0", "req_1", "req_2"]
        await kept.journal.close()

    run(work)
