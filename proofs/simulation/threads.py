"""Threads as greenlets: one runs at a time, and gives way only where a real one could wait."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

import greenlet  # type: ignore[import-untyped]  # it has none

from proofs.simulation.clock import CLOCK
from proofs.simulation.loop import SimLoop


class Threads:
    """Stands in for `threading` and `queue`. `failed` gets what a thread died of."""

    def __init__(self, loop: SimLoop, failed: Callable[[str], None]) -> None:
        self.loop = loop
        self.failed = failed
        self.main = greenlet.getcurrent()
        self.current: SimThread | None = None
        CLOCK.sleep = self.sleep
        self._jobs = 0

    # What `threading` has.

    def Thread(
        self, *_: Any, target: Callable[..., Any], name: str = "", args: tuple[Any, ...] = (), **__: Any
    ) -> SimThread:
        return SimThread(self, target, name, args)

    def Lock(self) -> SimLock:
        return SimLock(self)

    def RLock(self) -> SimLock:
        return SimLock(self, again=True)

    def Event(self) -> SimEvent:
        return SimEvent(self)

    def Condition(self) -> SimCondition:
        return SimCondition(self)

    def SimpleQueue(self) -> SimQueue:
        return SimQueue(self)

    def sleep(self, seconds: float) -> None:
        if self.current is None:
            CLOCK.now += seconds  # the loop itself sleeps, and everything with it
        else:
            self.current.park(seconds)

    def pass_time(self, seconds: float) -> None:
        """What a thread does takes time; on the loop, so does what the loop does."""
        self.sleep(seconds)

    def run(self, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """In a thread of an executor."""
        future: asyncio.Future[Any] = self.loop.create_future()
        self._jobs += 1

        def settle(result: Any, problem: BaseException | None) -> None:
            if future.done():
                return
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(result)

        def job() -> None:
            result, problem = None, None
            try:
                result = work(*args)
            except Exception as error:  # it belongs to the one who waits
                problem = error
            self.loop.call_soon_threadsafe(settle, result, problem)

        SimThread(self, job, f"executor-{self._jobs}", ()).start()
        return future

    def wait(self, waiting: list[SimThread], is_over: Callable[[], bool], timeout: float | None) -> bool:
        """Until it is over, or not: as long as a real thread, or the loop, would wait."""
        thread = self.current
        deadline = None if timeout is None else CLOCK.now + timeout
        if thread is None:
            return self.loop.block(is_over, deadline)
        if self.loop.chance.random() < 0.1:
            thread.park(self.loop.chance.random() * 0.001)  # it loses its turn just here
        while not is_over():
            left = None if deadline is None else deadline - CLOCK.now
            if left is not None and left <= 0:
                return False
            waiting.append(thread)
            thread.park(left)
            if thread in waiting:
                waiting.remove(thread)
        return True

    def wake(self, waiting: list[SimThread]) -> None:
        while waiting:
            waiting.pop(0).wake_soon()


class SimThread:
    def __init__(
        self, threads: Threads, target: Callable[..., Any], name: str, args: tuple[Any, ...]
    ) -> None:
        self._threads = threads
        self._target = target
        self._args = args
        self.name = name
        self._turn = 0
        self._ended = SimEvent(threads)
        self._greenlet: Any = None
        self._context = contextvars.copy_context()

    def start(self) -> None:
        self._greenlet = greenlet.greenlet(self._run, parent=self._threads.main)
        self._greenlet.gr_context = self._context.copy()
        self.wake_soon()

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def is_alive(self) -> bool:
        return self._greenlet is not None and not self._ended.is_set()

    def wake_soon(self) -> None:
        loop = self._threads.loop
        loop.at(
            CLOCK.now + loop.chance.random() ** 4 * 0.01,
            self._resume,
            self._turn,
            context=self._context.copy(),
            thread=True,
        )

    def park(self, seconds: float | None) -> None:
        """Called in the thread: let others run until it is woken, or for SECONDS."""
        if seconds is not None:
            self._threads.loop.at(
                CLOCK.now + seconds, self._resume, self._turn, context=self._context.copy(), thread=True
            )
        self._threads.main.switch()

    def _resume(self, turn: int) -> None:
        if turn != self._turn or self._ended.is_set():
            return  # woken before by something else
        self._turn += 1
        threads = self._threads
        threads.loop.trace.note(f"thread {self.name}")
        threads.current = self
        try:
            self._greenlet.switch()
        finally:
            threads.current = None

    def _run(self) -> None:
        try:
            self._target(*self._args)
        except Exception as problem:  # a thread that dies is a finding, not the simulator's end
            self._threads.failed(f"thread {self.name} died of {problem!r}")
        self._ended.set()


class SimLock:
    def __init__(self, threads: Threads, *, again: bool = False) -> None:
        self._threads = threads
        self._again = again
        self._depth = 0
        self._holder: SimThread | None = None
        self._waiting: list[SimThread] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        threads = self._threads
        if self._depth and self._again and self._holder is threads.current:
            self._depth += 1
            return True
        if self._depth:
            limit = None if timeout < 0 else timeout
            if not blocking or not threads.wait(self._waiting, lambda: not self._depth, limit):
                return False
        self._depth, self._holder = 1, threads.current
        return True

    def release(self) -> None:
        if not self._depth:
            raise RuntimeError("release unlocked lock")
        self._depth -= 1
        if not self._depth:
            self._threads.wake(self._waiting)

    def locked(self) -> bool:
        return self._depth > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimEvent:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._set = False
        self._waiting: list[SimThread] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._threads.wake(self._waiting)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._set or self._threads.wait(self._waiting, self.is_set, timeout)


class SimCondition:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = SimLock(threads, again=True)
        self._waiting: list[SimThread] = []
        self._notified = 0

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def notify_all(self) -> None:
        self._notified += 1
        self._threads.wake(self._waiting)

    def wait(self, timeout: float | None = None) -> bool:
        before = self._notified
        self._lock.release()
        told = self._threads.wait(self._waiting, lambda: self._notified != before, timeout)
        self._lock.acquire()
        return told


class SimQueue:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._items: deque[Any] = deque()
        self._waiting: list[SimThread] = []

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._threads.wake(self._waiting)

    def get(self) -> Any:
        self._threads.wait(self._waiting, lambda: bool(self._items), None)
        return self._items.popleft()

    def get_nowait(self) -> Any:
        if not self._items:
            raise Empty
        return self._items.popleft()

    def qsize(self) -> int:
        return len(self._items)
