"""Rows of this process on their way to the fleet's store: gathered beside the requests, told many at once.

What finds no place while the store is slow or away is left out, and counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from wireglot.gateway.observe.log import Note
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.gateway.trace.fleet_entries import (
    ENTRIES_MOST,
    KEPT_SECONDS,
    ROWS,
    ROWS_AT_ONCE,
    RowsTold,
    packed,
    told_rows,
)
from wireglot.gateway.trace.rows import CALLER, ExchangeRows, Facts
from wireglot.stores.base import FleetLog, StoreDown
from wireglot.stores.seal import Sealer
from wireglot.traces.trace import Row

WAITING_MOST: Final = 2_000
_EVERY_SECONDS: Final = 0.5
_ENTRIES_AT_ONCE: Final = 10
"""Of one turn: whatever happens here, requests come first."""
_CALL_SECONDS: Final = 5.0
_BEAT_SECONDS: Final = 10.0
"""While exchanges run, the others hear of this process at least so often."""
_LAST_WORDS_SECONDS: Final = 1.0


class RowSender:
    def __init__(
        self,
        log: FleetLog,
        rows: ExchangeRows,
        sealer: Sealer,
        *,
        note: Note,
        told: Callable[[Row], Row],
        machine: str,
        worker: str,
        most: int = WAITING_MOST,
    ) -> None:
        """`told`: a row as others may see it."""
        self.dropped = 0
        """Rows that nobody else will hear of."""
        self.trouble = ""
        self._log = log
        self._rows = rows
        self._sealer = sealer
        self._told = told
        self._machine = machine
        self._worker = worker
        self._most = most
        self._over: deque[Facts] = deque()
        self._seen: dict[str, tuple[object, ...]] = {}
        self._spoke = 0.0
        self._guard = Guarded(note, "fleet: rows")
        self._task: asyncio.Task[None] | None = None
        rows.tell_over_to(self._take)

    def start(self) -> None:
        self._task = asyncio.create_task(self._guard.forever(self._tell, lambda: _EVERY_SECONDS))

    async def close(self) -> None:
        await stop(self._task)
        with suppress(StoreDown, TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self.turn()

    def forget(self, key: str) -> None:
        """What of a caller was not told yet."""
        self._over = deque(each for each in self._over if each[CALLER] != key)

    def _take(self, facts: Facts) -> None:
        if len(self._over) >= self._most:
            self._over.popleft()
            self.dropped += 1
        self._over.append(facts)

    async def _tell(self) -> None:
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                await self.turn()
            self.trouble = ""
        except StoreDown as down:
            self.trouble = str(down)
        except TimeoutError:
            self.trouble = f"the store does not answer within {_CALL_SECONDS:g} s"

    async def turn(self) -> None:
        """Tell what is new. Raises StoreDown."""
        running = self._rows.changed(self._seen)
        over = [self._over.popleft() for _ in range(min(len(self._over), ROWS_AT_ONCE * _ENTRIES_AT_ONCE))]
        is_due = bool(self._seen) and time.monotonic() - self._spoke > _BEAT_SECONDS
        if not running and not over and not is_due:
            return
        bodies = await asyncio.to_thread(self._entries, running, over)
        try:
            for body in bodies:
                await self._log.tell(ROWS, body, seconds=KEPT_SECONDS, most=ENTRIES_MOST)
        except BaseException:
            # Told again with the next turn: the same row twice is one row.
            for each in reversed(over):
                if len(self._over) < self._most:
                    self._over.appendleft(each)
                else:
                    self.dropped += 1
            for row in running:
                self._seen.pop(row.id, None)
            raise
        self._spoke = time.monotonic()

    def _entries(self, running: list[Row], over: list[Facts]) -> list[bytes]:
        """In a thread."""
        rows = [self._told(row) for row in (*running, *self._rows.formatted(over))]
        pages = [rows[at : at + ROWS_AT_ONCE] for at in range(0, len(rows), ROWS_AT_ONCE)] or [[]]
        return [packed(self._entry(page)) for page in pages]

    def _entry(self, rows: list[Row]) -> RowsTold:
        entry = told_rows(self._machine, self._worker, time.time(), rows, self._sealer)
        return msgspec.structs.replace(entry, dropped=self.dropped)
