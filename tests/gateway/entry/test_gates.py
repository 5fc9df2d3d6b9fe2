"""Limits of the requests at once, of those that wait, and of how long they wait."""

import asyncio

import pytest

from wireglot.gateway.entry.callers import LOCAL, Caller
from wireglot.gateway.entry.gates import Gate, Gates, no_room
from wireglot.gateway.errors import RequestError
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.settings import ClientKey


def test_those_that_must_wait_get_in_as_others_leave():
    """R-DD-09"""

    async def run() -> list[str]:
        gate = Gate(1, 2, 5.0)
        order: list[str] = []

        async def come(name: str) -> None:
            await gate.enter()
            order.append(name)
            await asyncio.sleep(0)
            gate.leave()

        await asyncio.gather(come("a"), come("b"), come("c"))
        assert gate.inside == 0
        return order

    assert asyncio.run(run()) == ["a", "b", "c"]


def test_a_full_queue_is_refused_at_once_and_a_slow_one_in_time():
    """R-DD-09"""

    async def run() -> None:
        gate = Gate(1, 1, 0.01)
        await gate.enter()
        waiting = asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as full:
            await gate.enter()
        assert full.value.error.kind == "overloaded"
        assert gate.waiting == 1
        with pytest.raises(RequestError):
            await waiting
        assert (gate.inside, gate.waiting) == (1, 0)
        gate.leave()
        assert (gate.inside, gate.waiting) == (0, 0)

    asyncio.run(run())


def test_no_place_is_lost_to_one_that_left_while_waiting():
    """FAULTS 45"""

    async def run() -> None:
        gate = Gate(1, 5, 5.0)
        await gate.enter()
        first, second = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        first.cancel()
        gate.leave()  # in the same step: the place may have been given to the one that leaves
        await asyncio.sleep(0)
        await second
        assert gate.inside == 1
        gate.leave()
        assert gate.inside == 0

    asyncio.run(run())


def test_a_gate_without_a_limit_lets_everyone_in():
    gate = Gate(0, 0, 0.0)
    assert [gate.try_enter() for _ in range(100)] == [True] * 100
    assert gate.inside == 100


def test_each_key_has_a_gate_of_its_own_behind_the_one_of_all():
    """R-DD-09"""
    ada, bob = (Caller(name, ClientKey(name, name)) for name in ("ada", "bob"))
    limits = ProcessLimits(requests=3, requests_per_key=1, queue=1, queue_time=5.0)
    gates = Gates(limits)
    assert gates.of(LOCAL, limits) == (gates.all,)
    first, own = gates.of(ada, limits)
    assert first is gates.all
    assert gates.of(ada, limits) == (first, own)
    assert gates.of(bob, limits)[1] is not own
    assert [first.try_enter(), own.try_enter(), own.try_enter()] == [True, True, False]
    assert gates.inside == 2
    assert gates.of(ada, ProcessLimits(requests_per_key=0)) == (first,), "0: no limit"

    async def run() -> None:
        waiting = asyncio.create_task(own.enter())
        await asyncio.sleep(0)
        assert gates.waiting == 1
        with pytest.raises(RequestError):
            await own.enter()
        own.leave()
        await waiting

    asyncio.run(run())


def test_new_limits_hold_for_every_gate_there_is():
    ada = Caller("ada", ClientKey("ada", "ada"))
    limits = ProcessLimits(requests=1, requests_per_key=1)
    gates = Gates(limits)
    gates.adopt(ProcessLimits(requests=3, requests_per_key=2, queue=1, queue_time=0.01))
    of_all, own = gates.of(ada, limits)
    gates.adopt(ProcessLimits(requests=3, requests_per_key=2, queue=1, queue_time=0.01))
    assert [of_all.try_enter() for _ in range(4)] == [True, True, True, False]
    assert [own.try_enter() for _ in range(3)] == [True, True, False]

    async def run() -> None:
        for gate in (of_all, own):
            waiting = asyncio.create_task(gate.enter())
            await asyncio.sleep(0)
            with pytest.raises(RequestError, match=r"the queue is full$"):
                await gate.enter()
            with pytest.raises(RequestError, match="waited too long in the queue"):
                await waiting

    asyncio.run(run())


def test_those_that_are_turned_away_come_back_at_different_times():
    errors = [no_room().error for _ in range(100)]
    assert {(error.kind, error.status) for error in errors} == {("overloaded", 503)}
    waits = [error.retry_after or 0 for error in errors]
    assert all(1 <= wait <= 5 for wait in waits)
    assert max(waits) - min(waits) > 2
