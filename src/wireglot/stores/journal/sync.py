"""Syncs a journal for all that wait: by the kernel itself if it can, else in a thread. The thread also
creates files ahead of need, and repairs what a failed sync may have lost."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from wireglot.stores.journal.disk import KernelSync
from wireglot.stores.journal.files import Segment, Shelf


class Timing(NamedTuple):
    """Times in seconds."""

    gather: float = 0.003
    """Between two syncs while many wait."""
    later: float = 0.075
    """How long a row without a waiting caller may be unsynced."""
    retry: float = 1.0
    """Until a failed operation is retried."""
    patience: float = 2.0
    """After this time, or up to twice that, no caller waits for a disk that does not answer."""
    sleep: Callable[[float], None] = time.sleep


TIMING: Final = Timing()

_CROWD: Final = 3
"""With this many waiting, a shared sync saves more than the gathering time costs each."""

_Mark = tuple[Segment, int, int]
"""A file, its number and its end when it was synced: by now it may be used again."""


class _Flight(NamedTuple):
    """A sync in progress: the last row that it covers, and the files, the current one last."""

    target: int
    marks: list[_Mark]


class Syncer:
    """Its public methods must be called on the loop."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        sync: bool,
        repair: Callable[[], bool],
        is_well: Callable[[], None],
        timing: Timing = TIMING,
    ) -> None:
        """`repair` writes again what a failed sync may have lost, `is_well` is called when a disk works
        again; both are called on the loop."""
        self.sync = sync
        self.trouble = ""
        """Why nothing can be written; "" if it can."""
        # Shared by the loop and the thread: each attribute is written by one of them only.
        self.current: Segment | None = None
        self.rolled: deque[Segment] = deque()
        self.appended = 0
        """The sequence number of the last row that the kernel has, and of the last one on disk."""
        self.covered = 0
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.patient = True
        """Whether callers wait until the disk has answered, without a limit."""
        self.let_go = 0
        """How many callers continued before their row was on disk."""
        self._kernel: KernelSync | None = None
        """If it exists, the thread does not sync. After a failure the thread syncs for good."""
        self._flight: _Flight | None = None
        """The sync that the kernel is running."""
        self._due = False
        """Another sync was requested."""
        self._expected = 0
        """Rows since the last sync began for which a caller may come to wait."""
        self._last = 0.0
        self._landed: asyncio.Future[None] | None = None
        self._shelf = shelf
        self._repair = repair
        self._is_well = is_well
        self._timing = timing
        self._later: asyncio.TimerHandle | None = None
        self._overdue: asyncio.TimerHandle | None = None
        self._asked = False
        self._stopping = False
        self._crowded = False
        self._unsure = False
        """A sync has failed: its data must be written again before the next."""
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._open)
        if self.sync:
            self._kernel = self._shelf.kernel_sync()
        if self._kernel is not None:
            self._loop.add_reader(self._kernel.descriptor, self._arrived)
        self._thread = threading.Thread(target=self._run, name="wireglot-journal", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Ends after a last sync."""
        for timer in (self._later, self._overdue):
            if timer is not None:
                timer.cancel()
        if self._flight is not None:
            self._landed = self._loop.create_future()
            await self._landed
        self._leave_kernel()
        if self._thread is not None:
            self._stopping = True
            self.ask()
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    def ask(self) -> None:
        """Wake the thread."""
        if not self._asked:
            self._asked = True
            with contextlib.suppress(RuntimeError):  # it was woken already, and has not checked yet
                self._wake.release()

    def ask_sync(self, expected: int = 0) -> None:
        """There are rows with waiting callers, or this many more for which callers may come to wait."""
        self._expected += expected
        if not self.sync:
            return
        if self._kernel is None:
            self.ask()
        elif not self._due:
            self._due = True
            if self._flight is None:
                # Requests of the same turn share it.
                self._loop.call_soon(self._submit)

    def ask_later(self) -> None:
        """There is a row without a waiting caller; it is synced with the next one that has one, or soon."""
        if self.sync and self._later is None:
            self._later = self._loop.call_later(self._timing.later, self._is_later)

    def wait_for(self, sequence: int) -> Wait:
        """Resolves when the row is on disk, or cannot be."""
        if not self.sync or self.trouble or self.covered >= sequence:
            return _AT_ONCE
        # One for each caller: cancelling one must not affect others.
        future = self._loop.create_future()
        self.waiting.append((sequence, future))
        if self.appended >= sequence and (self._flight is None or self._flight.target < sequence):
            self.ask_sync()
        if self._overdue is None and not self.patient:
            self._watch()
        return future

    def settle(self, target: int, marks: Sequence[_Mark] = ()) -> None:
        for segment, number, end in marks:
            if segment.number == number:
                segment.safe = end
        waiting = self.waiting
        for _ in range(len(waiting)):  # calls may not begin to wait in the order of their rows
            sequence, future = waiting.popleft()
            if sequence > target:
                waiting.append((sequence, future))
            elif not future.done():
                self.let_go += sequence > self.covered
                future.set_result(None)

    def _is_later(self) -> None:
        self._later = None
        self.ask_sync()

    def _watch(self) -> None:
        """One timer for all that wait now: those that still wait when it fires continue."""
        last, _ = max(self.waiting, key=itemgetter(0))
        self._overdue = self._loop.call_later(self._timing.patience, self._is_overdue, last)

    def _is_overdue(self, last: int) -> None:
        self._overdue = None
        if self.waiting:
            self.settle(last)
        if self.waiting:
            self._watch()

    def _repair_on_loop(self) -> None:
        if self._repair():
            self._unsure = False
            self.ask()

    # Syncs by the kernel.

    def _submit(self) -> None:
        kernel, current = self._kernel, self.current
        if kernel is None or self._flight is not None:
            return
        if self.appended <= self.covered or current is None:
            self._due = False
            return
        if self._unsure:
            self._leave_kernel()
            return
        if self._crowded:
            rest = self._last + self._timing.gather - self._loop.time()
            if rest > 0:
                self._loop.call_later(rest, self._submit)
                return
        files: list[int] = []
        marks: list[_Mark] = []
        for segment in (*self.rolled, current):
            files.append(segment.fd)
            marks.append((segment, segment.number, segment.end))
        try:
            kernel.submit(files)
        except OSError:
            self._leave_kernel()
            return
        self._flight = _Flight(self.appended, marks)
        self._crowded = max(self._expected, len(self.waiting)) >= _CROWD
        self._expected = 0
        self._due = False

    def _arrived(self) -> None:
        """A sync may have finished."""
        kernel, flight = self._kernel, self._flight
        assert kernel is not None
        try:
            problem = kernel.collect()
        except OSError as fault:  # its result is unknown
            problem = fault.errno or errno.EIO
        if problem is None or flight is None:
            return
        self._flight = None
        self._last = self._loop.time()
        if problem:
            self.trouble = os.strerror(problem)
            self._unsure = True
            self.settle(flight.target)
            self._leave_kernel()
        else:
            for _ in flight.marks[:-1]:
                self.rolled.popleft()
            self.covered = flight.target
            self.settle(flight.target, flight.marks)
            if self._due and self._landed is None:  # the last one is the thread's
                self._submit()
        if self._landed is not None:
            self._landed.set_result(None)

    def _leave_kernel(self) -> None:
        """From here on the thread syncs."""
        kernel, self._kernel = self._kernel, None
        if kernel is not None:
            self._loop.remove_reader(kernel.descriptor)
            self.ask()
            kernel.close()

    # The thread.

    def _open(self) -> None:
        try:
            self._shelf.enter()
            self._shelf.make()
        except OSError as problem:
            self.trouble = reason_of(problem)

    def _run(self) -> None:
        pause = 0.0
        last = 0.0
        while True:
            self._wake.acquire(True, pause)
            self._asked = False  # rows written from here on wake it again
            stopping = self._stopping
            if self._crowded and self._kernel is None and self.appended > self.covered and not stopping:
                rest = last + self._timing.gather - time.monotonic()
                if rest > 0:
                    self._timing.sleep(rest)
            failed = False
            if self.sync and self._kernel is None and self.appended > self.covered:
                failed = not self._sync_all()
                last = time.monotonic()
            if stopping:
                return
            pause = self._timing.retry if failed else self._prepare()

    def _sync_all(self) -> bool:
        if self._unsure:
            self._tell_loop(self._repair_on_loop)
            return False
        target, current = self.appended, self.current
        self._crowded = len(self.waiting) >= _CROWD
        marks: list[_Mark] = []
        try:
            while self.rolled:
                marks.append(_synced(self.rolled[0]))
                self.rolled.popleft()
            if current is not None:
                marks.append(_synced(current))
        except OSError as problem:
            self.trouble = reason_of(problem)
            self._unsure = True
            return False
        else:
            self.covered = target
            return True
        finally:
            self._tell_loop(self.settle, target, marks)

    def _prepare(self) -> float:
        """Check whether a failed disk works again, and create a file if one is needed. Returns the seconds
        until there is more to do; -1: nothing before the next request."""
        try:
            self._shelf.enter()
            current = self.current
            if self.trouble and current is not None:
                current.touch()
                current.sync()
        except OSError as problem:
            self.trouble = reason_of(problem)
            self._unsure = True
            return self._timing.retry
        lacking = self._shelf.lacks
        try:
            if lacking:
                self._shelf.make()
        except OSError as problem:
            if self.current is None and not self._shelf.spares:
                self.trouble = reason_of(problem)
            else:
                self._no_trouble()
            return self._timing.retry
        self._no_trouble()
        return 0.0 if lacking else -1

    def _no_trouble(self) -> None:
        if self.trouble:
            self.trouble = ""
            self._tell_loop(self._is_well)

    def _tell_loop(self, work: Callable[..., None], *given: Any) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended, and all callers with it
            self._loop.call_soon_threadsafe(work, *given)


def reason_of(problem: OSError) -> str:
    return problem.strerror or str(problem)


def _synced(segment: Segment) -> _Mark:
    mark = (segment, segment.number, segment.end)
    segment.sync()
    return mark


class AtOnce:
    """A wait that is already over."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()

    def done(self) -> bool:
        return True

    def cancelled(self) -> bool:
        return False


Wait = asyncio.Future[None] | AtOnce

_AT_ONCE: Final = AtOnce()
