"""Several processes on one Redis behave as one (FAULTS 100, T20)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

import pytest

from tests.stores.servers import needs_redis, redis_url
from tests.waiting import until
from wireglot.stores.redis import open_redis

pytestmark = needs_redis

PROCESSES = 3
CALLERS = 4

PROGRAM = """
import asyncio, json, sys
from wireglot.stores.records import Budget, Rate
from wireglot.stores.redis import open_redis

async def main(url, who, end, callers):
    counters, vault = await open_redis(url, connect_seconds=30, call_seconds=30, vault_seconds=30)
    spent = passed = 0

    async def asks(caller):
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

    await asyncio.gather(*(asks(caller) for caller in range(callers)))
    print(json.dumps({"spent": spent, "passed": passed}))
    await counters.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


def test_budgets_rates_and_locks_hold_across_processes() -> None:
    """A budget is overrun by no more than the claims in flight; a rate not at all; a lock has one holder."""
    url, end = redis_url(), int(time.time() * 1000) + 3_600_000
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, str(who), str(end), str(CALLERS)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in range(PROCESSES)
    ]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    spent = sum(answer["spent"] for answer in answers)
    assert 1000 <= spent <= 1000 + 7 * PROCESSES * CALLERS
    assert sum(answer["passed"] for answer in answers) == 200

    async def counted() -> bytes:
        counters, vault = await open_redis(url, connect_seconds=30, vault_seconds=30)
        found = await vault.recall("t", ["n"])
        await counters.close()
        return found["n"]

    assert asyncio.run(counted()) == str(3 * PROCESSES * CALLERS).encode()


def test_a_lock_and_a_place_of_a_process_that_died_become_free() -> None:
    """FAULTS 110: anyone who held it is gone without a word."""
    url = redis_url()
    program = """
import asyncio, os, sys
from wireglot.stores.redis import open_redis

async def main():
    counters, _ = await open_redis(sys.argv[1], connect_seconds=30, call_seconds=30)
    assert await counters.lock("l", "dead", 1.0) and await counters.enter("p", "dead", 1, 1.0)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", program, url], check=False, timeout=60).returncode == -9

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
