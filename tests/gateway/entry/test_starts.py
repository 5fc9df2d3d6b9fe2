"""Requests that come at once start a few at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from wireglot.gateway.entry.gates import MAX_STARTS, Starts


def _rounds() -> Callable[[], int]:
    """The number of the event loop's round, counted from now on."""
    loop, number = asyncio.get_running_loop(), 0

    def count() -> None:
        nonlocal number
        number += 1
        loop.call_soon(count)

    count()
    return lambda: number


def test_each_round_of_the_loop_starts_a_few_in_the_order_in_which_they_came() -> None:
    async def work() -> None:
        starts, now, begun = Starts(), _rounds(), list[tuple[int, int]]()

        async def request(number: int) -> None:
            turn = starts.turn()
            if turn is not None:
                await turn
            begun.append((number, now()))

        await asyncio.gather(*map(request, range(10 * MAX_STARTS)))
        assert [number for number, _ in begun] == list(range(10 * MAX_STARTS))
        assert set(Counter(moment for _, moment in begun).values()) == {MAX_STARTS}
        await asyncio.sleep(0)
        assert [starts.turn() for _ in range(MAX_STARTS)] == [None] * MAX_STARTS, "and then no one waits"

    asyncio.run(work())


def test_a_client_that_leaves_takes_no_turn() -> None:
    async def work() -> None:
        starts = Starts()
        for _ in range(MAX_STARTS):
            assert starts.turn() is None
        left, stayed = ([starts.turn() for _ in range(MAX_STARTS)] for _ in range(2))
        for turn in left:
            assert turn is not None
            turn.cancel()
        await asyncio.sleep(0)
        assert [turn is not None and turn.done() for turn in stayed] == [True] * MAX_STARTS

    asyncio.run(work())
