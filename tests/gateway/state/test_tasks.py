"""Work beside the requests: an error in one part of it ends neither that part nor the shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.gateway.state.background_kit import ONCE, client
from tests.gateway.state.quotas_kit import Desk
from tests.gateway.state.test_admin import SECRET, admin, create
from tests.waiting import DEADLINE_SECONDS, until, wait_until
from wireglot.gateway.state import tasks
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.gateway.state.responses.heartbeat import BEAT
from wireglot.gateway.state.store_health import TRUSTED_SECONDS, StoreHealth
from wireglot.gateway.state.tasks import Guarded, Pace, stop
from wireglot.stores import StoreDown
from wireglot.stores.memory.engine import MemoryKeys
from wireglot.stores.records import KeyRow, read_key
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

TOML = f'[providers.demo]\n[server]\nadmin_secret = "{SECRET}"\n'

QUICK = Pace(background_look_seconds=0.02)


def test_an_error_is_reported_once_and_the_work_goes_on() -> None:
    async def work() -> None:
        notes: list[tuple[str, Any]] = []
        guard = Guarded(lambda level, event, **fields: notes.append((event, fields["type"])), "here")
        turns = iter([ValueError, ValueError, StoreDown, ValueError, None, ValueError])
        over = asyncio.Event()

        async def turn() -> None:
            try:
                kind = next(turns)
            except StopIteration:
                over.set()
                return
            if kind is not None:
                raise kind("x")

        task = asyncio.create_task(guard.forever(turn, lambda: 0.0))
        await asyncio.wait_for(over.wait(), DEADLINE_SECONDS)
        await stop(task, None)
        assert task.cancelled()
        assert notes == [("bug", "ValueError")] * 2

    asyncio.run(work())


def test_stopping_minds_no_error_of_what_it_stops() -> None:
    async def work() -> None:
        async def broken() -> None:
            raise ValueError

        task = asyncio.create_task(broken())
        await asyncio.sleep(0)
        await stop(task)
        assert task.done()

    asyncio.run(work())


def test_a_key_of_a_later_version_or_a_damaged_one_keeps_no_other_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FAULTS 90: the damaged one opens nothing, and is reported once."""
    with LiveGateway(TOML, pace=Pace(keys_look_seconds=0.02)) as gateway:
        create(gateway, "good")
        table = gateway.process.state.keys
        (database,) = Path(gateway.folder).rglob("wireglot.db")
        with apsw.Connection(str(database)) as connection:
            body = json.loads(connection.execute("SELECT body FROM keys").get)
            later = {**body, "name": "later", "digest": "e" * 64, "limits": {"requests_per_hour": 5}}
            for name, value in (("later", json.dumps(later).encode()), ("damaged", b"{")):
                connection.execute("INSERT INTO keys (name, body) VALUES (?, ?)", (name, value))
            connection.execute("UPDATE revisions SET value = value + 1 WHERE name = 'keys'")
        wait_until(lambda: table.find("e" * 64))
        assert table.find(body["digest"]) is not None
        create(gateway, "another")
        (line,) = gateway.wait_log(1, "key not readable")
        assert line["name"] == "damaged"
        listed = {key["name"]: key["state"] for key in admin(gateway, "GET", "/keys").document["data"]}
        assert listed == {"good": "active", "later": "active", "another": "active", "damaged": "unreadable"}
        assert admin(gateway, "PATCH", "/keys/damaged", {"concurrent": 1}).status == 409
        assert admin(gateway, "DELETE", "/keys/damaged").document["state"] == "revoked"


def test_a_row_that_cannot_be_read_has_no_digest() -> None:
    assert read_key("x", b'{"name": 5}') == KeyRow("x", "", "", 0)
    assert read_key("x", b"\xff") == KeyRow("x", "", "", 0)


