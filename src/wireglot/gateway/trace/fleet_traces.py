"""The fleet as whoever looks sees it: rows of all its machines, bodies handed over, orders to all."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec

from wireglot.gateway.observe.log import Note
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.gateway.trace.fleet_bodies import FleetBodies
from wireglot.gateway.trace.fleet_entries import (
    ENTRIES_MOST,
    KEPT_SECONDS,
    ORDERS,
    ROWS,
    Order,
    RowsTold,
    packed,
    read_order,
    read_rows,
    told_rows,
)
from wireglot.gateway.trace.fleet_rows import FleetRows
from wireglot.gateway.trace.fleet_sender import RowSender
from wireglot.gateway.trace.rows import ExchangeRows
from wireglot.gateway.trace.shelf import TraceShelf
from wireglot.stores.base import FleetLog, StoreDown
from wireglot.stores.records import LogEntry
from wireglot.stores.seal import Sealer, Unreadable
from wireglot.traces.trace import Row, Trace

_LOOK_SECONDS: Final = 2.0
"""Between two looks for orders."""
_FOLLOW_SECONDS: Final = 1.0
"""Between two looks for rows, while somebody follows them."""
_CALL_SECONDS: Final = 3.0
_ORDERS_MOST: Final = 1_000
_UNSAID_MOST: Final = 100
_PAGE: Final = 250

Obey = Callable[[Order, bool], Awaitable[None]]
"""Does what is ordered; whether it was ordered just now, or before this process began."""


class FleetTraces:
    def __init__(
        self,
        log: FleetLog,
        rows: ExchangeRows,
        sealer: Sealer,
        *,
        note: Note,
        told: Callable[[Row], Row],
        shelf: Callable[[], TraceShelf],
        settings: Callable[[], Settings],
        machine: str,
        worker: str,
    ) -> None:
        self.sender = RowSender(log, rows, sealer, note=note, told=told, machine=machine, worker=worker)
        self.rows = FleetRows(log, sealer, machine=machine)
        self.bodies = FleetBodies(log, shelf, lambda: settings().trace, note)
        self._guard = Guarded(note, "fleet: orders")
        self._log = log
        self._sealer = sealer
        self._shelf = shelf
        self._settings = settings
        self._machine = machine
        self._worker = worker
        self._unsaid: deque[Order] = deque(maxlen=_UNSAID_MOST)
        """Orders that the store has not got yet."""
        self._place = ""
        self._is_caught_up = False
        self._trouble = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self, obey: Obey) -> None:
        look = partial(self._look, obey)
        await self._guard.run(look)
        self._task = asyncio.create_task(self._guard.forever(look, lambda: _LOOK_SECONDS))
        self.sender.start()
        self.bodies.start()

    async def close(self) -> None:
        await stop(self._task)
        await self.bodies.close()
        await self.sender.close()

    @property
    def trouble(self) -> str:
        """Why not everything of the fleet is seen here, "" where it is."""
        return self.rows.trouble or self.sender.trouble or self._trouble

    def status(self) -> dict[str, Any]:
        return {
            "machines": self.rows.machines,
            "trouble": self.trouble or None,
            "untold": self.sender.dropped + self.rows.dropped,
            "unshared": self.bodies.dropped,
        }

    async def follow(self) -> None:
        """Keep the rows fresh, until it is cancelled."""
        while True:
            await self.rows.refresh()
            await asyncio.sleep(_FOLLOW_SECONDS)

    async def unbooked(self, since: float, until: float) -> list[Row]:
        """What machines answered, where the usage of others is not in the store of this one."""
        if self._settings().store.url.value.startswith("postgres"):
            return []
        await self.rows.refresh()
        return await asyncio.to_thread(self.rows.between, self.rows.snapshot(), since, until)

    # Orders.

    async def order(self, order: Order) -> str:
        """To every process of the fleet, within seconds. Why it was not given, "" where it was: then it is as
        soon as the store is back."""
        self._unsaid.append(order)
        return await self._tried(self._say())

    async def _say(self) -> None:
        while self._unsaid:
            order = self._unsaid[0]
            await self._log.tell(ORDERS, packed(order), seconds=KEPT_SECONDS, most=_ORDERS_MOST)
            if self._unsaid and self._unsaid[0] is order:
                self._unsaid.popleft()

    async def _look(self, obey: Obey) -> None:
        self._trouble = await self._tried(self._say()) or await self._tried(self._obey_all(obey))

    async def _obey_all(self, obey: Obey) -> None:
        while True:
            entries = await self._log.heard(ORDERS, self._place, _PAGE)
            for entry in entries:
                self._place = entry.place
                order = read_order(entry)
                if order is not None:
                    await obey(order, self._is_caught_up)
            if len(entries) < _PAGE:
                self._is_caught_up = True
                return

    async def _tried(self, work: Awaitable[None]) -> str:
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                await work
        except StoreDown as down:
            return str(down) or "the store is away"
        except TimeoutError:
            return f"the store does not answer within {_CALL_SECONDS:g} s"
        return ""

    # One caller's data goes.

    async def forget(self, key: str, until: float) -> int:
        """Rows and bodies in the store, and in every machine. How many bodies there were. Raises
        StoreDown."""
        self.let_go(key, until)
        gone = await self._log.forget(key)
        before = ""
        while entries := await self._log.last(ROWS, before, _PAGE):
            before = entries[-1].place
            await self._without(key, until, entries)
            if len(entries) < _PAGE:
                break
        told = RowsTold(self._machine, self._worker, until, forgotten=key)
        await self._log.tell(ROWS, packed(told), seconds=KEPT_SECONDS, most=ENTRIES_MOST)
        await self._log.tell(
            ORDERS, packed(Order(until, forgotten=key)), seconds=KEPT_SECONDS, most=_ORDERS_MOST
        )
        return gone

    def let_go(self, key: str, until: float) -> None:
        """What this process holds of it."""
        self.sender.forget(key)
        self.bodies.forget(key)
        self.rows.forget(key, until)

    async def _without(self, key: str, until: float, entries: list[LogEntry]) -> None:
        """Told once more without the caller's rows, where there are any: an entry has those of many."""
        for place, told in await asyncio.to_thread(read_rows, entries, self._sealer):
            left = [row for row in told.rows if row.key != key or row.at > until]
            if len(left) == len(told.rows):
                continue
            if left:
                again = told_rows(told.machine, told.worker, told.at, left, self._sealer)
                again = msgspec.structs.replace(again, dropped=told.dropped)
                await self._log.tell(ROWS, packed(again), seconds=KEPT_SECONDS, most=ENTRIES_MOST)
            await self._log.remove(ROWS, [place])

    # A body.

    async def trace(self, row: Row) -> tuple[Trace | None, str]:
        """What another machine recorded, or why it cannot be shown here."""
        where = f"recorded by {row.worker}"
        settings = self._settings()
        if not settings.trace.fleet_bytes:
            return None, f"{where}, and bodies stay where they are recorded (trace.fleet_bytes = 0)"
        try:
            data = await self.bodies.find(row.key, row.id)
        except StoreDown as down:
            return None, f"{where}; the fleet's store is away: {down}"
        alone = settings.server.secret.source.startswith(("file:", "random"))
        locked = f"{where}, and sealed with another secret: set server.secret, the same on every machine"
        if data is None:
            told = f"{where}, and not in the fleet's store: it is on its way, was too large, or is gone"
            return None, locked if alone else told
        try:
            return await asyncio.to_thread(self._shelf().opened, data, row.key, row.id), ""
        except (Unreadable, ValueError, zlib.error, msgspec.MsgspecError):
            return None, locked
