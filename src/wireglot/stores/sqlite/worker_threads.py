"""Threads that do the file's work, so that the event loop never waits for a disk.

Each thread has one connection. Jobs are plain functions of that connection; a caller's future is resolved on
the caller's own loop, and a cancelled caller changes nothing for the thread. After a bug in the thread's own
work its callers get StoreDown, the bug is reported, and the thread goes on with a new connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

import apsw
import msgspec

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.sqlite.file import (
    BUSY_SECONDS,
    Format,
    explain,
    is_damage,
    open_file,
    open_reader,
    open_reports,
)

T = TypeVar("T")

GATHER_SECONDS: Final = 0.002
"""Between two commits while many wait."""
BATCH_JOBS: Final = 256
"""Maximum jobs that share one commit."""


class WatchedConnection:
    """The connection of a thread: opened again if it broke, or if its file was replaced."""

    def __init__(
        self, path: Path, connect: Callable[[], apsw.Connection], first: apsw.Connection | None = None
    ) -> None:
        self.path = path
        self._connect = connect
        self._connection = first
        self._file: tuple[int, int] | None = _identity(path) if first is not None else None

    def get(self) -> apsw.Connection:
        try:
            file = _identity(self.path)
        except OSError as error:
            # A deleted file can still be written; everything would be lost with the process.
            raise StoreDown(
                f"{self.path}: has been removed or moved while in use; put it back, or restart"
            ) from error
        if self._connection is None or file != self._file:
            self.drop()
            try:
                self._connection = self._connect()
            except StoreUnusable as error:
                raise StoreDown(str(error)) from error
            self._file = file
        return self._connection

    def drop(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            # It is dropped because it is broken: an error while closing it adds nothing.
            with contextlib.suppress(apsw.Error):
                connection.close(True)


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


class _Job(msgspec.Struct, Generic[T], eq=False):
    work: Callable[[apsw.Connection], T]
    after: Callable[[], None] | None
    synced: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    result: T | None = None
    error: Exception | None = None


class WorkerThread:
    """Runs jobs one after the other, each separately: for reading."""

    def __init__(self, name: str, connection: WatchedConnection) -> None:
        self._connection = connection
        self._queue: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._closed = False
        self._ends = False
        self._thread = threading.Thread(target=self._run, name=f"wireglot-{name}", daemon=True)
        self._thread.start()

    async def do(
        self,
        work: Callable[[apsw.Connection], T],
        after: Callable[[], None] | None = None,
        *,
        synced: bool = True,
    ) -> T:
        """`after` is called in the thread when the work has been done, or has failed, whether a caller still
        waits for it or not, and before its result is returned. Not `synced`: it survives the process at once,
        and a power failure from the next synced write on."""
        if self._closed:
            raise StoreDown(f"{self._connection.path}: is closed")
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(work, after, synced, loop, loop.create_future())
        self._queue.put(job)
        return await job.future

    async def close(self) -> None:
        """Earlier jobs are still done."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        # A thread is not awaitable, and joining it would block the loop.
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        batch: list[_Job[Any]] = []
        while not self._ends:
            with self._guarded(batch):
                self._gather(batch)
                if batch:
                    self._serve(batch)
            for done in batch:
                if done.after is not None:
                    with self._guarded([done], is_done=True):
                        done.after()
            _deliver(batch)
            batch.clear()
        self._connection.drop()

    @contextlib.contextmanager
    def _guarded(self, batch: list[_Job[Any]], *, is_done: bool = False) -> Iterator[None]:
        """A bug here must not end the thread: the process would be without its store from then on.
        `is_done`: the result of these jobs stays."""
        try:
            yield
        except Exception as bug:  # reported on the loop of a caller, as its own bugs are
            if not is_done:
                for job in batch:
                    job.error = StoreDown(
                        f"{self._connection.path}: {type(bug).__name__} in its thread, a bug"
                    )
                    job.error.__cause__ = bug
                self._connection.drop()
            context = {"message": "a thread of the store failed and goes on", "exception": bug}
            for loop in {job.loop for job in batch}:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(loop.call_exception_handler, context)

    def _gather(self, batch: list[_Job[Any]]) -> None:
        """Wait for the jobs of the next batch."""
        self._add(batch, self._queue.get())

    def _add(self, batch: list[_Job[Any]], job: _Job[Any] | None) -> None:
        if job is None:
            self._ends = True
        else:
            batch.append(job)

    def _serve(self, batch: list[_Job[Any]]) -> None:
        for job in batch:
            if job.future.cancelled():
                continue
            try:
                job.result = job.work(self._connection.get())
            except Exception as error:  # passed to the caller of this work; the thread continues
                job.error = self._reported(error)

    def _reported(self, error: Exception) -> Exception:
        """The error for the caller: StoreDown if the file is at fault; our own bugs unchanged."""
        damaged = is_damage(error)
        if damaged or isinstance(error, apsw.IOError | apsw.CantOpenError):
            self._connection.drop()
        if damaged or isinstance(error, _OUTAGES):
            down = StoreDown(explain(error, self._connection.path))
            down.__cause__ = error
            return down
        return error


