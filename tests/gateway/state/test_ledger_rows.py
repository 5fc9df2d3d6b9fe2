"""Rows of the ledger, what is promised to them, what is swept, and how a store is fed: without a gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.state.ledger_kit import (
    HURRIED,
    ORDERS,
    PRICE,
    Ledger,
    Notes,
    answered,
    begin,
    job_of,
    ledger_settings,
    target,
    usage_ledger,
)
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.settings import Keep
from wireglot.gateway.state import stored_forms
from wireglot.gateway.state.ledger.drain import BATCH_ROWS, Drain, DrainPace, collapsed
from wireglot.gateway.state.ledger.sweeper import Sweeper, prune
from wireglot.gateway.state.ledger.usage_ledger import completed, intent, usage_checks
from wireglot.gateway.state.losses.shelf import KEPT_BYTES
from wireglot.stores import StoreDown
from wireglot.stores.base import Counters, Engine
from wireglot.stores.journal.journal import Journal, legible
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.records import KindLimits, Swept, UsageRow
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage

SETTINGS = ledger_settings(None)
BEGUN = UsageRow(
    "req_1",
    "alice",
    1_800_000_000_000,
    "one",
    "generate",
    "anthropic",
    "s1",
    "fast",
    "mine",
    "fast-1",
    "openai-chat",
    True,
)


# --- rows


def test_an_intent_says_who_asks_whom_for_what() -> None:
    before = time.time() * 1000
    job = job_of(1, SETTINGS, session="s1", started=time.monotonic() - 5)
    row = intent(job, target(SETTINGS), "one")
    after = time.time() * 1000
    assert row == msgspec.structs.replace(BEGUN, started=row.started, stream=False)
    # When it came, by the clock that people have.
    assert before - 5_000 - 2 <= row.started <= after - 5_000 + 2
    assert row.outcome == ""


def test_names_of_clients_are_cut_to_what_a_person_could_read() -> None:
    job = job_of(1, SETTINGS, session="s" * 300)
    row = intent(job, target(SETTINGS, model="m" * 300), "one")
    assert (len(row.session), len(row.upstream_model)) == (256, 256)
    job.record.upstream_model = "u" * 300
    whole = completed(BEGUN, job.record, price=None, flags=(), first_byte=None, now=0.0)
    assert (len(whole.session), len(whole.upstream_model)) == (256, 256)


def test_a_completion_tells_what_became_of_it() -> None:
    job = job_of(1, SETTINGS, session="other", started=10.0)
    answered(job, "other", "slow-1", Usage(input=1, cache_read=2, output=3, reasoning=4))
    record = job.record
    record.attempts, record.outcome, record.error_kind = 3, "error", "server"
    record.losses = [
        Loss("$.a", "user", "dropped"),
        Loss("$.b", "metadata", "dropped"),
        Loss("$.c", "user", "dropped"),
    ]
    whole = completed(BEGUN, record, price=PRICE, flags=("odd",), first_byte=10.25, now=12.5)
    assert whole == msgspec.structs.replace(
        BEGUN,
        session="other",
        provider="other",
        upstream_model="slow-1",
        outcome="error",
        finished=BEGUN.started + 2500,
        status=200,
        error="server",
        attempts=3,
        first_byte=250,
        source="provider",
        cost=1 + 2 + 6 + 8,
        losses=("user", "metadata"),
        flags=("odd",),
        input=1,
        cache_read=2,
        output=3,
        reasoning=4,
    )


def test_what_is_not_known_in_the_end_is_what_was_meant() -> None:
    record = job_of(1, SETTINGS, started=10.0).record
    whole = completed(BEGUN, record, price=PRICE, flags=(), first_byte=None, now=10.0)
    assert (whole.provider, whole.upstream_model, whole.upstream_dialect) == ("mine", "fast-1", "openai-chat")
    assert (whole.first_byte, whole.cost, whole.losses, whole.source) == (0, None, (), "none")
    record.usage = Usage()
    assert completed(BEGUN, record, price=None, flags=(), first_byte=None, now=10.0).cost is None
    assert completed(BEGUN, record, price=PRICE, flags=(), first_byte=None, now=10.0).cost == 0


def test_numbers_that_no_request_has_are_cut() -> None:
    record = job_of(1, SETTINGS).record
    most = 10**12
    record.usage = Usage(input=most, output=1, raw=Extra("x", {"a": 1}))
    row = completed(BEGUN, record, price=None, flags=(), first_byte=None, now=0.0)
    assert (row.input, row.output) == (most, 1)
    record.usage = Usage(input=most + 1, cache_read=most, output=5)
    row = completed(BEGUN, record, price=None, flags=(), first_byte=None, now=0.0)
    assert (row.input, row.cache_read, row.output, row.reasoning) == (most, most, 5, 0)


def test_a_request_is_one_row_its_end_where_that_is_known() -> None:
    def row(id: str, outcome: Any = "", status: int = 0) -> UsageRow:
        return UsageRow(id, "alice", 1, outcome=outcome, status=status)

    rows = [
        row("a"),
        row("b"),
        row("a", "ok"),
        row("c", "ok"),
        row("c"),
        row("b"),
        row("d", "ok", 1),
        row("d", "ok", 2),
    ]
    assert collapsed(rows) == [row("a", "ok"), row("b"), row("c", "ok"), row("d", "ok", 2)]


def test_halves_of_letters_are_replaced_and_whole_ones_are_not() -> None:
    row = UsageRow("req", "é\ud800", 1, session="\ud800", model="a", upstream_model="b\ud800", instance="é")
    assert legible(row) == UsageRow("req", "é?", 1, session="?", model="a", upstream_model="b?", instance="é")
    plain = UsageRow("req", "é", 1, model="ü")
    assert legible(plain) == plain


def test_only_a_providers_own_numbers_can_be_odd() -> None:
    assert usage_checks(None) == ()
    assert usage_checks(Usage(input=1)) == ()
    assert usage_checks(Usage(raw=Extra("no such dialect", {"a": 1}))) == ()
    odd = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 5}
    assert usage_checks(Usage(raw=Extra("openai-chat", form=odd))) != ()
    assert usage_checks(Usage(raw=Extra("openai-chat", form={**odd, "total_tokens": 2}))) == ()


# --- the ledger


def run(work: Any) -> None:
    asyncio.run(work())


def test_an_open_account_has_room_promised_and_all_is_reported_as_numbers(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = ledger_settings(tmp_path, journal=64 * 1024), Ledger()
        kept = usage_ledger(ledger, settings)
        metrics = Metrics()
        kept.publish(metrics)
        await kept.start()
        await until(lambda: not kept.journal._shelf.lacks)
        ledger.down = True
        assert not kept.full
        promised: list[int] = []
        takes = kept.journal.takes

        def noted(leave: int = 0) -> bool:
            promised.append(leave)
            return takes(leave)

        kept.journal.takes = noted  # type: ignore[method-assign]  # a double in its place
        assert not kept.full
        begin(kept, job_of(1, settings), target(settings))
        assert not kept.full
        assert promised == [1024, 1024, 2048]
        kept.dropped, kept._drain.refused, kept.journal.damaged = 1, 20, 300
        kept.odd_usage[("mine", "sum")] = 4
        reported = metrics.render().decode()
        for name in ("journal_bytes", "journal_limit_bytes", "dropped_total", "flaws_total"):
            (said,) = [
                line for line in reported.splitlines() if line.startswith(f"# HELP wireglot_usage_{name} ")
            ]
            assert said.endswith("."), "a sentence, for the readers of a dashboard"
        assert f"wireglot_usage_journal_bytes {kept.journal.pending}" in reported
        assert "# TYPE wireglot_usage_journal_bytes gauge" in reported
        assert f"wireglot_usage_journal_limit_bytes {kept.journal.limit}" in reported
        assert "wireglot_usage_dropped_total 321" in reported
        assert "# TYPE wireglot_usage_dropped_total counter" in reported
        assert 'wireglot_usage_flaws_total{provider="mine",flaw="sum"} 4' in reported
        assert "# TYPE wireglot_usage_flaws_total counter" in reported
        await kept.close()

    run(work)


def test_a_request_has_one_account(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = ledger_settings(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        job = job_of(1, settings)
        assert kept.begin(job, target(settings)) is not None
        assert kept.begin(job, target(settings)) is None
        kept.finish(job.record)
        kept.finish(job.record)
        assert await kept.flush(DEADLINE_SECONDS)
        assert [row.outcome for rows in ledger.applied for row in rows].count("ok") == 1
        await kept.close()

    run(work)


def test_trouble_is_the_disks_or_else_the_stores() -> None:
    async def work() -> None:
        kept = usage_ledger(Ledger(), SETTINGS)
        assert kept.trouble == ""
        kept._drain.behind = "the store is away"
        assert kept.trouble == "the store is away"
        kept.journal.syncer.trouble = "no space"
        assert kept.trouble == "no space"

    run(work)


def test_workers_share_the_journals_room_and_what_dies_with_the_process_is_not_synced(tmp_path: Path) -> None:
    async def work() -> None:
        for folder, workers, sync in ((tmp_path, 1, True), (tmp_path, 4, True), (None, 1, False)):
            settings = ledger_settings(folder, journal=4 * 1024 * 1024)
            server = msgspec.structs.replace(settings.server, workers=workers)
            kept = usage_ledger(Ledger(), msgspec.structs.replace(settings, server=server))
            shelf = kept.journal._shelf
            assert shelf._size * shelf._most == 4 * 1024 * 1024 // workers
            assert kept.journal.syncer.sync is sync
            assert kept.journal.folder == (tmp_path / "journal" if folder else None)
        for order in ORDERS:
            kept = usage_ledger(Ledger(), ledger_settings(tmp_path, sync=order))
            assert kept.journal.syncer.sync is (order != "off")

    run(work)


def test_a_flaw_is_counted_each_time_and_reported_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        notes = Notes()
        kept = usage_ledger(Ledger(), SETTINGS, notes=notes)
        now = [0.0]
        monkeypatch.setattr("wireglot.gateway.state.ledger.usage_ledger.time.monotonic", lambda: now[0])
        for moment, provider in (
            (0.0, "mine"),
            (3599.0, "mine"),
            (3599.0, "other"),
            (3600.0, "mine"),
            (7199.0, "mine"),
        ):
            now[0] = moment
            kept._flag(provider, ("sum", "cache"))
        assert kept.odd_usage == {
            ("mine", "sum"): 4,
            ("mine", "cache"): 4,
            ("other", "sum"): 1,
            ("other", "cache"): 1,
        }
        assert [(level, event) for level, event, _ in notes] == [("warn", "odd usage")] * 6

    run(work)


def test_half_an_account_need_not_add_up(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = ledger_settings(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        raw = Extra("openai-chat", form={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 5})
        for number, source in enumerate(("provider", "partial")):
            job = job_of(number, settings)
            begin(kept, job, target(settings))
            answered(job, usage=Usage(input=1, output=1, raw=raw))
            job.record.usage_source = source  # type: ignore[assignment]  # each of the words that it may be
            kept.finish(job.record)
        assert await kept.flush(DEADLINE_SECONDS)
        assert [bool(ledger.rows[f"req_{number}"].flags) for number in range(2)] == [True, False]
        assert sum(kept.odd_usage.values()) == 1
        await kept.close()

    run(work)


def test_prices_are_looked_up_once_an_hour_and_those_of_a_request_are_of_its_own_settings() -> None:
    async def work() -> None:
        kept = usage_ledger(Ledger(), SETTINGS)
        job = job_of(1, SETTINGS)
        answered(job)
        hour = 3_600_000
        assert kept._price(job.record, SETTINGS, 7 * hour) == PRICE
        kept._prices[("mine", "fast-1", 7)] = None
        assert kept._price(job.record, SETTINGS, 8 * hour - 1) is None, "it is known already"
        assert kept._price(job.record, SETTINGS, 8 * hour) == PRICE, "another hour may have another price"
        reloaded = ledger_settings(None)
        assert kept._price(job.record, reloaded, 7 * hour) == PRICE, "of other settings nothing is known"
        kept.adopt(reloaded)
        assert kept._price(job.record, reloaded, 0) == PRICE
        assert list(kept._prices) == [("mine", "fast-1", 0)]
        for number in range(4094):
            kept._prices[("x", str(number), 0)] = None
        job.record.upstream_model = "fast-2"
        assert kept._price(job.record, reloaded, 0) == PRICE
        assert len(kept._prices) == 4096
        job.record.upstream_model = "fast-3"
        assert kept._price(job.record, reloaded, 0) == PRICE
        assert list(kept._prices) == [("mine", "fast-3", 0)], "so many are enough"
        job.record.provider = "nobody"
        assert kept._price(job.record, reloaded, 0) is None

    run(work)


def test_what_is_open_at_the_end_is_reported_as_cut_off(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger = ledger_settings(tmp_path), Ledger()
        kept = usage_ledger(ledger, settings)
        await kept.start()
        for number in range(3):
            begin(kept, job_of(number, settings), target(settings))
        await kept.close()
        assert {row.outcome for row in ledger.rows.values()} == {"gateway_abort"}
        assert len(ledger.rows) == 3
        assert not (tmp_path / "journal" / "one").exists()

    run(work)


def test_an_account_that_is_required_says_what_to_do(tmp_path: Path) -> None:
    async def work() -> None:
        settings = ledger_settings(tmp_path, ledger_required=True)
        kept = usage_ledger(Ledger(), settings)
        kept.journal.syncer.trouble = "no space"
        with pytest.raises(RequestError) as refused:
            kept.begin(job_of(1, settings), target(settings))
        error = refused.value.error
        assert (refused.value.kind, error.code, error.retry_after) == ("shed", "storage_unavailable", 2)
        assert str(refused.value) == "usage cannot be recorded now"
        assert kept.dropped == 1

    run(work)


# --- from the journal into the store


class Store:
    """A ledger that answers what it is asked to, call by call."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.applied: list[list[str]] = []
        self.beats: list[str] = []

    async def apply(self, rows: Sequence[UsageRow]) -> None:
        self.applied.append([row.id for row in rows])
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    async def beat(self, instance: str) -> None:
        self.beats.append(instance)
        raise StoreDown("away")


