"""Cool-downs of providers' keys, shared between all processes that use the same counters."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from wireglot.gateway.errors import QUOTA
from wireglot.gateway.observe.log import Note
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.gateway.targets.health import Health, SpentAccount
from wireglot.stores.base import Counters, StoreDown
from wireglot.stores.memory import MemoryCounters
from wireglot_core.ir.errors import ApiError

HEAR_SECONDS: Final = 0.75
"""Seconds between two reads, give or take a third."""
_PRESENT_SECONDS: Final = 10.0
"""Seconds for which a process counts as present after its last message."""
_INSTANCE: Final = "instance"
_COOL: Final = "cool"
_REJECTED: Final = "rejected"
_SPENT: Final = "spent"
_GAP: Final = "\x1f"
_NOTHING_LEFT: Final = "the account has no quota left"
"""For clients of a process that did not get the provider's own message."""
_LEFT_SECONDS_LEAST: Final = 0.05
"""Cool-downs shorter than this are not shared."""


class Sharing:
    """Times are this process's own, and are shared as seconds left."""

    def __init__(
        self,
        counters: Counters,
        instance: str,
        note: Note,
        *,
        clock: Callable[[], float] | None = None,
        hear_seconds: float = HEAR_SECONDS,
    ) -> None:
        """`clock`: the one of Health's times, by default the loop's.

        `hear_seconds`: between two reads, give or take a third.
        """
        self.peers = 1
        """How many processes share the counters, this one included, as last known."""
        self._counters = counters
        self._instance = _GAP.join((_INSTANCE, instance))
        self._note = note
        self._clock: Callable[[], float] = clock or (lambda: asyncio.get_running_loop().time())
        self._hear_seconds = hear_seconds
        self._health: Health | None = None
        self._unreported: dict[str, float] = {}
        self._wake = asyncio.Event()
        self.down = False
        """Whether the last call to the counters failed."""
        self._guards = Guarded(note, "sharing: tell"), Guarded(note, "sharing: hear")
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, health: Health) -> None:
        if isinstance(self._counters, MemoryCounters):
            return  # there is no other process
        self._health = health
        health.listen(self._cooled, self._rejected, self._spent)
        await self.exchange()
        tell, hear = self._guards
        self._tasks = [
            asyncio.create_task(tell.forever(self._tell)),
            asyncio.create_task(hear.forever(self._hear, self._pause)),
        ]

    async def close(self) -> None:
        await stop(*self._tasks)

    # What this process finds out is shared at once.

    def _cooled(self, provider: str, account: str, model: str, until: float) -> None:
        self._add(_GAP.join((_COOL, provider, account, model)), until)

    def _rejected(self, provider: str, account: str, until: float) -> None:
        self._add(_GAP.join((_REJECTED, provider, account)), until)

    def _spent(self, provider: str, account: str, model: str, until: float, said: SpentAccount) -> None:
        status = said.status or said.error.status
        self._add(_GAP.join((_SPENT, provider, account, model, str(status))), until)

    def _add(self, name: str, until: float) -> None:
        self._unreported[name] = max(until, self._unreported.get(name, 0.0))
        self._wake.set()

    async def _tell(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        await self._safely(self.push)

    async def push(self) -> None:
        unreported, self._unreported = self._unreported, {}
        now = self._clock()
        entries = {
            name: until - now for name, until in unreported.items() if until - now > _LEFT_SECONDS_LEAST
        }
        if not entries:
            return
        try:
            await self._counters.cool(entries)
        except BaseException:
            # Reported when the counters answer again; a cool-down found meanwhile may last longer.
            for name in entries:
                self._unreported[name] = max(unreported[name], self._unreported.get(name, 0.0))
            raise

    # What others found out is read at intervals.

    async def _hear(self) -> None:
        await self._safely(self._exchange)
        if self._unreported and not self.down:
            self._wake.set()

    async def exchange(self) -> None:
        """Announce this process, and read what the others share."""
        await self._guards[1].run(self._hear)

    async def _exchange(self) -> None:
        await self._counters.cool({self._instance: _PRESENT_SECONDS})
        heard = await self._counters.cooling()
        now = self._clock()
        peers = 0
        for name, left in heard.items():
            match name.split(_GAP):
                case [kind, _] if kind == _INSTANCE:
                    peers += 1
                case [kind, provider, account, model] if kind == _COOL:
                    if self._health is not None:
                        self._health.heard_cool(provider, account, model, now + left)
                case [kind, provider, account] if kind == _REJECTED:
                    if self._health is not None:
                        self._health.heard_rejected(provider, account, now + left)
                case [kind, provider, account, model, status] if kind == _SPENT:
                    if self._health is not None:
                        error = ApiError("billing", _NOTHING_LEFT, status=int(status), code=QUOTA)
                        said = SpentAccount(error)
                        self._health.heard_spent(provider, account, model, now + left, said)
        self.peers = max(1, peers)

    async def _safely(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except StoreDown as down:
            if not self.down:
                self.down = True
                self._note(
                    "warn",
                    "sharing stopped",
                    detail=f"cool-downs are not shared with other processes: {down}",
                )
            return
        if self.down:
            self.down = False
            self._note("info", "sharing resumed")

    def _pause(self) -> float:
        return self._hear_seconds * (2 / 3 + 2 / 3 * random.random())
