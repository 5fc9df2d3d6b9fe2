"""[A8] Responses whose process has died are found without being asked for; those of the living are left alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from wireglot.gateway.state.responses.heartbeat import Heartbeats
from wireglot.gateway.state.responses.orphans import Entry, Orphans, Running, has_died, pid_space
from wireglot.stores import StoreDown
from wireglot.stores.memory import MemoryEngine

LEASE, GRACE = 30.0, 7.5


class Fleet:
    """One process that looks, at a list in which others are."""

    def __init__(self) -> None:
        self.now = 0.0
        self.documents = MemoryEngine().documents
        self.running = Running(self.documents)
        self.settled: list[str] = []
        self.beats = Heartbeats(self.documents)
        looking = Heartbeats(self.documents, clock=lambda: self.now)
        self.orphans = Orphans(self.running, looking, "here-1-0", self._settle, clock=lambda: self.now)

    async def _settle(self, caller: str, id: str) -> None:
        self.settled.append(f"{caller} {id}")

    async def begins(self, id: str, instance: str = "elsewhere-1-0") -> None:
        await self.beats.begin("ann", id)
        await self.running.enter("ann", id, instance)

    async def looks_at(self, now: float, ours: frozenset[str] = frozenset()) -> list[str]:
        self.now = now
        await self.orphans.look(LEASE, GRACE, lambda caller, id: id in ours)
        return self.settled


@pytest.fixture(autouse=True)
def _numbers_say_nothing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Entries are made by this process, which lives: only its sign counts, unless a test says otherwise."""
    if "by its number" not in request.node.name.replace("_", " "):
        monkeypatch.setattr("wireglot.gateway.state.responses.orphans.pid_space", lambda: "")


def test_one_that_has_stood_still_for_the_lease_and_a_grace_is_settled_once() -> None:
    async def work() -> None:
        fleet = Fleet()
        await fleet.begins("r1")
        for now in (0.0, 29.0, 31.0, 38.0):
            assert await fleet.looks_at(now) == []
        assert await fleet.looks_at(39.0) == ["ann r1"]
        assert await fleet.looks_at(100.0) == ["ann r1"]
        assert await fleet.running.all() == []

    asyncio.run(work())


def test_one_that_beats_is_left_alone_and_so_is_our_own() -> None:
    async def work() -> None:
        fleet = Fleet()
        await fleet.begins("r1")
        await fleet.begins("r2", "here-1-0")
        for now in range(0, 200, 5):
            await fleet.beats.beat("ann", "r1")
            assert await fleet.looks_at(now, frozenset({"r2"})) == []
        assert {id for id, _ in await fleet.running.all()} == {"r1", "r2"}

    asyncio.run(work())


def test_after_the_store_was_away_the_living_have_time_for_a_sign() -> None:
    async def work() -> None:
        fleet = Fleet()
        await fleet.begins("r1")
        for now in (0.0, 31.0):
            await fleet.looks_at(now)
        recent, fleet.documents.recent = fleet.documents.recent, _away  # type: ignore[method-assign, assignment]  # a double in its place
        with pytest.raises(StoreDown):
            await fleet.looks_at(60.0)
        fleet.documents.recent = recent  # type: ignore[method-assign]  # a double in its place
        assert await fleet.looks_at(70.0) == []
        await fleet.beats.beat("ann", "r1")
        assert await fleet.looks_at(78.0) == []
        assert await fleet.looks_at(86.0) == []

    asyncio.run(work())


async def _away(*arguments: object, **named: object) -> None:
    raise StoreDown("away")


def test_a_long_list_is_read_to_its_end() -> None:
    async def work() -> None:
        fleet = Fleet()
        for number in range(450):
            await fleet.begins(f"r{number}")
        assert len(await fleet.running.all()) == 450

    asyncio.run(work())


@pytest.mark.skipif(not pid_space(), reason="the system does not tell which processes can be seen")
def test_a_process_of_this_machine_that_has_gone_is_known_by_its_number() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert has_died(Entry("ann", "x-1-0", ended.pid, pid_space()))
    assert has_died(Entry("ann", "x-1-0", os.getpid(), pid_space())), "the one before us in a container"
    assert not has_died(Entry("ann", "x-1-0", os.getppid(), pid_space()))
    assert not has_died(Entry("ann", "x-1-0", ended.pid, "another boot"))
    assert not has_died(Entry("ann", "x-1-0", ended.pid))
