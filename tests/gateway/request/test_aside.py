"""Work on large bodies is done in a few worker threads."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from tests.waiting import until
from wireglot.cli.process_setup import run_loop
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request import worker_thread
from wireglot.gateway.request.worker_thread import MAX_THREADS_OF_A_KEY, THREAD_NAME, run_in_thread, worker

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


def test_work_that_raises_stop_iteration_ends() -> None:
    """A future refuses this exception."""

    async def scenario() -> None:
        nothing: Iterator[int] = iter(())
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(run_in_thread(lambda: next(nothing)), 60)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(asyncio.to_thread(next, nothing), 60)

    run_loop(scenario())


async def work_for(key: str, work: Callable[[], object]) -> object:
    worker.set(key)
    return await run_in_thread(work)


def test_who_leaves_does_not_wait_and_what_has_not_begun_is_dropped() -> None:
    """[A5] A client that has gone costs no more than what is under way."""

    async def scenario() -> None:
        go_on = threading.Event()
        begun: list[int] = []

        def work(number: int) -> None:
            begun.append(number)
            assert go_on.wait(60)

        tasks = [asyncio.create_task(work_for(f"key {n}", partial(work, n))) for n in range(_THREADS + 2)]
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


def test_who_leaves_in_the_step_in_which_its_turn_would_come_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a few clients that leave could end the work on large bodies for good."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        go_on = threading.Event()
        begun: list[int] = []

        def work(number: int) -> None:
            begun.append(number)
            assert go_on.wait(60)

        running = [
            asyncio.create_task(work_for("key", partial(work, n))) for n in range(MAX_THREADS_OF_A_KEY)
        ]
        await until(lambda: len(begun) == MAX_THREADS_OF_A_KEY)
        leaving = [asyncio.create_task(work_for("key", partial(work, -1))) for _ in range(_THREADS)]
        await asyncio.sleep(0)
        post = loop.call_soon_threadsafe

        def post_and_leave(callback: Callable[..., object], *args: Any, **more: Any) -> object:
            def call() -> None:
                callback(*args)
                for each in leaving:
                    each.cancel()

            return post(call, **more)

        monkeypatch.setattr(loop, "call_soon_threadsafe", post_and_leave)
        go_on.set()
        await asyncio.gather(*running)
        ended = await asyncio.gather(*leaving, return_exceptions=True)
        assert [type(each) for each in ended] == [asyncio.CancelledError] * _THREADS
        monkeypatch.undo()
        for n in range(_THREADS):
            await asyncio.wait_for(work_for("key", partial(work, n)), 60)

    asyncio.run(scenario())


def test_no_key_has_all_threads_and_each_has_its_turn() -> None:
    async def scenario() -> None:
        go_on = threading.Event()
        begun: list[str] = []

        def work(name: str) -> None:
            begun.append(name)
            if name.startswith("slow"):
                assert go_on.wait(60)

        slow = [asyncio.create_task(work_for("slow", partial(work, f"slow {n}"))) for n in range(6)]
        try:
            await until(lambda: len(begun) == MAX_THREADS_OF_A_KEY)
            for n in range(20):
                await work_for("other", partial(work, f"other {n}"))
            assert len([name for name in begun if name.startswith("slow")]) == MAX_THREADS_OF_A_KEY
        finally:
            go_on.set()
        await asyncio.gather(*slow)
        assert len(begun) == 26

    asyncio.run(scenario())


def test_keys_that_wait_take_turns() -> None:
    async def scenario() -> None:
        go_on = threading.Event()
        begun: list[str] = []

        def blocked() -> None:
            assert go_on.wait(60)

        blocking = [asyncio.create_task(work_for(f"key {n}", blocked)) for n in range(_THREADS)]
        await asyncio.sleep(0)
        waiting = [
            asyncio.create_task(work_for(key, partial(begun.append, key))) for key in ["a"] * 8 + ["b"] * 2
        ]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*blocking, *waiting)
        assert len(begun) == 10
        assert set(begun[:5]) == {"a", "b"}, "the second key does not wait for all of the first one"

    asyncio.run(scenario())


async def every_thread_is_free() -> None:
    """Each of them works at the same moment: a test that leaves endless work would keep its process running."""
    all_work = threading.Barrier(_THREADS)
    await asyncio.gather(*(work_for(f"free {n}", lambda: all_work.wait(60)) for n in range(_THREADS)))


_TRACED = """
import asyncio, faulthandler, sys
from wireglot.gateway.request.worker_thread import run_in_thread
faulthandler.dump_traceback_later(60, exit=True)

async def scenario():
    await run_in_thread(lambda: None)
    task = asyncio.create_task(run_in_thread(lambda: sum(n for n in range(10**9))))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.gather(*(run_in_thread(lambda: None) for _ in range(2)))