def test_the_key_table_survives_what_nobody_thought_of(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        notes: list[str] = []
        store = MemoryKeys()
        table = KeyTable(store, lambda level, event, **fields: notes.append(event), look_seconds=0.001)
        real, broken, raised = store.all, [True], [0]

        async def odd() -> list[KeyRow]:
            if broken[0]:
                raised[0] += 1
                raise ValueError("odd")
            return await real()

        monkeypatch.setattr(store, "all", odd)
        await table.start()
        assert table.required, "nobody could say"
        await store.put(KeyRow("me", "d" * 64, "wg-abc", 1))
        await until(lambda: raised[0] > 2)
        broken[0] = False
        await until(lambda: not table.required or table._found)
        assert table.find("d" * 64) is not None
        assert notes.count("bug") == 1
        await table.close()

    asyncio.run(work())


def test_the_place_of_a_stream_is_renewed_after_an_odd_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        desk = Desk(concurrent=1)
        desk.limiter.leases.renewed_seconds = 0.001
        claim = await desk.admit()
        real, odd = desk.counters.enter, [3]

        async def enter(*values: Any) -> bool:
            if odd[0]:
                odd[0] -= 1
                raise ValueError("odd")
            return await real(*values)

        monkeypatch.setattr(desk.counters, "enter", enter)
        desk.clock += 50
        before = desk.counters._places["places:me"][claim.holder]
        await until(lambda: desk.counters._places["places:me"][claim.holder] != before)
        assert desk.notes == ["bug"]
        await desk.limiter.close()

    asyncio.run(work())


def test_every_part_is_closed_whatever_another_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """FAULTS 103: the books above all."""
    closed: list[str] = []
    with LiveGateway(TOML) as gateway:
        state = gateway.process.state
        parts = {
            name: getattr(state, name)
            for name in (
                "background",
                "idempotency",
                "sharing",
                "keys",
                "quotas",
                "ledger",
                "counters",
                "engine",
            )
        }
        for name, part in parts.items():

            async def close(name: str = name, real: Any = part.close) -> None:
                await real()
                closed.append(name)
                raise ValueError(name)

            monkeypatch.setattr(part, "close", close)
    assert closed == list(parts)


def test_anyone_who_looks_for_orders_and_tells_that_we_live_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """FAULTS 95: or every running response would be taken for dead."""
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, "gemini", **ONCE).at(QUICK) as gateway,
    ):
        service, documents = gateway.process.state.background, gateway.process.state.documents

        async def odd(works: Any) -> None:
            raise ValueError("odd")

        monkeypatch.setattr(service, "_hear", odd)
        upstream.next(Behaviour(fault="stall"), Behaviour(fault="stall"))
        id = client(gateway).responses.create(model="m1", input="Hello", background=True).id
        seen: set[bytes] = set()

        def moves() -> bool:
            seen.update(each.body for each in gateway.call(documents.get("local", BEAT, [id])))
            return len(seen) > 2

        wait_until(moves)
        assert [line["where"] for line in gateway.wait_log(1, "bug")] == ["background: orders"]
        assert service._watch is not None
        gateway.call(stop(service._watch))
        client(gateway).responses.create(model="m1", input="Hello", background=True)
        wait_until(lambda: service._watch is not None and not service._watch.done())


def test_the_store_is_looked_at_again_after_an_odd_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with LiveGateway(TOML, pace=Pace(store_look_seconds=0.02)) as gateway:
        state, odd = gateway.process.state, [True]
        real = state.engine.check

        async def check() -> None:
            if odd[0]:
                raise ValueError("odd")
            await real()

        monkeypatch.setattr(state.engine, "check", check)
        state.store_health.suspect(StoreDown("gone"))
        wait_until(lambda: gateway.log("bug"))
        assert state.trouble
        odd[0] = False
        wait_until(lambda: not state.trouble)
        assert len(gateway.log("bug")) == 1


def test_the_store_is_not_written_to_where_something_was_written_lately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LiveGateway(TOML, pace=Pace(store_look_seconds=0.01)) as gateway:
        state, looks = gateway.process.state, [0]
        wait_until(lambda: state.store_health.is_sure)
        real = state.engine.check

        async def check() -> None:
            looks[0] += 1
            await real()

        monkeypatch.setattr(state.engine, "check", check)
        for _ in range(3):
            gateway.call(state._look())
        assert looks == [0]
        state.store_health.suspect(StoreDown("gone"))
        wait_until(lambda: looks[0])
        wait_until(lambda: not state.trouble)


def test_a_write_is_believed_for_a_while_and_a_failure_at_once() -> None:
    now, sure = [0.0], []
    store_health = StoreHealth(lambda: now[0])
    sure.append(store_health.is_sure)  # nothing has been written yet
    store_health.written()
    now[0] += TRUSTED_SECONDS - 1
    sure.append(store_health.is_sure)
    store_health.suspect(StoreDown("gone"))
    sure.append(store_health.is_sure)
    store_health.trouble = ""
    sure.append(store_health.is_sure)
    now[0] += 2
    sure.append(store_health.is_sure)
    assert sure == [False, True, False, True, False]


def test_every_write_tells_how_it_went(monkeypatch: pytest.MonkeyPatch) -> None:
    """THREATS T20: nobody pays for an answer that cannot be kept, no matter who found out."""
    with LiveGateway(TOML) as gateway:
        state = gateway.process.state

        async def full(*values: Any, **more: Any) -> bool:
            raise StoreDown("disk full")

        monkeypatch.setattr(state.engine.documents, "put", full)
        with pytest.raises(StoreDown):
            gateway.call(state.documents.put([]))
        assert state.trouble == "disk full"


def test_counters_that_are_down_keep_nothing_from_being_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """FAULTS 100: they are reported, and what must be kept goes to the store all the same."""
    with LiveGateway(TOML, pace=Pace(store_look_seconds=0.02)) as gateway:
        state = gateway.process.state

        async def gone() -> None:
            raise StoreDown("counters away")

        monkeypatch.setattr(state.counters, "check", gone)
        wait_until(lambda: state.trouble == "counters away")
        state.store_health.check()
        answered = client(gateway).responses.create(model="demo-gemini", input="Hello", store=True)
        assert client(gateway).responses.retrieve(answered.id).id == answered.id


def test_a_task_that_swallows_its_cancellation_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "_STOP_SECONDS", 0.01)

    async def work() -> None:
        over = asyncio.Event()

        async def deaf() -> None:
            while not over.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await over.wait()

        task = asyncio.create_task(deaf())
        await asyncio.sleep(0)
        await stop(task)
        assert not task.done()
        over.set()
        await task

    asyncio.run(work())
