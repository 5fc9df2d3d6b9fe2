"""The claims of uses of a tool that the gateway runs for an admitted request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from wireglot.gateway.request.job import Job
from wireglot.gateway.state.quotas.reservation import (
    accounts,
    budgets_of,
    is_limited,
)
from wireglot.gateway.state.quotas.settlements import Settlements
from wireglot.stores.base import Counters, StoreDown
from wireglot.stores.records import Budget, Denied, Rate

_DAY_SECONDS: Final = 86_400.0


class ToolClaims:
    def __init__(self, counters: Counters, settlements: Settlements, wall: Callable[[], float]) -> None:
        self._counters = counters
        self._settlements = settlements
        self._wall = wall

    def claims(self, job: Job, cost: int) -> list[Rate | Budget]:
        """The claims of one use on the limits of a key. Its budgets were begun with the request."""
        key = job.caller.key
        if key is None or not is_limited(job):
            return []
        claims: list[Rate | Budget] = []
        for account in accounts(key, job.settings):
            if most := account.limits.searches_per_day:
                claims.append(Rate(f"rate:{account.name}:searches", 1, most, _DAY_SECONDS))
            if cost:
                budgets = budgets_of(account, job.settings.currency, self._wall(), cost=cost)
                claims += [limit.claim for limit in budgets if limit.unit == "cost"]
        return claims

    async def take(self, claims: list[Rate | Budget]) -> str:
        """Take the claims. Returns why they are refused, or "". Raises StoreDown. What was taken for a use
        that is cancelled meanwhile is returned."""
        counters = self._counters
        taking = asyncio.ensure_future(self._taken(counters, claims))
        try:
            denied = await asyncio.shield(taking)
        except asyncio.CancelledError:
            if back := _returned(claims):
                self._settlements.later(lambda: self._give_back(counters, taking, back))
            raise
        if denied is None:
            return ""
        what = "web searches" if denied.name.endswith(":searches") else "money"
        return f"this key has used its limit of {what}"

    def give_back(self, claims: Sequence[Budget]) -> None:
        """Return claims that were taken and not used."""
        if claims:
            self._settlements.later(lambda: self._settlements.settle(self._counters, _returned(claims)))

    async def _taken(self, counters: Counters, claims: list[Rate | Budget]) -> Denied | None:
        """Take the claims of a tool from the counters. Raises StoreDown, for which the use is refused: what
        the store takes from a budget after that is returned."""
        try:
            return await counters.take(claims)
        except StoreDown as down:
            late, back = down.late, _returned(claims)
            if late is not None and back:
                self._settlements.later(lambda: self._give_back(counters, late, back))
            raise

    async def _give_back(
        self, counters: Counters, late: asyncio.Future[Denied | None], back: list[Rate | Budget]
    ) -> None:
        await asyncio.wait({late})
        if not late.cancelled() and late.exception() is None and late.result() is None:
            await self._settlements.settle(counters, back)


def _returned(claims: Sequence[Rate | Budget]) -> list[Rate | Budget]:
    """The corrections that return the claimed budgets. Rates are not returned."""
    return [
        msgspec.structs.replace(claim, amount=-claim.amount) for claim in claims if isinstance(claim, Budget)
    ]
