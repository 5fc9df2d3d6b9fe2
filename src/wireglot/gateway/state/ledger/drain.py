"""Copies rows from the journal into the store: in batches, in order, with retries while the store is down."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from wireglot.gateway.observe.log import Note
from wireglot.gateway.state.stored_forms import now_ms
from wireglot.gateway.state.tasks import PAUSE_SECONDS, Guarded, stop
from wireglot.stores import StoreDown
from wireglot.stores.base import Ledger
from wireglot.stores.journal.files import Orphan, orphans
from wireglot.stores.journal.journal import Journal
from wireglot.stores.records import UsageRow

BATCH_ROWS: Final = 500
# Requests in the usage ledger that are checked later because it is unknown how they ended.
_SUSPECTS_MAX: Final = 1000
_BEATS_PER_ADOPTION: Final = 6
"""Journals of ended processes are looked for every this many heartbeats."""


class DrainPace(NamedTuple):
    """Intervals in seconds."""

    gather: float = 0.25
    """How long rows are gathered: most requests end within this time, and are written as one row instead of
    two."""
    retry: float = 0.5
    """The first delay after which a store that is down is tried again; doubled each time, up to
    `retry_max`."""
    retry_max: float = 5.0
    beat: float = 10.0
    """Between two heartbeats of this process."""
    adoption: float = 2.0
    """How long a start waits for the journals of ended processes; they are read to their end anyway."""
    close: float = 2.0
    """How long the store may take to accept the last rows when the process ends."""


PACE: Final = DrainPace()


class Drain:
    def __init__(
        self, journal: Journal, ledger: Ledger, instance: str, note: Note, *, pace: DrainPace = PACE
    ) -> None:
        self.behind = ""
        """Why the store is behind the journal; "" if it is not."""
        self.refused = 0
        """Rows that the store refused."""
        self._journal = journal
        self._ledger = ledger
        self._instance = instance
        self._note = note
        self._pace = pace
        self.due = asyncio.Event()
        """Set when there is a row."""
        self._asked = asyncio.Event()
        """Set when a caller waits until the rows are in the store: they are written at once, not at the next
        interval."""
        self._turn = asyncio.Lock()
        self._retry_in = pace.retry
        self._passed = 0
        self._suspects: dict[str, int] = {}
        """Rows that failed while no other one passed, each with how many had passed before it."""
        self._emptying = Guarded(note, "usage")
        self._adopting = Guarded(note, "usage")
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        first = asyncio.create_task(self._adopt())
        self._tasks = [
            first,
            asyncio.create_task(self._keep_emptying()),
            asyncio.create_task(self._adopt_again()),
            asyncio.create_task(self._pulse()),
        ]
        await asyncio.wait({first}, timeout=self._pace.adoption)

    async def close(self) -> None:
        """Write what can be written quickly; the rest stays in the journal for the next process."""
        await stop(*self._tasks)
        self._tasks = []
        await self.flush(self._pace.close)

    async def flush(self, seconds: float) -> bool:
        """Have the store accept all present rows now. Returns whether it did within this time."""
        self._asked.set()
        try:
            async with asyncio.timeout(seconds):
                await self.empty()
        except TimeoutError:
            return False
        return True

    async def empty(self, *, gathered: bool = False) -> None:
        """Have the store accept all present rows. `gathered`: rows that come meanwhile are gathered first.
        With constant requests there are always some, and a commit for every few rows costs more than the rows
        themselves.
        """
        journal = self._journal
        async with self._turn:
            while True:
                rows, position = journal.read(BATCH_ROWS)
                # Rows that could not be written are read again later, and there may be more of them by then.
                if rows and await self._applied(collapsed(rows)):
                    journal.applied(position)
                if not rows or (gathered and len(rows) < BATCH_ROWS):
                    break
            if gathered and journal.pending:
                self.due.set()

    async def adopt(self) -> None:
        """Read the journals of ended processes. The requests that those had begun will not be completed."""
        folder = self._journal.folder
        if folder is None:
            return
        found = deque(await asyncio.to_thread(orphans, folder, self._instance))
        try:
            while found:
                # A journal that fails is left to another process or to the next attempt; it does not keep
                # others from being read.
                await self._adopting.run(partial(self._or_tell, partial(self._take_over, found[0])))
                found.popleft().release()
        finally:
            for orphan in found:
                orphan.release()

    async def _take_over(self, orphan: Orphan) -> None:
        count, open_rows = await self._replay(orphan)
        await asyncio.to_thread(orphan.remove)
        self._note("info", "usage taken over", of=orphan.instance, rows=count, crashed=open_rows)

    async def _replay(self, orphan: Orphan) -> tuple[int, int]:
        count = 0
        files = orphan.rows()
        while (rows := await asyncio.to_thread(next, files, None)) is not None:
            for at in range(0, len(rows), BATCH_ROWS):
                if not await self._applied(collapsed(rows[at : at + BATCH_ROWS])):
                    raise StoreDown(self.behind)
            count += len(rows)
        return count, await self._ledger.close_open([orphan.instance], now_ms())

    async def _applied(self, rows: list[UsageRow]) -> bool:
        """Whether the store has the rows, or never will. Waits while the store is down; after an unforeseen
        error it returns False, with a delay."""
        while True:
            self._asked.clear()
            failure = ""
            try:
                try:
                    await self._ledger.apply(rows)
                    self._passed += len(rows)
                except StoreDown:
                    raise
                except Exception as problem:  # a driver may raise anything for a bad row: find out which one
                    failure = await self._sort_out(rows, problem)
            except StoreDown as down:
                self._tell(str(down))
                await self._pause()
                continue
            if failure or self.behind:
                self._tell(failure)
            if failure:
                await self._pause()
            else:
                self._retry_in = self._pace.retry
            return not failure

    async def _sort_out(self, rows: list[UsageRow], problem: Exception) -> str:
        """Write all rows but those that no store can accept. Returns the problem if no row can be written."""
        bad = [(rows[0], problem)] if len(rows) == 1 else await self._try_each(rows)
        if len(bad) == len(rows) and not all(self._passed_since(row) for row, _ in bad):
            # An error that affects every row is caused by the store or by us, and will be fixed: no reason to
            # drop the rows.
            return f"no usage can be written ({type(bad[0][1]).__name__})"
        for row, error in bad:
            self.refused += 1
            self._suspects.pop(row.id, None)
            self._note("error", "usage refused", id=row.id, type=type(error).__name__)
        return ""

    async def _try_each(self, rows: list[UsageRow]) -> list[tuple[UsageRow, Exception]]:
        """The rows that fail when written alone: a row that no store can accept must not block all others."""
        bad: list[tuple[UsageRow, Exception]] = []
        for row in rows:
            try:
                await self._ledger.apply([row])
                self._passed += 1
            except StoreDown:
                raise
            except Exception as problem:  # a row that no store can accept must not block others
                bad.append((row, problem))
        return bad

    def _passed_since(self, row: UsageRow) -> bool:
        """Whether other rows have passed since this one first failed: then the row is at fault."""
        if len(self._suspects) >= _SUSPECTS_MAX:
            self._suspects.clear()
        return self._suspects.setdefault(row.id, self._passed) < self._passed

    async def _pause(self) -> None:
        wait, self._retry_in = self._retry_in, min(2 * self._retry_in, self._pace.retry_max)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._asked.wait()

    def _tell(self, behind: str) -> None:
        if behind and not self.behind:
            self._note("warn", "usage spooled", detail=behind)
        elif self.behind and not behind:
            self._note("info", "usage caught up")
        self.behind = behind

    async def _keep_emptying(self) -> None:
        while True:
            await self.due.wait()
            await asyncio.sleep(self._pace.gather)
            self.due.clear()
            try:
                await self.empty(gathered=True)
            except (StoreDown, OSError) as problem:
                self._note("warn", "usage waits", detail=str(problem))
            except Exception as bug:  # background work: a bug in it is reported, and it continues
                self._emptying.failed(bug)
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                self._emptying.last_bug = ""

    async def _adopt(self) -> None:
        await self._adopting.run(partial(self._or_tell, self.adopt))

    async def _adopt_again(self) -> None:
        await self._adopting.forever(
            partial(self._or_tell, self.adopt), lambda: _BEATS_PER_ADOPTION * self._pace.beat
        )

    async def _pulse(self) -> None:
        guard = Guarded(self._note, "usage")
        await guard.run(self._beat)
        await guard.forever(self._beat, lambda: self._pace.beat)

    async def _beat(self) -> None:
        with contextlib.suppress(StoreDown):  # reported by the code that writes rows
            await self._ledger.beat(self._instance)

    async def _or_tell(self, work: Callable[[], Awaitable[None]]) -> None:
        """Waits for a store or disk that fails now."""
        try:
            await work()
        except (StoreDown, OSError) as problem:
            self._note("warn", "usage waits", detail=str(problem))


def collapsed(rows: list[UsageRow]) -> list[UsageRow]:
    """One row per request: its completion, if that is among them."""
    merged: dict[str, UsageRow] = {}
    for row in rows:
        if row.outcome or row.id not in merged:
            merged[row.id] = row
    return list(merged.values())
