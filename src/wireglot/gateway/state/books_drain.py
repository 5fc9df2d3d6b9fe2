"""From the journal into the store: in batches, in order, again and again while the store is down."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Final

from wireglot.gateway.state.books_rows import collapsed
from wireglot.stores import StoreDown
from wireglot.stores.base import Ledger
from wireglot.stores.journal import Journal
from wireglot.stores.journal_orphans import Orphan, orphans
from wireglot.stores.records import UsageRow

BATCH: Final = 500
_GATHER: Final = 0.25
"""Seconds for which rows are gathered: most requests are over by then, and are one row instead of two."""
_BACKOFF: Final = 0.5
_BACKOFF_MAX: Final = 5.0
_BEAT: Final = 10.0
_LOOKS: Final = 6
"""Beats between two looks for the journals of processes that have gone."""
_PATIENCE: Final = 2.0
"""Seconds that a start waits for such journals; they are read to their end in any case."""


class Drain:
    def __init__(self, journal: Journal, ledger: Ledger, instance: str, note: Any) -> None:
        self.behind = ""
        """Why the store does not get what the journal holds, "" where it does."""
        self.refused = 0
        """Rows that the store would not take."""
        self._journal = journal
        self._ledger = ledger
        self._instance = instance
        self._note = note
        self._due = asyncio.Event()
        self._turn = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        first = asyncio.create_task(self._guarded(self.adopt))
        self._tasks = [first, asyncio.create_task(self._run()), asyncio.create_task(self._pulse())]
        await asyncio.wait({first}, timeout=_PATIENCE)

    async def close(self, seconds: float) -> None:
        """Write what can be written in this time; the rest stays where the next process finds it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self.flush(seconds)

    def wake(self) -> None:
        """There is a row."""
        if not self._due.is_set():
            self._due.set()

    async def flush(self, seconds: float) -> bool:
        """Have the store take what there is, now. Whether it did, within this time."""
        try:
            async with asyncio.timeout(seconds):
                await self.empty()
        except TimeoutError:
            return False
        return True

    async def empty(self) -> None:
        async with self._turn:
            while True:
                rows, position = self._journal.read(BATCH)
                if not rows:
                    return
                await self._apply(collapsed(rows))
                self._journal.applied(position)

    async def adopt(self) -> None:
        """Read the journals of processes that have gone. What they had begun, nobody will complete."""
        folder = self._journal.folder
        if folder is None:
            return
        for orphan in await asyncio.to_thread(orphans, folder, self._instance):
            try:
                count, open_rows = await self._replay(orphan)
            except BaseException:
                orphan.release()  # another finds it, or we do when we look again
                raise
            await asyncio.to_thread(orphan.remove)
            self._note("info", "usage taken over", of=orphan.instance, rows=count, crashed=open_rows)

    async def _replay(self, orphan: Orphan) -> tuple[int, int]:
        count = 0
        files = orphan.rows()
        while (rows := await asyncio.to_thread(next, files, None)) is not None:
            for at in range(0, len(rows), BATCH):
                await self._apply(collapsed(rows[at : at + BATCH]))
            count += len(rows)
        return count, await self._ledger.close_open([orphan.instance], _now())

    async def _apply(self, rows: list[UsageRow]) -> None:
        """Until it is done."""
        wait = _BACKOFF
        while True:
            try:
                await self._ledger.apply(rows)
                break
            except StoreDown as down:
                self._tell(str(down))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _BACKOFF_MAX)
            except Exception as problem:  # one row that no store can take must not hold up all others
                if len(rows) == 1:
                    self.refused += 1
                    self._note("error", "usage refused", id=rows[0].id, type=type(problem).__name__)
                    break
                for row in rows:
                    await self._apply([row])
                break
        self._tell("")

    def _tell(self, behind: str) -> None:
        if behind and not self.behind:
            self._note("warn", "usage spooled", detail=behind)
        elif self.behind and not behind:
            self._note("info", "usage caught up")
        self.behind = behind

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(_GATHER)
            self._due.clear()
            await self._guarded(self.empty)

    async def _pulse(self) -> None:
        beats = 0
        while True:
            await self._guarded(self._beat)
            await asyncio.sleep(_BEAT)
            beats += 1
            if beats % _LOOKS == 0:
                await self._guarded(self.adopt)

    async def _beat(self) -> None:
        with contextlib.suppress(StoreDown):  # told where rows cannot be written
            await self._ledger.beat(self._instance, _now())

    async def _guarded(self, work: Any) -> None:
        try:
            await work()
        except (StoreDown, OSError) as problem:
            self._note("warn", "usage waits", detail=str(problem))
        except Exception as bug:  # whatever is wrong with one batch, the books go on
            self._note("error", "bug", type=type(bug).__name__, where="usage")


def _now() -> int:
    return int(time.time() * 1000)