def rows(*ids: str) -> list[UsageRow]:
    return [UsageRow(id, "alice", 1, outcome="ok") for id in ids]


def drain(store: Store, notes: Notes, pace: DrainPace = HURRIED) -> Drain:
    return Drain(Journal(None, "one", limit=1024 * 1024), store, "one", notes, pace=pace)  # type: ignore[arg-type]  # as much of each as it needs


def test_a_store_that_is_down_is_tried_again_and_reported_once() -> None:
    async def work() -> None:
        store, notes = Store(StoreDown("a"), StoreDown("b"), None), Notes()
        fed = drain(store, notes)
        assert await fed._applied(rows("1", "2"))
        assert store.applied == [["1", "2"]] * 3
        assert notes == [("warn", "usage spooled", {"detail": "a"}), ("info", "usage caught up", {})]
        assert (fed.behind, fed.refused) == ("", 0)

    run(work)


def test_pauses_double_up_to_their_most_and_begin_again_when_all_is_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        paused: list[float] = []
        timeout = asyncio.timeout

        def noted(seconds: float) -> Any:
            paused.append(seconds)
            return timeout(0)

        monkeypatch.setattr("wireglot.gateway.state.ledger.drain.asyncio.timeout", noted)
        store = Store(*(StoreDown("a") for _ in range(5)), None, StoreDown("b"), None)
        fed = drain(store, Notes(), DrainPace(retry=1.0, retry_max=5.0))
        assert await fed._applied(rows("1"))
        assert await fed._applied(rows("2"))
        assert paused == [1.0, 2.0, 4.0, 5.0, 5.0, 1.0]

    run(work)


