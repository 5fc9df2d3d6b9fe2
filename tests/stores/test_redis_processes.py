"""Several processes on one Redis behave as one (FAULTS 100, T20)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from tests.stores.children import CHILDREN
from tests.stores.servers import needs_redis, redis_url
from tests.waiting import until
from wireglot.stores.records import Budget, Rate
from wireglot.stores.redis import open_redis

pytestmark = needs_redis

PROCESSES = 3
CALLERS = 4


def _spends(url: str, who: int, end: int, reported: Any) -> None:
    async def work() -> tuple[int, int]:
        counters, vault = await open_redis(url, connect_seconds=30, call_seconds=30, vault_seconds=30)
        spent = passed = 0

        async def asks(caller: int) -> None:
            nonlocal spent, passed
            # The budget: 7 is reserved, 5 turn out to be used.
            while await counters.take([Budget("b", 7, 1000, end)]) is None:
                spent += 5
                await counters.settle([Budget("b", -2, 1000, end)])
            # The rate: a window so long that nothing leaks out of it during the test.
            while await counters.take([Rate("r", 1, 200, 10**7)]) is None:
                passed += 1
            # The lock: a counter that is read and written in two steps, and right only if nobody is between.
            for _ in range(3):
                holder = f"{who}-{caller}"
                while not await counters.lock("l", holder, 60):
                    await asyncio.sleep(0.001)
                value = int((await vault.recall("t", ["n"])).get("n", b"0"))
                await vault.keep("t", {"n": str(value + 1).encode()}, 600)
                await counters.unlock("l", holder)

        await asyncio.gather(*(asks(caller) for caller in range(CALLERS)))
        await counters.close()
        return spent, passed

    reported.put(asyncio.run(work()))


def test_budgets_rates_and_locks_hold_across_processes() -> None:
    """A budget is overrun by no more than the claims in flight; a rate not at all; a lock has one holder."""
    url, end = redis_url(), int(time.time() * 1000) + 3_600_000
    reported = CHILDREN.SimpleQueue()
    children = [CHILDREN.Process(target=_spends, args=(url, who, end, reported)) for who in range(PROCESSES)]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0] * PROCESSES
    spent, passed = map(sum, zip(*(reported.get() for _ in children), strict=True))
    assert 1000 <= spent <= 1000 + 7 * PROCESSES * CALLERS
    assert passed == 200

    async def counted() -> bytes:
        counters, vault = await open_redis(url, connect_seconds=30, vault_seconds=30)
        found = await vault.recall("t", ["n"])
        await counters.close()
        return found["n"]

    assert asyncio.run(counted()) == str(3 * PROCESSES * CALLERS).encode()


def _holds_and_dies(url: str) -> None:
    async def work() -> None:
        counters, _ = await open_redis(url, connect_seconds=30, call_seconds=30)
        assert await counters.lock("l", "dead", 1.0)
        assert await counters.enter("p", "dead", 1, 1.0)
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(work())


def test_a_lock_and_a_place_of_a_process_that_died_become_free() -> None:
    """FAULTS 110: anyone who held it is gone without a word."""
    url = redis_url()
    child = CHILDREN.Process(target=_holds_and_dies, args=(url,))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL

    async def test() -> None:
        counters, _ = await open_redis(url, connect_seconds=30, call_seconds=30)
        await until(lambda: counters.lock("l", "alive", 60))
        await until(lambda: counters.enter("p", "alive", 1, 60))
        await counters.unlock("l", "dead")
        assert not await counters.lock("l", "another", 60)
        await counters.close()

    asyncio.run(test())


@pytest.mark.parametrize("limit", [1, 5])
def test_places_are_never_given_twice(limit: int) -> None:
    url = redis_url()

    async def test() -> None:
        stores = [(await open_redis(url, connect_seconds=30, call_seconds=30))[0] for _ in range(3)]
        inside = most = 0

        async def comes(number: int) -> None:
            nonlocal inside, most
            counters = stores[number % 3]
            await until(lambda: counters.enter("p", str(number), limit, 60))
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1
            await counters.leave("p", str(number))

        await asyncio.gather(*(comes(number) for number in range(60)))
        assert 1 <= most <= limit
        for counters in stores:
            await counters.close()

    asyncio.run(test())
