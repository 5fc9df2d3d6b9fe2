"""The journal of usage: what a request writes of itself to the local disk, before any store is asked.

A row is in the kernel's hands when `append` returns, so it outlives the process; it is on the disk when
`synced` resolves, so it outlives the machine's power. One thread syncs for everybody. Rows are read behind,
in order, and a file whose rows have all reached the store is used again. Files are made ahead of need: a disk
that fills up takes none of the room that was promised.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Awaitable, Generator
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.stores.journal_files import Shelf
from wireglot.stores.journal_segment import BEGIN, Segment, frame, sync_file
from wireglot.stores.records import UsageRow

SEGMENT: Final = 4 * 1024 * 1024
LEAST: Final = 64 * 1024
_SEGMENTS_MIN: Final = 4
_ROW_MAX: Final = 4 * 1024
"""More than a row takes; what may stay empty at the end of a file."""
_GATHER: Final = 0.004
"""Seconds between two syncs while rows keep coming."""
_LATER: Final = 0.005
_AGAIN: Final = 1.0
"""Seconds until what failed is tried again."""
_READ: Final = 256 * 1024


class JournalFull(Exception):
    """The row was not written: there is no room left, or the disk refuses it."""


class Position(msgspec.Struct, frozen=True):
    """The end of a batch of rows that were read."""

    segment: int
    offset: int


class Journal:
    """One process's own. All methods belong to one event loop."""

    def __init__(
        self, folder: Path | None, instance: str, *, limit: int, sync: bool = True, segment: int = SEGMENT
    ) -> None:
        """`folder` holds a directory for each process; None: files without a name, gone with the process."""
        limit = max(limit, LEAST)
        self.folder = folder
        self.trouble = ""
        """Why nothing can be written, "" where it can."""
        self.damaged = 0
        """Places from which rows could not be read back."""
        self._sync = sync
        size = min(segment, limit // _SEGMENTS_MIN)
        self._shelf = Shelf(folder / instance if folder is not None else None, size, limit // size)
        self._numbers = 0
        self._written: deque[Segment] = deque()
        self._current: Segment | None = None
        self._read_at = BEGIN
        self._buffer = bytearray(512)
        # Between the loop and the thread that syncs: each is written by one of them only.
        self._appended = 0
        self._covered = 0
        self._rolled: deque[Segment] = deque()
        self._asked = False
        self._stopping = False
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread: threading.Thread | None = None
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._later: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._open)
        self._thread = threading.Thread(target=self._run, name="wireglot-journal", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """What the store has not got stays on the disk for the next process; of what it has, nothing does."""
        if self._later is not None:
            self._later.cancel()
        if self._thread is not None:
            self._stopping = True
            self._ask()
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        self._settle(self._appended)
        await asyncio.to_thread(self._shelf.leave, self._written, keep=self.pending > 0)

    # Writing.

    @property
    def room(self) -> int:
        """Bytes that can be written for sure."""
        left = self._current.size - self._current.end if self._current is not None else 0
        return left + self._shelf.room(_ROW_MAX)

    def takes(self, leave: int = 0) -> bool:
        """Whether another row can be written, and as many bytes after it."""
        return not self.trouble and self.room >= leave + _ROW_MAX

    @property
    def pending(self) -> int:
        """Bytes of rows that have not been marked as applied."""
        return sum(segment.end - BEGIN for segment in self._written) - (self._read_at - BEGIN)

    @property
    def appended(self) -> int:
        """The sequence of the last row."""
        return self._appended

    def append(self, row: UsageRow, leave: int = 0) -> int:
        """Write a row, and tell its sequence. `leave` are bytes that must be left for rows promised earlier.
        Raises JournalFull."""
        if self.trouble:
            raise JournalFull(self.trouble)
        if leave and not self.takes(leave):
            raise JournalFull("the journal is full")
        segment = self._current or self._roll()
        buffer = self._buffer
        frame(row, buffer, segment.salt)
        if len(buffer) > segment.size - segment.end:
            segment = self._roll()
            frame(row, buffer, segment.salt)
        try:
            segment.put(buffer)
        except OSError as problem:
            raise self._failed(problem) from None
        self._appended += 1
        return self._appended

    def synced(self, sequence: int) -> Awaitable[None]:
        """Resolves when the row is on the disk, or where it cannot be (`trouble` then says why)."""
        if self._sync:
            self._ask()
        return _Synced(self, sequence)

    def sync_later(self) -> None:
        """Nobody waits for the last row; it is synced with the next that is, or in a moment."""
        if self._sync and self._later is None:
            self._later = self._loop.call_later(_LATER, self._is_later)

    def _roll(self) -> Segment:
        try:
            if not self._shelf.spares:
                self._shelf.make()  # rows came faster than the thread made files
            if not self._shelf.spares:
                raise JournalFull("the journal is full")
        except OSError as problem:
            raise JournalFull(_words(problem)) from None
        segment = self._shelf.spares.popleft()
        try:
            segment.begin(self._numbers + 1)
        except OSError as problem:
            self._shelf.spares.appendleft(segment)
            raise self._failed(problem) from None
        self._numbers += 1
        if self._current is not None:
            self._rolled.append(self._current)
        self._current = segment
        self._written.append(segment)
        if self._shelf.lacks:
            self._ask()  # the thread makes another
        return segment

    def _failed(self, problem: OSError) -> JournalFull:
        self.trouble = _words(problem)
        self._ask()
        return JournalFull(self.trouble)

    # Reading behind.

    def read(self, limit: int) -> tuple[list[UsageRow], Position]:
        """The next rows that were not applied, the oldest first; none where all were."""
        while self._written:
            segment = self._written[0]
            rows, behind = segment.rows(self._read_at, limit, _READ)
            if rows:
                return rows, Position(segment.number, behind)
            # Its end, or a place that can no longer be read: nothing behind such a place can be trusted.
            self.damaged += self._read_at < segment.end
            if segment is self._current:
                self._read_at = segment.end
                break
            self._free(segment)
        return [], Position(0, 0)

    def applied(self, position: Position) -> None:
        """The store has everything up to there."""
        segment = self._written[0]
        assert segment.number == position.segment
        self._read_at = position.offset
        if segment is not self._current and position.offset >= segment.end:
            self._free(segment)

    def _free(self, segment: Segment) -> None:
        self._written.popleft()
        self._read_at = BEGIN
        segment.forget()
        self._shelf.spares.append(segment)

    # Syncing, and making files: a thread of its own.

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            with contextlib.suppress(RuntimeError):  # it was asked before, and has not looked yet
                self._wake.release()

    def _is_later(self) -> None:
        self._later = None
        self._ask()

    def _run(self) -> None:
        pause = 0.0
        last = 0.0
        while True:
            self._wake.acquire(True, pause)
            self._asked = False  # what is written from here on asks again
            stopping = self._stopping
            rest = last + _GATHER - time.monotonic()
            if rest > 0 and self._appended > self._covered and not stopping:
                time.sleep(rest)
            failed = False
            if self._sync and self._appended > self._covered:
                failed = not self._sync_all()
                last = time.monotonic()
            if stopping:
                return
            pause = _AGAIN if failed else self._prepare()

    def _sync_all(self) -> bool:
        target, current = self._appended, self._current
        try:
            while self._rolled:
                sync_file(self._rolled[0].fd)
                self._rolled.popleft()
            if current is not None:
                sync_file(current.fd)
        except OSError as problem:
            self.trouble = _words(problem)
            return False
        else:
            self._covered = target
            return True
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and everybody who waited with it
                self._loop.call_soon_threadsafe(self._settle, target)

    def _prepare(self) -> float:
        """See whether a disk that failed works again, and make one more file where there should be one.
        Seconds until there is more to do; -1: nothing before it is asked for."""
        try:
            self._shelf.enter()
            current = self._current
            if self.trouble and current is not None:
                current.touch()
                sync_file(current.fd)
        except OSError as problem:
            self.trouble = _words(problem)
            return _AGAIN
        lacking = self._shelf.lacks
        try:
            if lacking:
                self._shelf.make()
        except OSError as problem:
            self.trouble = "" if self._current is not None or self._shelf.spares else _words(problem)
            return _AGAIN
        self.trouble = ""
        return 0.0 if lacking else -1

    def _settle(self, target: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= target:
            _, future = waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _open(self) -> None:
        try:
            self._shelf.enter()
            self._shelf.make()
        except OSError as problem:
            self.trouble = _words(problem)


def _words(problem: OSError) -> str:
    return problem.strerror or str(problem)


class _Synced:
    __slots__ = ("_journal", "_sequence")

    def __init__(self, journal: Journal, sequence: int) -> None:
        self._journal = journal
        self._sequence = sequence

    def __await__(self) -> Generator[Any, None, None]:
        journal = self._journal
        if not journal._sync or journal.trouble or journal._covered >= self._sequence:
            return
        # One for each who waits: whoever goes away takes only its own along.
        future = journal._loop.create_future()
        journal._waiting.append((self._sequence, future))
        journal._ask()  # a sync that failed meanwhile is tried again
        yield from future