def test_one_row_that_is_refused_among_others_is_dropped_and_reported() -> None:
    async def work() -> None:
        store, notes = Store(ValueError("batch"), None, ValueError("row"), None), Notes()
        fed = drain(store, notes)
        assert await fed._applied(rows("1", "2", "3"))
        assert store.applied == [["1", "2", "3"], ["1"], ["2"], ["3"]]
        assert fed.refused == 1
        assert notes == [("error", "usage refused", {"id": "2", "type": "ValueError"})]
        assert fed._passed == 2

    run(work)


def test_what_hits_every_row_is_no_row_s_fault_until_others_pass() -> None:
    async def work() -> None:
        store, notes = Store(ValueError("x")), Notes()
        fed = drain(store, notes)
        assert not await fed._applied(rows("1"))
        assert fed.behind == "no usage can be written (ValueError)"
        assert fed.refused == 0
        store.answers = [ValueError("x")]
        assert not await fed._applied(rows("1")), "nothing has passed since"
        store.answers = [None, ValueError("x")]
        assert await fed._applied(rows("2"))
        assert await fed._applied(rows("1")), "it is the row"
        assert (fed.refused, fed.behind, fed._suspects) == (1, "", {})

    run(work)


def test_a_store_that_goes_down_while_rows_are_tried_one_by_one_is_waited_for() -> None:
    async def work() -> None:
        store, notes = Store(ValueError("batch"), None, StoreDown("away"), None), Notes()
        fed = drain(store, notes)
        assert await fed._applied(rows("1", "2"))
        assert store.applied == [["1", "2"], ["1"], ["2"], ["1", "2"]]
        assert fed.refused == 0

    run(work)


