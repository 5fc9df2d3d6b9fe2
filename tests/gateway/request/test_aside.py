"""Work on large bodies is done in a few worker threads."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from tests.waiting import until
from wireglot.gateway.request.worker_thread import THREAD_NAME, run_in_thread

_THREADS = 4


def test_the_loop_goes_on_while_something_is_done_aside() -> None:
    """[A5] The work waits for something that only the loop can do."""

    async def scenario() -> None:
        reported = threading.Event()
        asyncio.get_running_loop().call_soon(reported.set)

        def work() -> str:
            assert reported.wait(60)
            return threading.current_thread().name

        assert (await run_in_thread(work)).startswith(THREAD_NAME)

    asyncio.run(scenario())


def test_what_it_raises_comes_out() -> None:
    def work() -> None:
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        asyncio.run(run_in_thread(work))


def test_who_leaves_does_not_wait_and_what_has_not_begun_is_dropped() -> None:
    """[A5] A client that has gone costs no more than what is under way."""

    async def scenario() -> None:
        go_on = threading.Event()
        begun: list[int] = []

        def work(number: int) -> None:
            begun.append(number)
            assert go_on.wait(60)

        tasks = [asyncio.create_task(run_in_thread(partial(work, n))) for n in range(_THREADS + 2)]
        try:
            await until(lambda: len(begun) == _THREADS)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in ended)
        finally:
            go_on.set()
        await run_in_thread(lambda: None)
        assert len(begun) == _THREADS

    asyncio.run(scenario())
