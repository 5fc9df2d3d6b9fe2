"""Budgets: how much of each is used, and how much running requests have reserved.

The counters have only what was used, so that a budget is spent when its use reaches the limit and never
earlier. What running requests will probably use is reserved in this process, so that many at once cannot
exceed a budget without bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Final

import msgspec

from wireglot.gateway.errors import QUOTA, RequestError
from wireglot.gateway.settings import ClientKey, Settings
from wireglot.gateway.state.quotas.reservation import (
    Limit,
    Reservation,
    accounts,
    budgets_of,
    day,
    month,
    standing,
    week,
)
from wireglot.stores.base import Counters, Ledger, StoreDown
from wireglot.stores.records import Budget, Spender, UsageQuery
from wireglot_core.dialects.surface import BudgetStanding, ClientSide, Spending

_RESERVED_SECONDS: Final = 5.0
"""`retry_after` when only the reservations of running requests exceed the limit."""
# Requests that may run on a budget in one process whatever they have reserved, while its use is below the
# limit: the parallel requests of an agent are not refused, and a nearly spent budget is exceeded by no more
# than these.
MAX_UNRESERVED_REQUESTS: Final = 32


class Budgets:
    """`peers` returns how many processes share the counters, as last known."""

    def __init__(
        self, counters: Counters, ledger: Ledger, wall: Callable[[], float], peers: Callable[[], int]
    ) -> None:
        self._counters = counters
        self._ledger = ledger
        self._wall = wall
        self._peers = peers
        self._held: Counter[str] = Counter()
        """How many requests of this process have reserved a part of a budget."""
        self._reserved: Counter[str] = Counter()
        """How much of it they have reserved."""

    async def reserve(self, reservation: Reservation) -> None:
        """Refuse a request whose budget is spent, or reserve what it will probably use. Raises
        StoreDown."""
        await self._begin(reservation)
        self._check(reservation)
        self._held.update(reservation.held.keys())  # nothing waits between the check and this
        self._reserved.update(reservation.held)

    def grow(self, reservation: Reservation, amounts: Mapping[str, int]) -> None:
        """Reserve more. Nothing is refused for it."""
        if not reservation.is_inner:
            self._reserved.update(amounts)

    def release(self, reservation: Reservation) -> None:
        held = reservation.held
        for counter, amounts in ((self._held, dict.fromkeys(held, 1)), (self._reserved, held)):
            counter.subtract(amounts)
            for name in amounts:
                if counter[name] <= 0:
                    del counter[name]

    async def standings(self, key: ClientKey, settings: Settings) -> list[BudgetStanding]:
        """Every budget of a key, or, if it has none itself, those that it shares. Raises StoreDown."""
        found: list[Limit] = []
        for account in accounts(key, settings):
            found = found or budgets_of(account, settings.currency, self._wall())
        if not found:
            return []
        used = await self._counters.known([limit.claim.name for limit in found])
        return [
            standing(
                limit,
                used[limit.claim.name] if limit.claim.name in used else await self._spent(key.name, limit),
            )
            for limit in found
        ]

    async def of_keys(
        self, keys: Sequence[ClientKey], settings: Settings
    ) -> list[tuple[str, BudgetStanding]]:
        """Every budget of these keys and of their groups, with its owner. Raises StoreDown."""
        found: dict[str, tuple[str, Limit]] = {}
        for key in keys:
            for account in accounts(key, settings):
                for limit in budgets_of(account, settings.currency, self._wall()):
                    found[limit.claim.name] = (limit.group or key.name, limit)
        known = await self._counters.amounts(list(found)) if found else {}
        spent: dict[tuple[int, Spender], dict[str, tuple[int, int]]] = {}
        standings = []
        for name, (whose, limit) in found.items():
            if name in known:
                used = known[name]
            else:
                # Many keys at once: those with the same period are added up together.
                by: Spender = "caller_group" if limit.group else "caller"
                if (limit.since, by) not in spent:
                    query = UsageQuery((by,), since=limit.since, durations=False)
                    totals = await self._ledger.totals(query)
                    spent[limit.since, by] = {
                        total.group[0]: (sum(total.tokens.values()), total.cost) for total in totals
                    }
                used = spent[limit.since, by].get(whose, (0, 0))[0 if limit.unit == "tokens" else 1]
            standings.append((whose, standing(limit, used)))
        return standings

    async def spending(self, caller: str, made: int) -> Spending:
        """A caller's recent spending, whether or not it has a budget. Raises StoreDown."""
        now = self._wall()
        spans = (day(now), week(now), month(now))
        return Spending(*[(await self._ledger.spent(caller, max(span.since, made)))[1] for span in spans])

    async def _begin(self, reservation: Reservation) -> None:
        """Read what was used. Budgets that the counters do not have (a new day, a restart) begin with the
        ledger's sum."""
        begun = reservation.used = dict(await self._counters.known(reservation.budgets))
        for limit in reservation.limits:
            claim = limit.claim
            if isinstance(claim, Budget) and claim.name not in begun:
                try:
                    spent = await self._spent(reservation.caller, limit)
                except StoreDown:
                    raise unchecked(reservation) from None
                begun[claim.name] = spent
                await self._counters.seed(claim.name, spent, claim.until)

    def _check(self, reservation: Reservation) -> None:
        """Refuse a request whose budget is spent, or would be exceeded by all that run. Of several, the one
        that is spent for the longest time."""
        peers = max(1, self._peers())
        full: Limit | None = None
        spent: tuple[int, Limit] | None = None
        for limit in reservation.limits:
            claim = limit.claim
            if not isinstance(claim, Budget):
                continue
            left = claim.limit - reservation.used[claim.name]
            if left <= 0:
                spent = max(spent or (0, limit), (claim.until, limit), key=itemgetter(0))
            elif (
                not reservation.is_inner
                and self._held[claim.name] >= MAX_UNRESERVED_REQUESTS
                and self._reserved[claim.name] * peers >= left  # the others are taken to be as busy
            ):
                full = limit
        if spent is not None:
            raise self._spent_refusal(reservation, spent[1])
        if full is not None:
            message = f"{full.whose} may use {full.words}, and running requests may use the rest"
            raise RequestError("rate", message, retry_after=_RESERVED_SECONDS)

    def _spent_refusal(self, reservation: Reservation, limit: Limit) -> RequestError:
        spent = standing(limit, limit.claim.limit)
        message = (
            f"{limit.whose} has used its budget of {limit.words}; it resets at {spent.resets_at}, "
            "or ask the operator of this gateway to raise it"
        )
        wait = max(1, math.ceil(spent.resets - self._wall()))
        fault = RequestError("rate", message, code=QUOTA, retry_after=wait, final=True)
        return _in_words_of(reservation.client, fault, spent)

    async def _spent(self, caller: str, limit: Limit) -> int:
        """The ledger's sum for a budget."""
        by: Spender = "caller_group" if limit.group else "caller"
        tokens, money = await self._ledger.spent(limit.group or caller, limit.since, by)
        return tokens if limit.unit == "tokens" else money


def unchecked(reservation: Reservation) -> RequestError:
    message = "the budget of this key cannot be checked at the moment"
    return _in_words_of(reservation.client, RequestError("rate", message, retry_after=2), None)


def _in_words_of(client: ClientSide, fault: RequestError, spent: BudgetStanding | None) -> RequestError:
    """A refusal in the form that a dialect's clients know. None: the counters cannot be read."""
    if spent is not None:
        # Some dialects have a separate kind for it, under the same status.
        fault.error = msgspec.structs.replace(fault.error, kind=client.spent_quota)
    if client.budgets is not None:
        fault.final = True
        fault.headers = client.budgets.refused(spent)
    return fault