asyncio.run(scenario())
sys.settrace(lambda *_: None)
(lambda: None)()
"""


def test_no_flag_of_the_interpreter_stays_set_after_work_in_a_thread() -> None:
    """With it all Python code of the process is slower, and a traced call never ends (CPython 3.11)."""
    done = subprocess.run([sys.executable, "-c", _TRACED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _endless() -> None:
    while True:
        pass


def test_work_ends_although_the_exception_that_breaks_it_off_is_lost_in_a_finalizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python reports an exception of a finalizer, or of a callback of the garbage collector, and goes on."""
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    async def scenario() -> None:
        begun, over, ended = threading.Event(), threading.Event(), threading.Event()

        class Finalized:
            def __del__(self) -> None:
                begun.set()
                _endless()

        def work() -> None:
            try:
                Finalized()
                over.set()
                _endless()
            finally:
                ended.set()

        task = asyncio.create_task(work_for("a", work))
        await until(begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(over.is_set)
        await until(ended.is_set)
        await every_thread_is_free()

    asyncio.run(scenario())
    assert not reported


def test_work_ends_when_its_caller_leaves() -> None:
    async def scenario() -> None:
        tasks = [asyncio.create_task(work_for(f"key {n}", _endless)) for n in range(_THREADS)]
        for _ in range(3):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await every_thread_is_free()

    asyncio.run(scenario())


def test_work_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_thread, "MAX_WORK_SECONDS", 0.01)

    async def scenario() -> None:
        for _ in range(2 * _THREADS):
            with pytest.raises(RequestError, match="took more than") as refused:
                await run_in_thread(_endless)
            assert (refused.value.status, refused.value.final) == (413, True)
        monkeypatch.undo()
        await every_thread_is_free()

    asyncio.run(scenario())


def test_work_that_ends_while_it_is_broken_off_disturbs_no_other() -> None:
    """The exception comes at any place, also at the very end of the work."""

    async def scenario() -> None:
        for n in range(300):
            task = asyncio.create_task(work_for("leaving", partial(sum, range(n * 10))))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert await work_for("staying", lambda: "done") == "done"

    asyncio.run(scenario())


def test_work_is_not_broken_off_while_it_changes_what_others_use() -> None:
    """As seen from a module of the cache, which is left first."""
    source = "def change(steps):\n    for step in steps:\n        done.append(step)\n"
    shared: dict[str, Any] = {"__name__": "wireglot_core.cache.of_a_test", "done": []}
    exec(source, shared)

    async def scenario() -> None:
        left = threading.Event()
        go_on = threading.Event()

        def steps() -> Iterator[int]:
            yield 1
            begun.set()
            assert go_on.wait(60)
            yield from range(1000)

        def work() -> None:
            shared["change"](steps())
            left.set()
            _endless()

        begun = threading.Event()
        task = asyncio.create_task(work_for("a", work))
        await until(begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await until(left.is_set)
        assert len(shared["done"]) == 1001
        await every_thread_is_free()

    asyncio.run(scenario())


def test_work_that_enters_shared_code_while_it_is_looked_at_is_not_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = "def change(steps):\n    for step in steps:\n        done.append(step)\n"
    shared: dict[str, Any] = {"__name__": "wireglot_core.cache.of_a_test", "done": []}
    exec(source, shared)
    entering, entered, go_on, left = (threading.Event() for _ in range(4))
    begun = threading.Event()
    looks = worker_thread._changes_shared

    def slowly(frame: FrameType | None) -> bool:
        found = looks(frame)
        if not entered.is_set():
            entering.set()
            assert entered.wait(60)
        return found

    def steps() -> Iterator[int]:
        entered.set()
        assert go_on.wait(60)
        yield from range(1000)

    def work() -> None:
        begun.set()
        assert entering.wait(60)
        shared["change"](steps())
        left.set()
        _endless()

    async def scenario() -> None:
        task = asyncio.create_task(work_for("a", work))
        await until(begun.is_set)
        monkeypatch.setattr(worker_thread, "_changes_shared", slowly)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await until(left.is_set)
        assert len(shared["done"]) == 1000
        await every_thread_is_free()

    asyncio.run(scenario())


def test_work_is_broken_off_once_although_its_time_is_up_and_its_caller_leaves() -> None:
    """After the first time its thread may work for another."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        begun, raised, go_on = (threading.Event() for _ in range(3))
        result: list[object] = []

        def work() -> str:
            begun.set()
            try:
                _endless()
            except worker_thread._Abandoned:
                raised.set()
                assert go_on.wait(60)
            return "undisturbed"

        piece = worker_thread._Work(work, loop)
        thread = threading.Thread(target=lambda: result.append(piece.run()))
        thread.start()
        await until(begun.is_set)
        piece.abandon()
        await until(raised.is_set)
        piece.abandon()
        go_on.set()
        await asyncio.to_thread(thread.join)
        assert result == ["undisturbed"]

    asyncio.run(scenario())
