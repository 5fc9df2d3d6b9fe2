"""Several processes of one gateway, workers or machines: each shows, ends and forgets what all of them have."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.settings import Secret, ServerSettings, Settings, StoreSettings
from wireglot.gateway.trace import fleet_traces, peers
from wireglot.gateway.trace.filters import parse_filter
from wireglot.gateway.trace.fleet_traces import fewer_orders
from wireglot.gateway.trace.peers import (
    ENDED_UP_TO,
    SESSION_SECONDS,
    PeerCommand,
    PeerRequest,
    PeerResponse,
    Peers,
    SiblingWorkers,
)
from wireglot.gateway.trace.rows import Listener
from wireglot.gateway.trace.search import Search
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores import StoreDown
from wireglot.stores.document_log import DocumentLog
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.seal import Sealer
from wireglot_core.traces.trace import Row, Trace, TraceMessage

SHARED = ServerSettings(secret=Secret("s" * 32, "env:SECRET"))


class Heard:
    """Implements `Commanded`."""

    def __init__(self) -> None:
        self.commands: list[tuple[PeerCommand, bool]] = []

    def obey(self, command: PeerCommand, *, is_new: bool) -> None:
        self.commands.append((command, is_new))

    def standing(self) -> list[PeerCommand]:
        return [PeerCommand(1.0, ended="standing", ends=9e9)]

    @property
    def ended(self) -> list[str]:
        return [command.ended for command, _ in self.commands if command.ended]


class Away:
    def __init__(self) -> None:
        self.is_down = False
        self.documents = MemoryEngine().documents

    def __call__(self) -> Any:
        if self.is_down:
            raise StoreDown("it is being moved")
        return self.documents


def texts(text: str) -> Wanted:
    return Wanted.of(parse_filter(text, 0.0))


class Process:
    def __init__(self, traces: Traces, heard: Heard) -> None:
        self.traces = traces
        self.heard = heard

    def did(self, id: str, key: str = "ada", *, over: bool = True, recorded: bool = False) -> ExchangeRecord:
        record = ExchangeRecord(
            id, time.monotonic(), dialect="anthropic", operation="generate", path="/v1/messages", status=200
        )
        record.caller, record.recorded, record.booked = key, recorded, True
        self.traces.rows.begin(record)
        if over:
            record.finished = time.monotonic()
            self.traces.rows.finish(record)
        return record

    def kept(self, id: str, text: str, key: str = "ada") -> None:
        """An exchange that was recorded."""
        self.did(id, key, recorded=True)
        row = self.traces.rows.find(id)
        assert row is not None
        self.traces.shelf.put(Trace(row=row, request=TraceMessage(body=text), answer=TraceMessage()))
        self.traces.fleet.offer(row)

    async def ids(self, text: str = "", **wanted: Any) -> list[str]:
        wanted_rows = Wanted.of(parse_filter(text, time.time()))
        return sorted(
            row.id for row in await self.traces.listed(msgspec.structs.replace(wanted_rows, **wanted))
        )


@asynccontextmanager
async def process(
    folder: Path,
    log: DocumentLog | None = None,
    *,
    directory: str = "",
    index: int = 0,
    settings: Settings | None = None,
) -> Any:
    settings = settings or Settings(server=SHARED)
    settings = replace(settings, store=replace(settings.store, folder=str(folder)))
    heard = Heard()
    traces = Traces(settings, Observer(settings), Sealer(b"s" * 32), log, heard)
    await traces.start(directory, index)
    try:
        yield Process(traces, heard)
    finally:
        await traces.close()


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not (found := await look()):
            await asyncio.sleep(0.01)
        return found


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_EVERY_SECONDS", "_LOOK_SECONDS", "_FOLLOW_SECONDS"):
        monkeypatch.setattr(fleet_traces, name, 0.02)


def test_who_is_alone_has_nobody_to_ask(tmp_path: Path) -> None:
    async def trial() -> None:
        async with process(tmp_path) as one:
            row = Row(id="req_1", at=1.0, recorded=True)
            nobody = one.traces.fleet
            assert type(nobody) is type(one.traces.siblings) is Peers
            assert await nobody.rows(Wanted()) == await nobody.unbooked(0, 1) == []
            assert await nobody.dropped() == []
            assert await nobody.find("req_1") is None
            assert await nobody.trace(row) == (None, "")
            assert await nobody.forget("ada", 1.0) == 0
            assert (await nobody.command(PeerCommand(1.0)), nobody.status(), nobody.unsent) == (
                "",
                None,
                None,
            )
            status = await one.traces.status()
            assert (status["workers"], status["fleet"], status["mode"], status["until"]) == (
                1,
                None,
                "off",
                None,
            )
            one.kept("req_1", "hello")
            one.did("req_2", over=False)
            assert await one.ids() == ["req_1", "req_2"]
            assert await one.ids("status:running") == ["req_2"]
            found = await one.traces.find("req_1")
            trace, why = await one.traces.opened(found)
            assert (trace.request.body, why) == ("hello", "")
            assert await one.traces.opened(row) == (trace, "")
            assert await one.traces.opened(replace(row, id="req_9")) == (None, "")
            assert await one.traces.find("req_9") is None
            metrics = Metrics()
            one.traces.publish(metrics)
            assert b"wireglot_traces_dropped_total 0" in metrics.render()
            assert b"wireglot_fleet_rows_dropped_total 0" not in metrics.render()
            assert await one.traces.forget("bob") == 0
            assert await one.traces.forget("ada") == 1
            assert await one.ids() == []

    run(trial())


def test_the_next_process_lists_what_the_one_before_recorded(tmp_path: Path) -> None:
    async def trial() -> None:
        async with process(tmp_path) as one:
            for number in range(4):
                one.kept(f"req_{number}", "hello")
        async with process(tmp_path) as two:
            assert await two.ids() == [f"req_{number}" for number in range(4)]
            newest = await two.traces.listed(Wanted(limit=2))
            assert [row.id for row in newest] == ["req_3", "req_2"]
            last = newest[-1]
            older = await two.traces.listed(Wanted(before=Wanted().key(last)))
            assert [row.id for row in older] == ["req_1", "req_0"]
            assert await two.ids(since=time.time() + 10) == await two.ids("key:bob") == []
            found = await two.traces.find("req_1")
            assert found.id == "req_1"

    run(trial())


@pytest.mark.skipif(sys.platform == "win32", reason="several workers are Unix's")
def test_workers_are_one(tmp_path: Path) -> None:
    async def trial() -> None:
        place = str(tmp_path)
        async with AsyncExitStack() as stack:
            one = await stack.enter_async_context(process(tmp_path / "t", directory=place, index=0))
            assert one.heard.commands == []
            two = await stack.enter_async_context(process(tmp_path / "t", directory=place, index=1))
            assert [(command.ended, new) for command, new in two.heard.commands][-1] == ("standing", False)
            one.did("req_1", over=False)
            two.did("req_2")
            two.kept("req_3", "hello", key="bob")
            for each in (one, two):
                assert await each.ids() == ["req_1", "req_2", "req_3"]
                assert (await each.traces.status())["workers"] == 2
                assert [(await each.traces.find(id)).id for id in ("req_1", "req_2")] == ["req_1", "req_2"]
            assert await one.traces.find("req_9") is None
            row = await one.traces.find("req_3")
            assert (await one.traces.opened(row))[0].request.body == "hello"
            two.traces._no_room = 3
            assert (await one.traces.status())["dropped"] == 3
            # Commands.
            assert await one.traces.command(PeerCommand(2.0, ended="nonce", ends=9e9)) == ""
            assert one.heard.ended[-1] == two.heard.ended[-1] == "nonce"
            assert await two.traces.record_for(60) == ""
            for each in (one, two):
                assert each.traces.policy.active
                assert (await each.traces.status())["mode"] == "all"
            assert await one.traces.record_for(0) == ""
            assert not two.traces.policy.active
            # Live.
            listener = one.traces.listen()
            news = until(lambda: _heard(listener, "req_4"))
            listening = asyncio.create_task(news)
            while not listening.done():
                two.did("req_4", over=False)
                await asyncio.sleep(0.05)
            assert listening.result().state == "running"
            listener.close()
            assert await one.traces.forget("bob") == 1
            assert "req_3" not in await two.ids()

    run(trial())


@pytest.mark.skipif(sys.platform == "win32", reason="several workers are Unix's")
def test_a_busy_worker_is_left_out_of_a_list_and_waited_for_where_it_has_the_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_LIST_SECONDS", 0.01)
    wanted = Row(id="req_1", at=1.0)

    async def trial() -> None:
        is_free = asyncio.Event()

        async def answer(question: PeerRequest) -> PeerResponse:
            if question.rows is not None or question.find:
                await is_free.wait()
            return PeerResponse(rows=[wanted])

        async def obey(command: PeerCommand, is_new: bool) -> None: ...

        busy, other = (SiblingWorkers(str(tmp_path), index, answer, Listener) for index in (0, 1))
        await busy.start(obey)
        await other.start(obey)
        finding = asyncio.create_task(other.find("req_1"))
        assert await other.rows(Wanted()) == []
        is_free.set()
        assert await finding == wanted
        await other.close()
        await busy.close()

    run(trial())


async def _heard(listener: Any, id: str) -> Row | None:
    return next((row for row in await listener.heard(0.05) if row.id == id), None)


def test_machines_are_one(tmp_path: Path) -> None:
    async def trial() -> None:
        store = Away()
        async with AsyncExitStack() as stack:
            log = DocumentLog(store)
            one = await stack.enter_async_context(process(tmp_path / "one", log))
            two = await stack.enter_async_context(process(tmp_path / "two", DocumentLog(store)))
            one.did("req_1")
            one.kept("req_2", "a letter")
            one.did("req_3", key="bob", over=False)
            assert await until(lambda: _all(two, ["req_1", "req_2", "req_3"]))
            assert (await two.traces.find("req_3")).state == "running"
            assert (await two.traces.find("req_9")) is None
            row = await two.traces.find("req_2")
            assert await until(lambda: _opened(two, row)) == "a letter"
            assert await one.traces.elsewhere(row) == (None, "")
            assert (await two.traces.status())["fleet"] == {
                "machines": 2, "trouble": None, "unreported": 0, "untold": 0, "unshared": 0
            }  # fmt: skip
            metrics = Metrics()
            two.traces.publish(metrics)
            assert b"wireglot_fleet_rows_dropped_total 0" in metrics.render()
            # What is found elsewhere.
            found = await Search(two.traces).find(texts("letter"), 10)
            assert ([each.id for each in found.rows], found.next, found.unread) == (["req_2"], None, 0)
            assert [each.id for each in (await Search(two.traces).find(texts("bob"), 10)).rows] == ["req_3"]
            assert (await Search(two.traces).find(texts("nothing"), 10)).rows == []
            # What machines answered, where each keeps books of its own.
            now = time.time()
            assert len(await two.traces.fleet.unbooked(now - 60, now + 60)) == 3
            assert await two.traces.fleet.unbooked(now + 60, now + 120) == []
            two.traces.adopt(replace(two.traces._settings, store=StoreSettings(url=Secret("postgresql://x"))))
            assert await two.traces.fleet.unbooked(now - 60, now + 60) == []
            # Live.
            listener = two.traces.listen()
            one.did("req_4")
            assert (await until(lambda: _heard(listener, "req_4"))).state == "done"
            listener.close()
            # Commands: at once here, and soon there.
            assert await one.traces.command(PeerCommand(2.0, ended="nonce", ends=9e9)) == ""
            assert one.heard.ended[-1] == "nonce"
            assert await until(lambda: _is(lambda: two.heard.ended[-1:] == ["nonce"]))
            # One caller's data goes, everywhere.
            assert await two.traces.forget("ada") == 1
            assert await until(lambda: _all(one, ["req_3"]))
            assert await until(lambda: _all(two, ["req_3"]))
            assert one.traces.shelf.listed() == []
            assert await log.find("ada", "req_2") is None
            # While the store is away.
            store.is_down = True
            waits = await one.traces.command(PeerCommand(3.0, ended="later", ends=9e9))
            assert "it is being moved" in waits
            assert one.heard.ended[-1] == "later"
            assert await until(lambda: _is(lambda: "moved" in str(one.traces.fleet.status()["trouble"])))
            with pytest.raises(StoreDown):
                await one.traces.forget("bob")
            store.is_down = False
            assert await until(lambda: _is(lambda: "later" in two.heard.ended))
            late = await stack.enter_async_context(process(tmp_path / "late", DocumentLog(store)))
            assert {new for command, new in late.heard.commands if command.ended == "nonce"} == {False}

    run(trial())


@rows("kind", ["workers", "machines"])
def test_what_runs_in_another_process_while_its_caller_is_wiped_is_gone_when_it_ends(
    kind: str, tmp_path: Path
) -> None:
    async def trial() -> None:
        store, folder = Away(), tmp_path / kind
        async with AsyncExitStack() as stack:
            if kind == "workers":
                directory = str(await asyncio.to_thread(_folder, folder / "sockets"))
                made = [process(folder / "data", directory=directory, index=index) for index in (0, 1)]
            else:
                made = [process(folder / str(index), DocumentLog(store)) for index in (0, 1)]
            one, two = [await stack.enter_async_context(each) for each in made]
            record, kept = two.did("req_1", over=False), two.did("req_2", key="bob", over=False)
            assert await until(lambda: _all(one, ["req_1", "req_2"]))
            listener = one.traces.listen()
            await until(lambda: _heard(listener, two.did("req_3", key="bob").id))
            await one.traces.forget("ada")
            assert await until(lambda: _is(lambda: record.wiped))
            assert (await until(lambda: _heard(listener, "req_1"))).state == "failed"
            listener.close()
            for each in (record, kept):
                each.finished = time.monotonic()
                two.traces.rows.finish(each)
            assert await until(lambda: _state(one, "req_2")) == "done"
            assert await one.ids() == await two.ids() == ["req_2", "req_3"]
            # Nothing of it is in the store, also for a machine that reads all of it later.
            if kind == "machines":
                entries = await DocumentLog(store).heard(fleet_traces.ROWS, "", 1000)
                reported = fleet_traces.read_rows(entries, Sealer(b"s" * 32))
                assert {row.key for _, each in reported for row in each.rows} == {"bob"}
                late = await stack.enter_async_context(process(folder / "late", DocumentLog(store)))
                assert await until(lambda: _all(late, ["req_2", "req_3"]))

    run(trial())


def test_a_flood_of_sign_outs_pushes_no_order_out_of_the_fleets_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_traces, "_MAX_SIGN_OUTS", 64)
    monkeypatch.setattr(fleet_traces, "_MAX_ORDERS", 64)

    async def trial() -> None:
        store, now = Away(), time.time()
        async with AsyncExitStack() as stack:
            one = await stack.enter_async_context(process(tmp_path / "one", DocumentLog(store)))
            await one.traces.forget("ada")
            stolen = PeerCommand(now, ended="stolen", ends=now + SESSION_SECONDS, whose="admin")
            await one.traces.command(stolen)
            for number in range(200):
                of_flood = PeerCommand(now, ended=f"n{number}", ends=now + SESSION_SECONDS, whose="mallory")
                await one.traces.command(of_flood)
            late = await stack.enter_async_context(process(tmp_path / "late", DocumentLog(store)))
            heard = [command for command, _ in late.heard.commands]
            assert "ada" in [command.forgotten for command in heard]
            assert "stolen" not in [command.ended for command in heard], "the log is full"
            cutoffs = [command for command in heard if command.ended == ENDED_UP_TO]
            assert [command.whose for command in cutoffs] == [""]
            assert cutoffs[0].ends >= stolen.ends

    run(trial())


def test_sign_outs_that_wait_for_the_store_become_one_of_each_caller(tmp_path: Path) -> None:
    async def trial() -> None:
        store, now = Away(), time.time()
        async with AsyncExitStack() as stack:
            one = await stack.enter_async_context(process(tmp_path / "one", DocumentLog(store)))
            two = await stack.enter_async_context(process(tmp_path / "two", DocumentLog(store)))
            store.is_down = True
            await one.traces.command(PeerCommand(now, record_until=now + 60))
            for number in range(150):
                whose = "admin" if number == 0 else "mallory"
                await one.traces.command(PeerCommand(now, ended=f"n{number}", ends=now + number, whose=whose))
            store.is_down = False
            assert await until(lambda: _is(lambda: "n149" in two.heard.ended))
            heard = {
                command.whose: command.ends
                for command, _ in two.heard.commands
                if command.ended == ENDED_UP_TO
            }
            assert heard == {"admin": now, "mallory": now + 99}
            assert two.traces.policy.until

    run(trial())


def test_more_callers_than_may_wait_are_signed_out_with_everyone() -> None:
    orders = [PeerCommand(1.0, ended=f"n{number}", ends=number, whose=f"k{number}") for number in range(101)]
    waits = PeerCommand(1.0, record_until=9.0)
    everyone = PeerCommand(1.0, ended=ENDED_UP_TO, ends=100)
    assert fewer_orders([waits, *orders]) == [everyone, waits]


def _folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True)
    return folder


async def _state(process: Process, id: str) -> str:
    row = await process.traces.find(id)
    return row.state if row is not None and row.state != "running" else ""


async def _all(process: Process, ids: list[str]) -> bool:
    return await process.ids() == ids


async def _opened(process: Process, row: Row) -> str:
    trace, _ = await process.traces.opened(row)
    return trace.request.body if trace is not None else ""


async def _is(look: Callable[[], bool]) -> bool:
    return look()


def test_why_a_body_of_another_machine_cannot_be_shown(tmp_path: Path) -> None:
    async def trial() -> None:
        store = Away()
        row = Row(id="req_1", at=time.time(), key="ada", worker="one/1", recorded=True)

        async def why(**settings: Any) -> str:
            made = Settings(**{"server": SHARED, **settings})
            async with process(tmp_path / "two", DocumentLog(store), settings=made) as two:
                trace, reported = await two.traces.opened(row)
                assert trace is None
                return str(reported)

        locked = (
            "recorded by one/1, and sealed with another secret: set server.secret, the same on every machine"
        )
        assert "not in the fleet's store" in await why()
        assert await why(server=ServerSettings(secret=Secret("s" * 32, "file:x"))) == locked
        assert "trace.fleet_bytes = 0" in await why(trace=TraceSettings(fleet_bytes=0))
        await DocumentLog(store).keep("ada", "req_1", b"no file of ours", seconds=60, max_bytes=1 << 20)
        assert await why() == locked
        store.is_down = True
        assert "the fleet's store is not available: it is being moved" in await why()

    run(trial())


def test_bodies_that_are_too_many_or_too_large_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_traces, "MAX_WAITING_BODIES", 2)

    async def trial() -> None:
        store = Away()
        store.is_down = True
        async with process(tmp_path / "one", DocumentLog(store)) as one:
            for number in range(3):
                one.kept(f"req_{number}", "hello")
            assert one.traces.fleet.status()["unshared"] == 1
            store.is_down = False
        small = Settings(server=SHARED, trace=TraceSettings(fleet_bytes=10))
        log = DocumentLog(Away())
        async with process(tmp_path / "two", log, settings=small) as two:
            two.kept("req_1", "hello")
            assert await until(lambda: _is(lambda: two.traces.fleet.status()["unshared"] == 1))
            assert await log.find("ada", "req_1") is None

    run(trial())
