"""The store and the counters of a fleet: in memory, on a machine of their own behind the network.

It stands at the level of the stores' protocols: a call may be lost on its way there, so that nothing has
happened, or on its way back, when nobody knows. PostgreSQL's and Redis's own protocols are not simulated.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from proofs.simulation.loop import Trace
from wireglot.stores.base import Shared, StoreDown
from wireglot.stores.memory import MemoryCounters, MemoryEngine

_PARTS: Final = ("documents", "vault", "ledger", "keys")


class FleetServer:
    """`away`: it does not answer. `losing`: how often a call, or its answer, is lost. `seconds`: one way."""

    def __init__(self, chance: random.Random, trace: Trace) -> None:
        self.engine = MemoryEngine()
        self.counters = MemoryCounters()
        self.away = False
        self.losing = 0.0
        self.seconds = 0.0005
        self._chance = chance
        self._trace = trace

    async def open_engine(self, url: str) -> Any:
        await self._pass()
        if self.away:
            raise StoreDown("the fleet's store does not answer")
        return _Remote(self, self.engine)

    async def open_counters(self, url: str) -> Shared:
        await self._pass()
        if self.away:
            raise StoreDown("the fleet's counters do not answer")
        return Shared(_Remote(self, self.counters), None)

    async def call(self, method: Any, *args: Any, **more: Any) -> Any:
        await self._pass()
        if self.away:
            await asyncio.sleep(self._chance.choice((0.0, 1.0, 10.0)))
            raise StoreDown("the fleet's store does not answer")
        if self._is_lost():
            raise StoreDown("the connection to the fleet's store broke")
        self._trace.note(f"store {method.__name__}")
        result = await method(*args, **more)
        await self._pass()
        if self._is_lost():
            raise StoreDown("the connection to the fleet's store broke")
        return result

    async def _pass(self) -> None:
        await asyncio.sleep(self.seconds * (1 + self._chance.random()))

    def _is_lost(self) -> bool:
        return self.losing > 0 and self._chance.random() < self.losing


class _Remote:
    """A part of the store, as a gateway holds it: every call that is awaited goes over the network."""

    def __init__(self, server: FleetServer, behind: Any) -> None:
        self._server = server
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._behind, name)
        if name in _PARTS:
            return _Remote(self._server, found)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **more: Any) -> Any:
            return await self._server.call(found, *args, **more)

        return call

    async def close(self) -> None:
        """The connection; the store stays."""
