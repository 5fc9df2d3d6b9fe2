"""Removes expired and excess records as [store.keep] says, and adds up usage by hour.

Runs every few minutes, in one of the processes that share a store.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.settings import Settings
from wireglot.gateway.state import stored_forms
from wireglot.gateway.state.losses.shelf import KEPT_BYTES
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.stores import StoreDown
from wireglot.stores.base import Counters, Engine, Ledger
from wireglot.stores.document_log import HANDED_OVER, REPORTED
from wireglot.stores.records import KindLimits, Swept

_FIRST_SECONDS: Final = 20.0
_EVERY_SECONDS: Final = 300.0
_LOCK: Final = "sweep"
_LOCK_SECONDS: Final = 0.8 * _EVERY_SECONDS
"""Less than the time to the next run, so that no run meets a lock of the previous one."""
_FLEET_LOG_BYTES: Final = 64 * 1024 * 1024
_DAY_MS: Final = 86_400_000
_SETTLED_MS: Final = 10 * 60_000
"""Delay after an hour before it is added up: rows of long requests come late."""
_MAX_SUMS: Final = 2000
"""Periods of usage that are added up in one run: rows that keep changing must not prolong it endlessly."""
_SUM_PAUSE_SECONDS: Final = 0.05
_SILENT_MS: Final = 20 * 60_000
"""A process without a heartbeat for this long has ended."""


class Sweeper:
    def __init__(self, engine: Engine, counters: Counters, instance: str, note: Note) -> None:
        self._engine = engine
        self._counters = counters
        self._instance = instance
        self._note = note
        self._task: asyncio.Task[None] | None = None

    def start(self, settings: Callable[[], Settings]) -> None:
        first = _FIRST_SECONDS * random.uniform(0.5, 1.5)  # processes must not all start at once
        pauses = chain([first], repeat(_EVERY_SECONDS))
        guard = Guarded(self._note, "sweep")
        self._task = asyncio.create_task(guard.forever(partial(self._turn, settings), pauses.__next__))

    async def close(self) -> None:
        await stop(self._task)

    async def sweep(self, settings: Settings) -> bool:
        """One run, unless another process did one recently. Returns whether this process did it."""
        if not await self._counters.lock(_LOCK, self._instance, _LOCK_SECONDS):
            return False
        swept = await prune(self._engine, settings)
        removed = sum(swept.expired.values()) + sum(swept.evicted.values()) + swept.usage
        if removed or swept.crashed:
            self._note("info", "swept", removed=removed, crashed=swept.crashed)
        return True

    async def _turn(self, settings: Callable[[], Settings]) -> None:
        try:
            if await self.sweep(settings()):
                await add_up(self._engine.ledger)
        except StoreDown as down:
            self._note("warn", "not swept", detail=str(down))


async def add_up(ledger: Ledger) -> None:
    """Add up all past hours of usage that are not added up yet."""
    for _ in range(_MAX_SUMS):
        if not await ledger.sum_up(int(time.time() * 1000) - _SETTLED_MS):
            break
        await asyncio.sleep(_SUM_PAUSE_SECONDS)  # other processes use the store as well


async def prune(engine: Engine, settings: Settings, now: int = 0) -> Swept:
    """`now` in unix milliseconds; 0: the current time."""
    now = now or int(time.time() * 1000)
    keep = settings.store.keep
    return await engine.sweep(
        now,
        usage_before=now - int(keep.usage_days * _DAY_MS) if keep.usage_days else 0,
        dead_before=now - _SILENT_MS,
        kinds={
            stored_forms.RESPONSE: KindLimits(keep.responses_bytes),
            stored_forms.EVENT: KindLimits(keep.events_bytes),
            stored_forms.ITEM: KindLimits(keep.conversations_bytes),
            stored_forms.IDEMPOTENT: KindLimits(keep.idempotency_bytes),
            stored_forms.LOSSES: KindLimits(KEPT_BYTES),
            REPORTED: KindLimits(_FLEET_LOG_BYTES),
            HANDED_OVER: KindLimits(max(1, settings.trace.fleet_bytes)),
        },
    )
