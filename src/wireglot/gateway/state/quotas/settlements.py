"""Usage that is charged after a request has ended, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.stores.base import Counters, StoreDown
from wireglot.stores.records import Budget, Rate

_DRAIN_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = (0.5, 2.0, 10.0, 60.0)
"""Seconds between attempts to charge usage."""


class Settlements:
    def __init__(self, note: Note) -> None:
        self.again_seconds: tuple[float, ...] = _AGAIN_SECONDS
        self.work: set[asyncio.Task[None]] = set()
        self._settling = Guarded(note, "limits: settling")

    async def close(self) -> None:
        if self.work:
            await asyncio.wait(self.work, timeout=_DRAIN_SECONDS)
        await stop(*self.work)

    async def settle(self, counters: Counters, corrections: list[Rate | Budget]) -> None:
        """Apply corrections. If it stays unknown whether they were applied, what was to be returned stays
        taken, and what was used is charged again rather than never."""
        for wait in (*self.again_seconds, None):
            try:
                await counters.settle(corrections)
                return
            except StoreDown as down:
                if down.late is not None:
                    await asyncio.wait({down.late})
                    if not down.late.cancelled() and down.late.exception() is None:
                        return
                corrections = [claim for claim in corrections if claim.amount > 0]
                if not corrections or wait is None:
                    return
                await asyncio.sleep(wait)

    def later(self, work: Callable[[], Awaitable[None]]) -> None:
        async def guarded() -> None:
            await self._settling.run(work)

        task = asyncio.create_task(guarded())
        self.work.add(task)
        task.add_done_callback(self.work.discard)
