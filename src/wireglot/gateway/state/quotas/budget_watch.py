"""How much of their budgets keys have used, for who scrapes: looked up now and then, by no request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from wireglot.gateway.observe.metrics import Metrics, Readings
from wireglot.gateway.state.quotas.reservation import Limit, Reservation, Unit
from wireglot.stores.base import Counters
from wireglot.stores.records import Budget

BUDGETS_MOST: Final = 400
"""Four for each of the keys that have a label of their own."""


class _Watched(msgspec.Struct, frozen=True):
    caller: str
    unit: Unit
    span: str
    limit: int
    until: int


class BudgetWatch:
    """Of the keys that have asked this process: who asks for nothing uses nothing up."""

    def __init__(self, counters: Counters, wall: Callable[[], float]) -> None:
        self._counters = counters
        self._wall = wall
        self._watched: dict[str, _Watched] = {}
        self._used: dict[str, int] = {}

    def watch(self, reservation: Reservation) -> None:
        for limit in reservation.limits:
            claim = limit.claim
            if not isinstance(claim, Budget):
                continue
            known = self._watched.get(claim.name)
            if known is not None and known.limit == claim.limit:
                continue
            if known is None:
                self._forget_before(reservation.caller, limit)
            if len(self._watched) >= BUDGETS_MOST:
                self._forget_ended()
            if known is not None or len(self._watched) < BUDGETS_MOST:
                self._watched[claim.name] = _Watched(
                    reservation.caller, limit.unit, limit.span, claim.limit, claim.until
                )

    async def look(self) -> None:
        """A StoreDown where nobody can tell: then all stays as it was."""
        self._forget_ended()
        if self._watched:
            self._used = await self._counters.amounts(list(self._watched))

    def publish(self, metrics: Metrics) -> None:
        metrics.read(
            "key_budget_used_ratio",
            "Part of a key's budget that is spent, or held by requests under way; 1 is all of it.",
            lambda: self._ratios(metrics),
            ("key", "unit", "period"),
        )

    def _ratios(self, metrics: Metrics) -> Readings:
        now = self._wall() * 1000
        found: dict[tuple[str, ...], float] = {}
        for name, watched in self._watched.items():
            used = self._used.get(name)
            if used is not None and watched.until > now:
                labels = (metrics.keys.label(watched.caller, True), watched.unit, watched.span)
                found[labels] = max(found.get(labels, 0.0), used / watched.limit)
        return found

    def _forget_before(self, caller: str, limit: Limit) -> None:
        """Budgets of a key that had this name: what it used is not this one's."""
        same = (caller, limit.unit, limit.span, limit.claim.until if isinstance(limit.claim, Budget) else 0)
        self._watched = {
            name: each
            for name, each in self._watched.items()
            if (each.caller, each.unit, each.span, each.until) != same
        }

    def _forget_ended(self) -> None:
        now = self._wall() * 1000
        self._watched = {name: each for name, each in self._watched.items() if each.until > now}
