"""So many at once, so many waiting, so long."""

import asyncio

import pytest

from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import RequestError


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
        with pytest.raises(RequestError):
            await waiting
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