def test_suspects_are_forgotten_when_they_become_too_many() -> None:
    async def work() -> None:
        fed = drain(Store(), Notes())
        fed._suspects = {str(number): 0 for number in range(999)}
        assert not fed._passed_since(rows("new")[0])
        assert len(fed._suspects) == 1000
        assert not fed._passed_since(rows("newest")[0])
        assert list(fed._suspects) == ["newest"]

    run(work)


def test_rows_go_in_batches_and_in_their_order(tmp_path: Path) -> None:
    async def work() -> None:
        store = Store()
        fed = drain(store, Notes())
        await fed._journal.start()
        for row in rows(*map(str, range(BATCH_ROWS + 1))):
            fed._journal.append(row)
        await fed.empty()
        assert [len(ids) for ids in store.applied] == [500, 1]
        assert [id for ids in store.applied for id in ids] == [str(number) for number in range(501)]
        assert fed._journal.pending == 0
        await fed._journal.close()

    run(work)


def test_who_asks_is_shown_whether_the_store_knows_in_time() -> None:
    async def work() -> None:
        store = Store(StoreDown("a"))
        fed = drain(store, Notes(), DrainPace(retry=1000.0, retry_max=1000.0))
        await fed._journal.start()
        assert await fed.flush(1.0), "there is nothing to tell"
        fed._journal.append(rows("1")[0])
        assert not await fed.flush(0.01)
        assert await fed.flush(DEADLINE_SECONDS)
        await fed._journal.close()

    run(work)


