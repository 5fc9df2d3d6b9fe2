"""Recorded bodies on their way to the fleet's store, and from there to whoever looks at another machine.

A file of the shelf goes there as it lies on the disk: sealed. One at a time, beside all requests; only names
wait here, so that what waits takes no room.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.setting_tables.trace import TraceSettings
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.gateway.trace.shelf import TraceShelf
from wireglot.stores.base import FleetLog, StoreDown

WAITING_MOST: Final = 1_000
BODY_BYTES_MOST: Final = 16 * 1024 * 1024
"""Of one exchange, sealed and compressed."""
_CALL_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 2.0


class FleetBodies:
    def __init__(
        self,
        log: FleetLog,
        shelf: Callable[[], TraceShelf],
        settings: Callable[[], TraceSettings],
        note: Note,
    ) -> None:
        self.dropped = 0
        """Recordings that can be opened on this machine alone: too many at once, or too large."""
        self._log = log
        self._shelf = shelf
        self._settings = settings
        self._waiting: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Names of files, with the key and the id of each."""
        self._wake = asyncio.Event()
        self._guard = Guarded(note, "fleet: bodies")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._guard.forever(self._hand_over_all))

    async def close(self) -> None:
        await stop(self._task)

    def offer(self, key: str, id: str, name: str) -> None:
        """A file has been written."""
        if not self._settings().fleet_bytes:
            return
        self._waiting[name] = key, id
        if len(self._waiting) > WAITING_MOST:
            self._waiting.popitem(last=False)
            self.dropped += 1
        self._wake.set()

    def forget(self, key: str) -> None:
        for name in [name for name, (owner, _) in self._waiting.items() if owner == key]:
            del self._waiting[name]

    async def find(self, key: str, id: str) -> bytes | None:
        """As it was handed over. Raises StoreDown."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await self._log.find(key, id)
        except TimeoutError:
            raise StoreDown(f"the store does not answer within {_CALL_SECONDS:g} s") from None

    async def _hand_over_all(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        while self._waiting:
            name = next(iter(self._waiting))
            try:
                async with asyncio.timeout(_CALL_SECONDS):
                    await self._hand_over(name, *self._waiting[name])
            except (StoreDown, TimeoutError):
                await asyncio.sleep(_PAUSE_SECONDS)  # and then once more
                continue
            except Exception:  # a bug with this one, which is told, holds up no other
                self._waiting.pop(name, None)
                self.dropped += 1
                self._wake.set()
                raise
            self._waiting.pop(name, None)

    async def _hand_over(self, name: str, key: str, id: str) -> None:
        settings = self._settings()
        data = await asyncio.to_thread(self._shelf().sealed, name)
        if data is None:
            return  # swept, or wiped, meanwhile
        if len(data) > min(BODY_BYTES_MOST, settings.fleet_bytes):
            self.dropped += 1
            return
        seconds = settings.keep_hours * 3600
        await self._log.keep(key, id, data, seconds=seconds, bytes_most=settings.fleet_bytes)
        if name not in self._waiting:  # its caller was wiped while it was under way
            await self._log.forget(key)