_OUTAGES: Final = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.ProtocolError,
    apsw.NoMemError,
)


class WriterThread(WorkerThread):
    """The only writer of the process. Calls at about the same time share one commit; none returns before it.
    An idle store commits at once; a busy one every few milliseconds."""

    def __init__(self, name: str, connection: WatchedConnection) -> None:
        self._crowded = False
        self._committed = 0.0
        super().__init__(name, connection)

    def _gather(self, batch: list[_Job[Any]]) -> None:
        super()._gather(batch)
        if self._crowded and self._queue.qsize() < BATCH_JOBS:
            rest = self._committed + GATHER_SECONDS - time.monotonic()
            if rest > 0:
                time.sleep(rest)
        with contextlib.suppress(Empty):
            while len(batch) < BATCH_JOBS and not self._ends:
                self._add(batch, self._queue.get_nowait())
        self._crowded = len(batch) > 1

    def _serve(self, batch: list[_Job[Any]]) -> None:
        try:
            self._commit(batch)
        except Exception as error:  # passed to the callers of the batch
            if len(batch) > 1 and isinstance(error, apsw.FullError):
                # One that does not fit into the remaining space must not make the others fail.
                for job in batch:
                    self._serve([job])
            else:
                for job in batch:
                    job.error = self._reported(error)
        self._committed = time.monotonic()

    def _commit(self, batch: list[_Job[Any]]) -> None:
        connection = self._connection.get()
        usual = None
        if not any(job.synced for job in batch):
            usual = connection.pragma("synchronous")
            connection.pragma("synchronous", "NORMAL")  # a commit to the WAL is not flushed
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in batch:
                self._step(connection, job)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            if usual is not None:
                connection.pragma("synchronous", usual)

    def _step(self, connection: apsw.Connection, job: _Job[Any]) -> None:
        if job.future.cancelled():
            return  # the caller was told that it has not happened
        job.error = None
        connection.execute("SAVEPOINT step")
        try:
            job.result = job.work(connection)
        except Exception as error:  # passed to the caller of this step
            # After some errors SQLite has rolled the whole transaction back: then no call has taken effect.
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO step")
            job.error = self._reported_in_step(error)
        connection.execute("RELEASE step")

    def _reported_in_step(self, error: Exception) -> Exception:
        if is_damage(error) or isinstance(error, apsw.IOError | apsw.CantOpenError):
            # The connection cannot be trusted with the others' commit.
            raise error
        return self._reported(error)


def _deliver(batch: list[_Job[Any]]) -> None:
    """One wake-up of each loop for all of its jobs."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in batch:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, jobs)
        except RuntimeError:
            # The loop has ended, and with it all callers.
            continue


def _settle(jobs: list[_Job[Any]]) -> None:
    """Runs on the caller's loop."""
    for job in jobs:
        if job.future.done():
            continue
        if isinstance(job.error, StopIteration):  # no future takes it, and the other jobs would wait for ever
            bug = RuntimeError("a job of the store raised StopIteration")
            bug.__cause__ = job.error
            job.future.set_exception(bug)
        elif job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


Clock = Callable[[], float]
"""Unix seconds."""


class Database:
    """A file with its threads: one that writes, one that reads, and one for reports that may take long."""

    def __init__(
        self, path: Path, form: Format, clock: Clock, busy: float, connection: apsw.Connection
    ) -> None:
        self.path = path
        self._clock = clock
        again = partial(open_file, path, form, busy=busy, create=False)
        self._writer = WriterThread("store-write", WatchedConnection(path, again, connection))
        reader = partial(open_reader, path, busy=busy)
        self._reader = WorkerThread("store-read", WatchedConnection(path, reader))
        reporter = partial(open_reports, path, busy=busy)
        self._reports = WorkerThread("store-report", WatchedConnection(path, reporter))
        self.write, self.read, self.report = self._writer.do, self._reader.do, self._reports.do

    @classmethod
    async def open(
        cls, path: str, form: Format, *, clock: Clock = time.time, busy: float = BUSY_SECONDS
    ) -> Database:
        """The file is created or migrated here, so that its problems are reported at the start."""
        file = Path(path).expanduser().absolute()
        connection = await asyncio.to_thread(open_file, file, form, busy=busy)
        return cls(file, form, clock, busy, connection)

    def now(self) -> int:
        return int(self._clock() * 1000)

    def now_exactly(self) -> float:
        return self._clock() * 1000

    async def close(self) -> None:
        # The writer last: the last connection of all cleans up.
        await self._reader.close()
        await self._reports.close()
        await self._writer.close()
