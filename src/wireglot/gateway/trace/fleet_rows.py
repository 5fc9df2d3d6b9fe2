"""Rows of all machines of the fleet, read from its store as far as somebody looks, and held in memory.

Nothing is read while nobody looks. While the store is away, what was read before is still shown.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from wireglot.gateway.trace.fleet_entries import ROWS, RowsTold, read_rows
from wireglot.stores.base import FleetLog, StoreDown
from wireglot.stores.records import LogEntry
from wireglot.stores.seal import Sealer
from wireglot.traces.trace import Row

ROWS_MOST: Final = 20_000
_PAGE: Final = 250
_FRESH_SECONDS: Final = 0.5
_CALL_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 2.0
"""After a failure, before the store is asked again: whoever looks does not wait for it each time."""
_BEGIN_SECONDS: Final = 1.5
"""Reading what was, the newest first: what is not read by then stays unread."""
_LATELY_SECONDS: Final = 900.0
_SILENT_SECONDS: Final = 30.0
"""After which whatever ran in a process that says nothing has ended with it."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Row).decode


class FleetRows:
    def __init__(
        self,
        log: FleetLog,
        sealer: Sealer,
        *,
        machine: str,
        wall: Callable[[], float] = time.time,
        fresh_seconds: float = _FRESH_SECONDS,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        self.trouble = ""
        """Why what is shown may not be all, "" where it is."""
        self._log = log
        self._sealer = sealer
        self._machine = machine
        self._wall = wall
        self._fresh_seconds = fresh_seconds
        self._pause_seconds = pause_seconds
        self._rows: OrderedDict[str, bytes] = OrderedDict()
        """By id, in the order in which they were first heard of."""
        self._heard: dict[str, float] = {}
        """When each process was last heard of, by its own clock."""
        self._machines: dict[str, float] = {}
        self._dropped: dict[str, int] = {}
        self._listeners: list[Callable[[Row], None]] = []
        self._place = ""
        self._is_begun = False
        self._looked = float("-inf")
        self._reading = asyncio.Lock()

    @property
    def machines(self) -> int:
        """That were heard of lately, as far as they had anything to tell."""
        since = self._wall() - _LATELY_SECONDS
        return len({self._machine, *(name for name, at in self._machines.items() if at > since)})

    @property
    def dropped(self) -> int:
        """Rows that other processes could not tell."""
        return sum(self._dropped.values())

    def listen(self, tell: Callable[[Row], None]) -> Callable[[], None]:
        """Rows of other machines, as they are read. Whom to call to hear no more."""
        self._listeners.append(tell)
        return lambda: self._listeners.remove(tell)

    async def refresh(self) -> None:
        """Read what is new, unless somebody did so just now."""
        async with self._reading:
            pause = self._pause_seconds if self.trouble else self._fresh_seconds
            if time.monotonic() - self._looked < pause:
                return
            try:
                async with asyncio.timeout(_CALL_SECONDS):
                    if not self._is_begun:
                        await self._begin()
                    while True:
                        entries = await self._log.heard(ROWS, self._place, _PAGE)
                        await self._took(entries)
                        if len(entries) < _PAGE:
                            break
                self.trouble = ""
            except StoreDown as down:
                self.trouble = str(down) or "the store is away"
            except TimeoutError:
                self.trouble = f"the store does not answer within {_CALL_SECONDS:g} s"
            self._looked = time.monotonic()

    async def _begin(self) -> None:
        """The newest, as many as are held."""
        found: list[LogEntry] = []
        count, before, until = 0, "", time.monotonic() + _BEGIN_SECONDS
        while count < ROWS_MOST and time.monotonic() < until:
            entries = await self._log.last(ROWS, before, _PAGE)
            found += entries
            if len(entries) < _PAGE:
                break
            before = entries[-1].place
            told = await asyncio.to_thread(read_rows, entries, self._sealer)
            count += sum(len(each.rows) for _, each in told)
        await self._took(found[::-1])
        self._is_begun = True

    async def _took(self, entries: list[LogEntry]) -> None:
        if not entries:
            return
        told = await asyncio.to_thread(read_rows, entries, self._sealer)
        self._place = entries[-1].place
        for _, each in told:
            self._take(each)

    def _take(self, told: RowsTold) -> None:
        if told.forgotten is not None:
            self.forget(told.forgotten, told.at)
            return
        self._heard[told.worker] = max(told.at, self._heard.get(told.worker, 0.0))
        self._machines[told.machine] = self._heard[told.worker]
        self._dropped[told.worker] = told.dropped
        for row in told.rows:
            self._rows[row.id] = _pack(row)
            if len(self._rows) > ROWS_MOST:
                self._rows.popitem(last=False)
            if self._is_begun and told.machine != self._machine:  # its own workers tell one another
                for tell in self._listeners:
                    tell(row)

    def snapshot(self) -> list[bytes]:
        return list(self._rows.values())

    def unpacked(self, rows: list[bytes], known: set[str]) -> list[Row]:
        """In any thread: those that are not known otherwise."""
        found = map(_unpack, rows)
        return [self._as_it_is(row) for row in found if row.id not in known]

    def between(self, rows: list[bytes], since: float, until: float) -> list[Row]:
        """In any thread: those of a stretch of time."""
        return [self._as_it_is(row) for row in map(_unpack, rows) if since <= row.at < until]

    def find(self, id: str) -> Row | None:
        found = self._rows.get(id)
        return self._as_it_is(_unpack(found)) if found is not None else None

    def forget(self, key: str, until: float) -> None:
        gone = [
            id for id, packed in self._rows.items() if (row := _unpack(packed)).key == key and row.at <= until
        ]
        for id in gone:
            del self._rows[id]

    def _as_it_is(self, row: Row) -> Row:
        """What ran in a process that has gone runs no more."""
        if row.state != "running":
            return row
        silent = self._wall() - self._heard.get(row.worker, row.at)
        if silent < _SILENT_SECONDS:
            return row
        told = f"the gateway that answered it ({row.worker}) was not heard of since"
        return msgspec.structs.replace(row, state="failed", error=told)
