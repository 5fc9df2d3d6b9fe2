"""The broom: every few minutes, by one process of those that share a store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.retention import prune
from wireglot.stores import StoreDown
from wireglot.stores.base import Counters, Engine

_FIRST: Final = 20.0
_EVERY: Final = 300.0
_LOCK: Final = "sweep"


class Sweeper:
    def __init__(self, engine: Engine, counters: Counters, instance: str, note: Any) -> None:
        self._engine = engine
        self._counters = counters
        self._instance = instance
        self._note = note
        self._task: asyncio.Task[None] | None = None

    def start(self, settings: Callable[[], Settings]) -> None:
        self._task = asyncio.create_task(self._run(settings))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self, settings: Settings) -> None:
        """Once, unless another process did it lately."""
        if not await self._counters.lock(_LOCK, self._instance, _EVERY * 0.8):
            return
        swept = await prune(self._engine, settings)
        removed = sum(swept.expired.values()) + sum(swept.evicted.values()) + swept.usage
        if removed or swept.crashed:
            self._note("info", "swept", removed=removed, crashed=swept.crashed)

    async def _run(self, settings: Callable[[], Settings]) -> None:
        await asyncio.sleep(_FIRST * (0.5 + random.random()))  # not all at once after a start
        while True:
            try:
                await self.sweep(settings())
            except StoreDown as down:
                self._note("warn", "not swept", detail=str(down))
            except Exception as bug:  # what is left lying about costs less than no sweeping at all
                self._note("error", "bug", type=type(bug).__name__, where="sweep")
            await asyncio.sleep(_EVERY)
