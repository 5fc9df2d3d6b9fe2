"""The journal of usage: rows that a request writes to the local disk, before any call to a store.

When `append` returns, the kernel has the row, so it survives the process; when `synced` resolves, it is on
disk, so it survives a power failure. Rows with a waiting caller may be gathered: they are written at once at
the end of the loop's turn. One sync is shared by all, and only one runs at a time. Rows are read later, in
order, and a file whose rows have all reached the store is used again. Files are created ahead of need: a disk
that fills up does not take the reserved space.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from wireglot.stores.journal.disk import DISK, Disk
from wireglot.stores.journal.files import BEGIN, Segment, Shelf, frame
from wireglot.stores.journal.sync import TIMING, Syncer, Timing, Wait, reason_of
from wireglot.stores.records import UsageRow

SEGMENT_BYTES: Final = 4 * 1024 * 1024
LIMIT_MIN_BYTES: Final = 64 * 1024
_SEGMENTS_MIN: Final = 4
_ROW_MAX_BYTES: Final = 4 * 1024
"""Bytes of one row of a journal, and of the space that may stay unused at the end of a file."""
_READ_BYTES: Final = 256 * 1024
RECENT_ROWS: Final = 4096


class JournalFull(Exception):
    """The row was not written: there is no space left, or the disk refuses it."""


class Position(msgspec.Struct, frozen=True):
    """The end of a batch of rows that were read."""

    segment: int
    offset: int


class Journal:
    """The journal of one process. All methods belong to one event loop."""

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
        """`folder` holds a directory for each process; None: files without a name, which end with the
        process. `limit` and `segment` are bytes, of all files and of one; `recent` rows are kept in memory.
        `patient`: wait for a disk that does not answer without a limit."""
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
        self._recent: deque[tuple[UsageRow, int, int]] = deque()
        """The last rows, each with the number of its file and the offset after it: while the store keeps up,
        none is read back from its file."""
        self._recent_max = recent
        self._recalls_all = True
        """Whether these are all that were not applied. Otherwise there are none: they had become too many."""
        self._sequence = 0
        self._unwritten = bytearray()
        """The last rows, framed for the current file: written with the next one, or at the loop's next
        turn."""
        self._doubtful = range(0)
        """Rows that were damaged before they were on disk."""
        self.syncer = Syncer(
            self._shelf, sync=sync, repair=self._repair, is_well=self._put_soon, timing=timing
        )
        self.syncer.patient = patient

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.syncer.start()

    async def close(self) -> None:
        """Rows that the store does not have stay on disk for the next process; the others are removed."""
        with contextlib.suppress(OSError):
            self._put()
        await self.syncer.stop()
        self.syncer.settle(self._sequence)
        await asyncio.to_thread(self._shelf.leave, self._written, keep=self.pending > 0)

    @property
    def trouble(self) -> str:
        """Why nothing can be written; "" if it can."""
        return self.syncer.trouble

    # Writing.

    @property
    def room(self) -> int:
        """Bytes that can certainly be written."""
        return self._left + self._shelf.room(_ROW_MAX_BYTES)

    def takes(self, leave: int = 0) -> bool:
        """Whether another row can be written, and this many bytes after it."""
        leave += _ROW_MAX_BYTES
        return not self.syncer.trouble and (self._left >= leave or self.room >= leave)

    @property
    def _left(self) -> int:
        current = self._current
        return current.size - current.end - len(self._unwritten) if current is not None else 0

    @property
    def pending(self) -> int:
        """Bytes of rows that have not been marked as applied."""
        pending = len(self._unwritten) - (self._read_at - BEGIN)
        for segment in self._written:
            pending += segment.end - BEGIN
        return pending

    @property
    def appended(self) -> int:
        """The sequence number of the last row that the kernel has."""
        return self.syncer.appended

    def append(self, row: UsageRow, leave: int = 0, *, gather: bool = False) -> int:
        """Write a row and return its sequence number. `leave`: bytes reserved for rows promised earlier.
        `gather`: it need not be written before `synced` resolves. Raises JournalFull."""
        syncer, segment, unwritten = self.syncer, self._current, self._unwritten
        if syncer.trouble:
            raise JournalFull(syncer.trouble)
        at = len(unwritten)
        if leave and not self.takes(leave):
            raise JournalFull("the journal is full")
        if segment is None:
            segment = self._roll()
        try:
            frame(row, unwritten, segment.salt)
        except UnicodeEncodeError:
            row = legible(row)
            frame(row, unwritten, segment.salt)
        if len(unwritten) > segment.size - segment.end:
            del unwritten[at:]
            segment, at = self._roll(), 0
            frame(row, unwritten, segment.salt)
        if gather and syncer.sync:
            if not at:
                self._loop.call_soon(self._put_soon)
        else:
            try:
                segment.put(unwritten)
            except OSError as problem:
                del unwritten[at:]
                raise self._failed(problem) from None
            unwritten.clear()
            syncer.appended = self._sequence + 1
            if at and syncer.waiting:
                syncer.ask_sync()  # it included rows that others wait for
        self._sequence += 1
        if self._recalls_all:
            self._recent.append((row, segment.number, segment.end + len(unwritten)))
            if len(self._recent) > self._recent_max:
                self._recalls_all = False
                self._recent.clear()
        return self._sequence

    def synced(self, sequence: int) -> Wait:
        """Resolves when the row is on disk, or if that fails: see `holds`."""
        return self.syncer.wait_for(sequence)

    def awaits_disk(self, sequence: int) -> bool:
        """Whether `synced` would not resolve at once."""
        syncer = self.syncer
        return syncer.covered < sequence and syncer.sync and not syncer.trouble

    def went_on(self, sequence: int) -> None:
        """A caller did not wait for a disk that has failed."""
        syncer = self.syncer
        syncer.let_go += syncer.sync and syncer.covered < sequence

    @property
    def unsynced(self) -> int:
        """How many callers continued without the disk, whether they waited for it or not."""
        return self.syncer.let_go

    def holds(self, sequence: int) -> bool:
        """Whether the row is as safe as configured: on disk, or without syncs in the kernel."""
        syncer = self.syncer
        safe = syncer.covered if syncer.sync else syncer.appended
        return safe >= sequence and sequence not in self._doubtful

    def _put(self) -> None:
        """Write the rows that are not written yet."""
        if self._unwritten:
            assert self._current is not None, "it was framed for it"
            self._current.put(self._unwritten)
            self._unwritten.clear()
            self.syncer.appended = self._sequence
            if self.syncer.waiting:
                self.syncer.ask_sync()

    def _put_soon(self) -> None:
        """Called at the end of the loop's turn. A failed write is repeated with the next rows; callers that
        wait for it are released."""
        if self._unwritten and not self.syncer.trouble:
            try:
                self._put()
            except OSError as problem:
                self._failed(problem)
            else:
                self.syncer.ask_later()  # those that waited may have left

    def _roll(self) -> Segment:
        try:
            self._put()
            if not self._shelf.spares:
                self._shelf.make()  # rows came faster than the thread created files
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
        if self._current is not None and self.syncer.sync:
            self.syncer.rolled.append(self._current)
        self._current = self.syncer.current = segment
        self._written.append(segment)
        if self._shelf.lacks:
            self.syncer.ask()  # it creates another
        return segment

    def _failed(self, problem: OSError) -> JournalFull:
        syncer = self.syncer
        syncer.trouble = reason_of(problem)
        syncer.settle(self._sequence)
        syncer.ask()
        return JournalFull(syncer.trouble)

    # Reading.

    def read(self, limit: int) -> tuple[list[UsageRow], Position]:
        """The next rows that were not applied, the oldest first; none if all were."""
        if self._unwritten:
            self._put_soon()
        while self._written:
            segment = self._written[0]
            rows: list[UsageRow] = []
            behind = 0
            if self._recalls_all:
                for row, number, after in islice(self._recent, limit):
                    if number != segment.number or after > segment.end:
                        break
                    rows.append(row)
                    behind = after
            else:
                rows, behind = segment.rows(self._read_at, limit, _READ_BYTES)
            if rows:
                return rows, Position(segment.number, behind)
            # Its end, or a place that can no longer be read: nothing after such a place can be trusted.
            self.damaged += self._read_at < segment.end
            if segment is self._current:
                self._read_at = segment.end
                self._recalls_all = self._recalls_all or not self._unwritten
                break
            self._free(segment)
        return [], Position(0, 0)

    def applied(self, position: Position) -> None:
        """The store has everything up to there."""
        segment = self._written[0]
        assert segment.number == position.segment
        self._read_at = position.offset
        recent = self._recent
        while recent and (recent[0][1], recent[0][2]) <= (position.segment, position.offset):
            recent.popleft()
        if position.offset < segment.end:
            return
        if segment is not self._current:
            self._free(segment)
        elif not self._unwritten:
            self._recalls_all = True

    def _free(self, segment: Segment) -> None:
        self._written.popleft()
        self._read_at = BEGIN
        segment.forget()
        self._shelf.spares.append(segment)

    def _repair(self) -> bool:
        """After a failed sync it is unknown what is on disk, and another sync would not try again: the system
        considers what it could not write as written. Returns whether it was written again."""
        try:
            intact = [segment.rewrite() for segment in self._written if segment.safe < segment.end]
        except OSError as problem:
            self.syncer.trouble = reason_of(problem)
            return False
        if not all(intact):
            self.damaged += intact.count(False)
            self._doubtful = range(self.syncer.covered + 1, self.syncer.appended + 1)
        return True


def legible(row: UsageRow) -> UsageRow:
    """The row with lone surrogates, which a client's text may contain, replaced by characters that can be
    written."""
    changed = {
        name: value.encode("utf-8", "replace").decode()
        for name in ("caller", "session", "model", "upstream_model")
        if not (value := getattr(row, name)).isascii()
    }
    return msgspec.structs.replace(row, **changed)
