"""The places of running requests, for limits of concurrency: kept as long as a request runs."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from wireglot.gateway.observe.log import Note
from wireglot.gateway.state.quotas.reservation import (
    Reservation,
)
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.stores.base import Counters

LEASE_SECONDS: Final = 60.0
"""After this time the place of a request whose process has died is free."""
_RENEWED_SECONDS: Final = 20.0


class PlaceLeases:
    def __init__(self, note: Note) -> None:
        self.renewed_seconds = _RENEWED_SECONDS
        self._running: dict[str, Reservation] = {}
        """The reservations that hold a place."""
        self._renewal: asyncio.Task[None] | None = None
        self._renewing = Guarded(note, "limits: renewal")

    async def close(self) -> None:
        await stop(self._renewal)

    def keep(self, reservation: Reservation) -> None:
        self._running[reservation.holder] = reservation
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew())

    def release(self, reservation: Reservation) -> None:
        self._running.pop(reservation.holder, None)

    async def _renew(self) -> None:
        """Keep the places of long requests."""
        while self._running:
            await asyncio.sleep(self.renewed_seconds)
            for each in list(self._running.values()):
                if each.counters is None or each.holder not in self._running:
                    continue
                await self._renewing.run(partial(self._stay, each, each.counters))

    async def _stay(self, reservation: Reservation, counters: Counters) -> None:
        holder = reservation.holder
        for place in reservation.places:
            await counters.enter(place.name, holder, place.limit, LEASE_SECONDS)
            if holder not in self._running:  # it ended meanwhile, perhaps before this call
                await counters.leave(place.name, holder)
