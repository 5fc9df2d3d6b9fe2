"""Limits of one process. They use the monotonic clock, so that setting the clock frees or locks nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wireglot.stores.base import Counters
from wireglot.stores.claims import Weighed, filled
from wireglot.stores.records import Budget, Denied, Rate

TIDY_ABOVE: Final = 4096
"""With more rates or budgets than this, expired ones are searched and dropped."""


class MemoryCounters(Counters):
    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Both in seconds: `wall` is used only for the end of budgets."""
        self._clock = clock
        self.wall = wall
        self._rates: dict[str, float] = {}
        self._budgets: dict[str, tuple[int, int]] = {}
        self._places: dict[str, dict[str, float]] = {}
        self._cooling: dict[str, float] = {}
        self._locks: dict[str, tuple[str, float]] = {}

    async def take(self, claims: Sequence[Rate | Budget]) -> Denied | None:
        now, wall = self._clock() * 1000, self.wall() * 1000
        weighed = Weighed(
            claims,
            lambda name: self._rates.get(name, 0.0),
            lambda name: self._spent(name, wall),
            now=now,
            wall=wall,
        )
        if weighed.denied is None:
            self._rates.update(weighed.rates)
            self._budgets.update(weighed.budgets)
            if len(self._rates) > TIDY_ABOVE or len(self._budgets) > TIDY_ABOVE:
                self._tidy(now, wall)
        return weighed.denied

    async def settle(self, claims: Sequence[Rate | Budget]) -> None:
        now, wall = self._clock() * 1000, self.wall() * 1000
        for claim in claims:
            if isinstance(claim, Rate):
                self._rates[claim.name] = filled(claim, self._rates.get(claim.name, 0.0), now)
            elif await self.known([claim.name]):
                # One that has not begun (after a restart) stays so: it will be seeded from the ledger.
                self._budgets[claim.name] = (
                    max(0, self._spent(claim.name, wall) + claim.amount),
                    claim.until,
                )

    async def known(self, names: Sequence[str]) -> dict[str, int]:
        wall, budgets = self.wall() * 1000, self._budgets
        return {name: budgets[name][0] for name in names if name in budgets and budgets[name][1] > wall}

    async def seed(self, name: str, value: int, until: int) -> None:
        if not await self.known([name]):
            self._budgets[name] = (value, until)

    async def enter(self, name: str, holder: str, limit: int, seconds: float) -> bool:
        now = self._clock()
        places = {who: until for who, until in self._places.get(name, {}).items() if until > now}
        if holder not in places and len(places) >= limit:
            return False
        places[holder] = now + seconds
        self._places[name] = places
        return True

    async def leave(self, name: str, holder: str) -> None:
        places = self._places.get(name)
        if places is not None:
            places.pop(holder, None)
            if not places:
                del self._places[name]

    async def cool(self, entries: Mapping[str, float]) -> None:
        now = self._clock()
        for name, seconds in entries.items():
            self._cooling[name] = max(self._cooling.get(name, 0.0), now + seconds)

    async def cooling(self) -> dict[str, float]:
        now = self._clock()
        self._cooling = {name: until for name, until in self._cooling.items() if until > now}
        return {name: until - now for name, until in self._cooling.items()}

    async def lock(self, name: str, holder: str, seconds: float) -> bool:
        now = self._clock()
        owner, until = self._locks.get(name, ("", 0.0))
        if owner != holder and until > now:
            return False
        self._locks[name] = (holder, now + seconds)
        return True

    async def unlock(self, name: str, holder: str) -> None:
        if self._locks.get(name, ("", 0.0))[0] == holder:
            del self._locks[name]

    async def check(self) -> None:
        """Always available."""

    async def close(self) -> None:
        """Nothing to close."""

    def _spent(self, name: str, wall: float) -> int:
        value, until = self._budgets.get(name, (0, 0))
        return value if until > wall else 0

    def _tidy(self, now: float, wall: float) -> None:
        self._rates = {name: level for name, level in self._rates.items() if level > now}
        self._budgets = {name: entry for name, entry in self._budgets.items() if entry[1] > wall}
