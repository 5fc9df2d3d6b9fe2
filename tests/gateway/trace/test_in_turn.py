"""Searches and other long looks at recordings take turns."""

from __future__ import annotations

import asyncio
import threading

import pytest

from wireglot.gateway.errors import RequestError
from wireglot.gateway.trace.search import Limiter


def test_long_looks_take_turns_and_too_many_are_asked_to_come_back() -> None:
    inside: list[int] = []
    most: list[int] = []
    go_on = threading.Event()

    def look() -> None:
        inside.append(1)
        most.append(len(inside))
        assert go_on.wait(60)
        inside.pop()

    async def run() -> list[BaseException | None]:
        turn = Limiter(1)
        looks = [asyncio.ensure_future(turn.do(look)) for _ in range(20)]
        refused, _ = await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        assert all(isinstance(each.exception(), RequestError) for each in refused)
        go_on.set()
        return await asyncio.gather(*looks, return_exceptions=True)

    reported = asyncio.run(run())
    assert max(most) == 1
    assert reported.count(None) == len(most) == 9


def test_anyone_who_leaves_gives_the_turn_on_only_when_the_work_is_over() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def look() -> str:
        begun.set()
        assert go_on.wait(60)
        return "over"

    async def run() -> None:
        turn = Limiter(1)
        first = asyncio.ensure_future(turn.do(look))
        await asyncio.to_thread(begun.wait, 60)
        first.cancel()
        second = asyncio.ensure_future(turn.do(lambda: go_on.is_set()))
        with pytest.raises(asyncio.CancelledError):
            await first
        go_on.set()
        assert await second

    asyncio.run(run())
