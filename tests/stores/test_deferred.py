"""A store that is away at the start, and opened when it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wireglot.stores.base import Shared, StoreDown, StoreUnusable
from wireglot.stores.deferred import DeferredEngine, DeferredShared
from wireglot.stores.memory import MemoryCounters, MemoryEngine


def test_however_many_look_at_once_it_is_opened_once() -> None:
    opened: list[Any] = []

    async def open_engine(url: str) -> MemoryEngine:
        engine = MemoryEngine()
        opened.append(engine)
        await asyncio.sleep(0)
        return engine

    async def open_counters(url: str) -> Any:
        vault: Any = MemoryEngine().vault
        opened.append(Shared(MemoryCounters(), vault))
        await asyncio.sleep(0)
        return opened[-1]

    async def work() -> None:
        engine = DeferredEngine("memory:", "away", open=open_engine)
        shared = DeferredShared("memory:", "away", open=open_counters)
        with pytest.raises(StoreDown, match="away"):
            await engine.ledger.apply([])
        for check in (engine.check, shared.check):
            opened.clear()
            await asyncio.gather(*(check() for _ in range(5)))
            assert len(opened) == 1
        await engine.ledger.apply([])
        assert shared.vault is not None
        assert await shared.vault.recall("t", ["n"]) == {}
        await engine.close()
        await shared.close()

    asyncio.run(work())


def test_what_cannot_be_used_when_it_comes_is_down() -> None:
    async def open_any(url: str) -> Any:
        raise StoreUnusable("a newer Wireglot has written it")

    async def work() -> None:
        engine = DeferredEngine("x", "away", open=open_any)
        shared = DeferredShared("x", "away", open=open_any)
        for check in (engine.check, shared.check):
            with pytest.raises(StoreDown, match="newer"):
                await check()

    asyncio.run(work())
