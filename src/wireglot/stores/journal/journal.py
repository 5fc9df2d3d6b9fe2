"""The journal of usage: what a request writes of itself to the local disk, before any store is asked.

A row is in the kernel's hands when `append` returns, so it outlives the process; it is on the disk when
`synced` resolves, so it outlives the machine's power. One that somebody waits for may be given to `intend`:
what is intended in one turn of the loop is written at once. One sync is for everybody, and there is one at a
time. Rows are read behind, in order, and a file whose rows have all reached the store is used again. Files
are made ahead of need: a disk that fills up takes none of the room that was promised.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from pathlib import Path
from typing import Final

import msgspec

from wireglot.stores.journal.disk import DISK, Disk
from wireglot.stores.journal.files import Shelf
from wireglot.stores.journal.recent import RECENT_ROWS, Recent
from wireglot.stores.journal.segment import BEGIN, Segment, frame
from wireglot.stores.journal.sync import TIMING, Syncer, Timing, Wait, reason_of
from wireglot.stores.records import UsageRow

SEGMENT_BYTES: Final = 4 * 1024 * 1024
LIMIT_MIN_BYTES: Final = 64 * 1024
_SEGMENTS_MIN: Final = 4
_ROW_MAX_BYTES: Final = 4 * 1024
"""More than a row takes; what may stay empty at the end of a file."""
_READ_BYTES: Final = 256 * 1024


class JournalFull(Exception):
    """The row was not written: there is no room left, or the disk refuses it."""


class Position(msgspec.Struct, frozen=True):
    """The end of a batch of rows that were read."""

    segment: int
    offset: int


class Journal:
    """One process's own. All methods belong to one event loop."""

    def __init__(
        self,
        folder: Path | None,
        instance: str,
        *,
        limit: int,
        sync: bool = True,
        patient: bool = True,
        segment: int = SEGMENT_BYTES,
        recent: int = RECENT_ROWS,
        timing: Timing = TIMING,
        disk: Disk = DISK,
    ) -> None:
        """`folder` holds a directory for each process; None: files without a name, gone with the process.
        `limit` and `segment` are bytes, of all files and of one; `recent` rows are kept at hand. `patient`:
        a disk that does not answer is waited for, however long."""
        self.limit = limit = max(limit, LIMIT_MIN_BYTES)
        self.folder = folder
        self.damaged = 0
        """Places from which rows could not be read back."""
        size = min(segment, limit // _SEGMENTS_MIN)
        self._shelf = Shelf(folder / instance if folder is not None else None, size, limit // size, disk)
        self._numbers = 0
        self._written: deque[Segment] = deque()
        self._current: Segment | None = None
        self._read_at = BEGIN
        self._recent = Recent(recent)
        self._sequence = 0
        self._unwritten = bytearray()
        """The last rows, framed for the current file: written with the next, or at the loop's next turn."""
        self._doubtful = range(0)
        """Rows that were damaged before they were on the disk."""
        self._syncer = Syncer(self._shelf, sync=sync, mend=self._mend, is_well=self._put_soon, timing=timing)
        self._syncer.patient = patient

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._syncer.start()

    async def close(self) -> None:
        """What the store has not got stays on the disk for the next process; of what it has, nothing does."""
        with contextlib.suppress(OSError):
            self._put()
        await self._syncer.stop()
        self._syncer.settle(self._sequence)
        await asyncio.to_thread(self._shelf.leave, self._written, keep=self.pending > 0)

    @property
    def trouble(self) -> str:
        """Why nothing can be written, "" where it can."""
        return self._syncer.trouble

    # Writing.

    @property
    def room(self) -> int:
        """Bytes that can be written for sure."""
        return self._left + self._shelf.room(_ROW_MAX_BYTES)

    def takes(self, leave: int = 0) -> bool:
        """Whether another row can be written, and as many bytes after it."""
        leave += _ROW_MAX_BYTES
        return not self._syncer.trouble and (self._left >= leave or self.room >= leave)

    @property
    def _left(self) -> int:
        current = self._current
        return current.size - current.end - len(self._unwritten) if current is not None else 0

    @property
    def pending(self) -> int:
        """Bytes of rows that have not been marked as applied."""
        written = sum(segment.end - BEGIN for segment in self._written)
        return written - (self._read_at - BEGIN) + len(self._unwritten)

    @property
    def appended(self) -> int:
        """The sequence of the last row that is in the kernel's hands."""
        return self._syncer.appended

    def append(self, row: UsageRow, leave: int = 0) -> int:
        """Write a row, and tell its sequence. `leave` are bytes that must be left for rows promised earlier.
        Raises JournalFull."""
        at = self._frame(row, leave)
        segment, unwritten = self._current, self._unwritten
        assert segment is not None, "the row is framed for it"
        try:
            segment.put(unwritten)
        except OSError as problem:
            del unwritten[at:]
            raise self._failed(problem) from None
        unwritten.clear()
        self._sequence += 1
        self._syncer.appended = self._sequence
        if at and self._syncer.waiting:
            self._syncer.ask_sync()  # it took along what others wait for
        self._recent.add(row, segment.number, segment.end)
        return self._sequence

    def intend(self, row: UsageRow, leave: int = 0) -> int:
        """The same for a row that need not be written before `synced` resolves."""
        if not self._syncer.sync:
            return self.append(row, leave)
        if not self._frame(row, leave):
            self._loop.call_soon(self._put_soon)
        segment = self._current
        assert segment is not None, "the row is framed for it"
        self._recent.add(row, segment.number, segment.end + len(self._unwritten))
        self._sequence += 1
        return self._sequence

    def synced(self, sequence: int) -> Wait:
        """Resolves when the row is on the disk, or where it cannot be: see `holds`."""
        return self._syncer.wait_for(sequence)

    def sync_soon(self) -> None:
        """Somebody may come to wait for the last row."""
        if self._syncer.sync:
            self._syncer.ask_sync_for_one()

    def awaits_disk(self, sequence: int) -> bool:
        """Whether `synced` would not resolve at once."""
        syncer = self._syncer
        return syncer.covered < sequence and syncer.sync and not syncer.trouble

    def went_on(self, sequence: int) -> None:
        """Somebody did not wait for a disk that has failed."""
        syncer = self._syncer
        syncer.let_go += syncer.sync and syncer.covered < sequence

    @property
    def unsynced(self) -> int:
        """How many went on without the disk, whether they waited for it or not."""
        return self._syncer.let_go

    def holds(self, sequence: int) -> bool:
        """Whether the row is as safe as it is meant to be: on the disk, or without syncs in the kernel's
        hands."""
        syncer = self._syncer
        safe = syncer.covered if syncer.sync else syncer.appended
        return safe >= sequence and sequence not in self._doubtful

    def sync_later(self) -> None:
        """Nobody waits for the last row."""
        self._syncer.ask_later()

    def _frame(self, row: UsageRow, leave: int) -> int:
        """Add a row to those that are not written. How many bytes were there before it."""
        if self._syncer.trouble:
            raise JournalFull(self._syncer.trouble)
        if leave and not self.takes(leave):
            raise JournalFull("the journal is full")
        segment = self._current or self._roll()
        unwritten = self._unwritten
        at = len(unwritten)
        frame(row, unwritten, segment.salt)
        if len(unwritten) > segment.size - segment.end:
            del unwritten[at:]
            segment, at = self._roll(), 0
            frame(row, unwritten, segment.salt)
        return at

    def _put(self) -> None:
        """Write what is not written."""
        if self._unwritten:
            assert self._current is not None, "it was framed for it"
            self._current.put(self._unwritten)
            self._unwritten.clear()
            self._syncer.appended = self._sequence
            if self._syncer.waiting:
                self._syncer.ask_sync()

    def _put_soon(self) -> None:
        """At the end of the loop's turn. What fails is written later, with whatever comes then; who waits for
        it does not."""
        if self._unwritten and not self._syncer.trouble:
            try:
                self._put()
            except OSError as problem:
                self._failed(problem)
            else:
                self.sync_later()  # whoever waited may have gone

    def _roll(self) -> Segment:
        try:
            self._put()
            if not self._shelf.spares:
                self._shelf.make()  # rows came faster than the thread made files
            if not self._shelf.spares:
                raise JournalFull("the journal is full")
        except OSError as problem:
            raise JournalFull(reason_of(problem)) from None
        segment = self._shelf.spares.popleft()
        try:
            segment.begin(self._numbers + 1)
        except OSError as problem:
            self._shelf.spares.appendleft(segment)
            raise self._failed(problem) from None
        self._numbers += 1
        if self._current is not None and self._syncer.sync:
            self._syncer.rolled.append(self._current)
        self._current = self._syncer.current = segment
        self._written.append(segment)
        if self._shelf.lacks:
            self._syncer.ask()  # it makes another
        return segment

    def _failed(self, problem: OSError) -> JournalFull:
        syncer = self._syncer
        syncer.trouble = reason_of(problem)
        syncer.settle(self._sequence)
        syncer.ask()
        return JournalFull(syncer.trouble)

    # Reading behind.

    def read(self, limit: int) -> tuple[list[UsageRow], Position]:
        """The next rows that were not applied, the oldest first; none where all were."""
        self._put_soon()
        recent = self._recent
        while self._written:
            segment = self._written[0]
            if recent.whole:
                rows, behind = recent.first(limit, segment.number, segment.end)
            else:
                rows, behind = segment.rows(self._read_at, limit, _READ_BYTES)
            if rows:
                return rows, Position(segment.number, behind)
            # Its end, or a place that can no longer be read: nothing behind such a place can be trusted.
            self.damaged += self._read_at < segment.end
            if segment is self._current:
                self._read_at = segment.end
                recent.whole = recent.whole or not self._unwritten
                break
            self._free(segment)
        return [], Position(0, 0)

    def applied(self, position: Position) -> None:
        """The store has everything up to there."""
        segment = self._written[0]
        assert segment.number == position.segment
        self._read_at = position.offset
        self._recent.drop(position.segment, position.offset)
        if segment is not self._current and position.offset >= segment.end:
            self._free(segment)

    def _free(self, segment: Segment) -> None:
        self._written.popleft()
        self._read_at = BEGIN
        segment.forget()
        self._shelf.spares.append(segment)

    def _mend(self) -> bool:
        """After a sync that failed nobody knows what is on the disk, and another would not try again: the
        system takes what it could not write for written. Whether it is written once more."""
        try:
            intact = [segment.rewrite() for segment in self._written if segment.safe < segment.end]
        except OSError as problem:
            self._syncer.trouble = reason_of(problem)
            return False
        if not all(intact):
            self.damaged += intact.count(False)
            self._doubtful = range(self._syncer.covered + 1, self._syncer.appended + 1)
        return True