def test_a_sign_of_life_is_given_at_once_and_a_store_that_is_down_is_no_fault() -> None:
    async def work() -> None:
        store, notes = Store(), Notes()
        fed = drain(store, notes)
        await fed._beat()
        assert store.beats == ["one"]
        await fed.start()
        await until(lambda: len(store.beats) == 2)
        await fed.close()
        assert notes == []

    run(work)


def test_what_cannot_be_done_now_is_reported_and_waited_for() -> None:
    async def work() -> None:
        notes = Notes()
        fed = drain(Store(), notes)

        async def fail(problem: Exception) -> None:
            raise problem

        for problem in (StoreDown("away"), OSError(5, "Input/output error")):
            await fed._or_tell(partial(fail, problem))
        assert [(level, event) for level, event, _ in notes] == [("warn", "usage waits")] * 2
        with pytest.raises(KeyError):
            await fed._or_tell(lambda: fail(KeyError("bug")))

    run(work)


# --- retention


class Swept_:
    """An engine that notes how it is swept."""

    def __init__(self, swept: Swept | None = None) -> None:
        self.swept = swept or Swept()
        self.asked: list[tuple[int, dict[str, Any]]] = []

    async def sweep(self, now: int, **limits: Any) -> Swept:
        self.asked.append((now, limits))
        return self.swept


NOW = 2_000_000_000_000


def test_what_is_swept_is_what_the_settings_say() -> None:
    async def work() -> None:
        keep = Keep(
            usage_days=2, responses_bytes=1, events_bytes=2, conversations_bytes=3, idempotency_bytes=4
        )
        engine = Swept_()
        await prune(engine, ledger_settings(None, keep=keep), NOW)  # type: ignore[arg-type]  # as much of each as it needs
        assert engine.asked == [
            (
                NOW,
                {
                    "usage_before": NOW - 2 * 86_400_000,
                    "dead_before": NOW - 20 * 60_000,
                    "kinds": {
                        stored_forms.RESPONSE: KindLimits(1),
                        stored_forms.EVENT: KindLimits(2),
                        stored_forms.ITEM: KindLimits(3),
                        stored_forms.IDEMPOTENT: KindLimits(4),
                        stored_forms.LOSSES: KindLimits(KEPT_BYTES),
                        "fleet-log": KindLimits(64 * 1024 * 1024),
                        "trace": KindLimits(128 * 1024 * 1024),
                    },
                },
            )
        ]
        forever = msgspec.structs.replace(keep, usage_days=0)
        await prune(engine, ledger_settings(None, keep=forever))  # type: ignore[arg-type]  # as much of each as it needs
        now, limits = engine.asked[1]
        assert limits["usage_before"] == 0
        assert abs(now - time.time() * 1000) < 60_000

    run(work)


@pytest.mark.parametrize(
    ("swept", "reported"),
    [
        (Swept(), []),
        (Swept({"a": 1}, {"b": 20}, 300), [("info", "swept", {"removed": 321, "crashed": 0})]),
        (Swept(crashed=2), [("info", "swept", {"removed": 0, "crashed": 2})]),
    ],
)
def test_only_what_was_removed_is_reported(swept: Swept, reported: list[Any]) -> None:
    async def work() -> None:
        notes = Notes()
        sweeper = Sweeper(as_engine(Swept_(swept)), MemoryCounters(), "one", notes)
        await sweeper.sweep(SETTINGS)
        assert notes == reported

    run(work)


def as_engine(swept: Swept_) -> Engine:
    return swept  # type: ignore[return-value]  # as much of one as a sweep needs


def test_one_process_sweeps_until_shortly_before_the_next_turn() -> None:
    async def work() -> None:
        asked: list[tuple[Any, ...]] = []

        class Locks:
            async def lock(self, *given: Any) -> bool:
                asked.append(given)
                return len(asked) == 1

        engine, counters = Swept_(), Locks()
        for name in ("one", "two"):
            await Sweeper(as_engine(engine), as_counters(counters), name, Notes()).sweep(SETTINGS)
        assert asked == [("sweep", "one", 240.0), ("sweep", "two", 240.0)]
        assert len(engine.asked) == 1

    run(work)


def as_counters(locks: Any) -> Counters:
    found: Counters = locks
    return found


def test_a_store_that_is_down_is_reported_and_swept_at_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        pauses: list[float] = []
        notes = Notes()

        class Down(Swept_):
            async def sweep(self, now: int, **limits: Any) -> Swept:
                await super().sweep(now, **limits)
                raise StoreDown("away")

        class Open:
            async def lock(self, *given: Any) -> bool:
                return True

        engine = Down()
        sleep = asyncio.sleep

        async def noted(seconds: float) -> None:
            pauses.append(seconds)
            await sleep(0)

        monkeypatch.setattr("wireglot.gateway.state.tasks.asyncio.sleep", noted)
        sweeper = Sweeper(as_engine(engine), as_counters(Open()), "one", notes)
        spread: list[tuple[float, float]] = []

        def uniform(least: float, most: float) -> float:
            spread.append((least, most))
            return most

        monkeypatch.setattr("wireglot.gateway.state.ledger.sweeper.random.uniform", uniform)
        sweeper.start(lambda: SETTINGS)
        while len(engine.asked) < 3:
            await sleep(0)
        await sweeper.close()
        assert sweeper._task is not None
        assert sweeper._task.done()
        assert (spread, pauses[0]) == ([(0.5, 1.5)], 30.0), "not all at once after a start"
        assert set(pauses[1:]) == {300.0}
        assert notes[0] == ("warn", "not swept", {"detail": "away"})

    run(work)
