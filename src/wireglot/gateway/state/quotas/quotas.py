"""The quotas of client keys: checked before an upstream is called, settled when the answer is known.

Rates and places are taken from the counters before a call, budgets are only checked (see `budgets`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.state.quotas.budgets import Budgets, unchecked
from wireglot.gateway.state.quotas.leases import LEASE_SECONDS, PlaceLeases
from wireglot.gateway.state.quotas.reservation import (
    NOTHING,
    BudgetWatch,
    ConcurrencyLimit,
    Letters,
    Reservation,
    Unit,
    UsualOutput,
    estimate,
    is_limited,
    larger,
    payable,
    reserve,
    standing,
    used,
)
from wireglot.gateway.state.quotas.settlements import Settlements
from wireglot.gateway.state.quotas.tool_claims import ToolClaims
from wireglot.gateway.targets.routing import Target
from wireglot.stores.base import Counters, Ledger, StoreDown
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.records import Budget, Denied, Rate

_REST_TIMES: Final = 2.0
"""Counters that failed are not used for this multiple of the time that they took to fail."""


class Quotas:
    """`peers` returns how many processes share the counters, as last known."""

    def __init__(
        self,
        counters: Counters,
        ledger: Ledger,
        instance: str,
        note: Note,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        peers: Callable[[], int] = lambda: 1,
    ) -> None:
        self._counters = counters
        self._instance = instance
        self._note = note
        self._clock = clock
        self.wall = wall
        self._peers = peers
        self.watch = BudgetWatch(counters, lambda: self.wall())
        self.budgets = Budgets(counters, ledger, lambda: self.wall(), peers)
        self.leases = PlaceLeases(note)
        self.settlements = Settlements(note)
        self.tools = ToolClaims(counters, self.settlements, lambda: self.wall())
        self._own = MemoryCounters(clock=clock, wall=wall)
        """Used while the shared ones are down."""
        self._down = False
        self._rest_until = -math.inf
        """Until when the shared counters are not called, because they did not answer."""
        self._claims: dict[str, Reservation] = {}
        """The reservations of running requests, by request id."""
        self._usual = UsualOutput()

    async def close(self) -> None:
        await self.leases.close()
        await self.settlements.close()

    # Before an upstream is called.

    async def admit(self, exchange: Exchange, target: Target) -> Reservation | None:
        """Reserve what the request may use, or refuse it. None: its caller has no limits."""
        key = exchange.job.caller.key
        if key is None or not is_limited(exchange.job):
            return None
        holder = f"{self._instance}:{exchange.record.id}"
        usual = self._usual.of(target.name)
        reservation = reserve(exchange, target, key, usual, holder=holder, now=self.wall())
        work = asyncio.ensure_future(self._reserve(reservation))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            # Its client left: it may have got it just now.
            self.settlements.later(lambda: self._undo(work, reservation))
            raise
        self._claims[exchange.record.id] = reservation
        if reservation.budgets:
            self._report(reservation, exchange)
            self.watch.watch(reservation)
        if reservation.places:
            self.leases.keep(reservation)
        if any(limit.unit != "requests" for limit in reservation.limits):
            reservation.letters = Letters(exchange.job.surface.client.words)
            exchange.ending.count_with(_Metered(reservation, reservation.letters, exchange.record))
        return reservation

    def held_by(self, exchange: Exchange) -> Reservation | None:
        """The reservation of a running request."""
        return self._claims.get(exchange.record.id)

    async def grow(self, reservation: Reservation, exchange: Exchange, target: Target) -> None:
        """Reserve also for what was put before the request: the model reads a conversation that we store,
        too. Nothing is refused for it: the request itself has been admitted."""
        more = larger(reservation, exchange, target)
        budgets = {claim.name: claim.amount for claim in more if isinstance(claim, Budget)}
        self.budgets.grow(reservation, budgets)
        reservation.add(budgets)
        rates: list[Rate | Budget] = [claim for claim in more if isinstance(claim, Rate)]
        if rates:
            work = reservation.growing = asyncio.ensure_future(self._grow(reservation, rates))
            await asyncio.shield(work)  # if the client leaves now, the rate is corrected once it is known

    async def _grow(self, reservation: Reservation, rates: list[Rate | Budget]) -> None:
        counters = reservation.counters
        assert counters is not None, "it was admitted"
        with contextlib.suppress(StoreDown):  # then charged at the end
            await counters.settle(rates)
            reservation.add({claim.name: claim.amount for claim in rates})

    async def _reserve(self, reservation: Reservation) -> None:
        began = self._clock()
        if began < self._rest_until:
            await self._reserve_alone(reservation)
            return
        try:
            if reservation.budgets:
                await self.budgets.reserve(reservation)
            try:
                await self._take(self._counters, reservation)
            except BaseException:
                self.budgets.release(reservation)
                raise
        except StoreDown as down:
            if not self._down:
                self._down = True
                self._note(
                    "error", "counters down", detail=f"each process enforces limits separately: {down}"
                )
            # Not every request waits for counters that take long to fail.
            now = self._clock()
            self._rest_until = now + _REST_TIMES * (now - began)
            await self._reserve_alone(reservation)
            return
        if self._down:
            self._down = False
            self._note("info", "counters available again")

    async def _reserve_alone(self, reservation: Reservation) -> None:
        if reservation.budgets:
            # It could not be determined afterwards how much was spent meanwhile.
            raise unchecked(reservation) from None
        self._share(reservation)
        await self._take(self._own, reservation)

    async def _take(self, counters: Counters, reservation: Reservation) -> None:
        entered: list[ConcurrencyLimit] = []
        try:
            for place in reservation.places:
                if not await counters.enter(place.name, reservation.holder, place.limit, LEASE_SECONDS):
                    raise RequestError(
                        "rate",
                        f"{place.whose} has reached its maximum of concurrent requests ({place.limit}): "
                        "try again when one of them has ended",
                        retry_after=1,
                    )
                entered.append(place)
            claims = [limit.claim for limit in reservation.limits if limit.is_taken]
            denied = await counters.take(claims) if claims else None
            if denied is not None:
                raise _rate_refusal(reservation, denied)
        except BaseException:
            with contextlib.suppress(StoreDown):
                for place in entered:
                    await counters.leave(place.name, reservation.holder)
            raise
        reservation.counters = counters

    def _share(self, reservation: Reservation) -> None:
        """This process's share of the limits, so that all processes together roughly keep them."""
        count = max(1, self._peers())
        reservation.places = tuple(
            msgspec.structs.replace(place, limit=max(1, place.limit // count)) for place in reservation.places
        )
        shared = []
        for limit in reservation.limits:
            claim = limit.claim
            if isinstance(claim, Rate):
                most = max(1, claim.limit // count)
                claim = msgspec.structs.replace(claim, limit=most, amount=min(most, claim.amount))
            shared.append(msgspec.structs.replace(limit, claim=claim))
        reservation.limits = shared

    def _report(self, reservation: Reservation, exchange: Exchange) -> None:
        """Have a good answer report the fullest budget, in dialects whose clients show it."""
        reports = reservation.client.budgets
        if reports is None or exchange.record.within:
            return
        used = reservation.used
        fullest = max(
            (limit for limit in reservation.limits if isinstance(limit.claim, Budget)),
            key=lambda limit: used[limit.claim.name] / limit.claim.limit,
        )
        exchange.budget_headers = reports.allowed(standing(fullest, used[fullest.claim.name]))

    # Steps (see `gateway/steps.py`).

    def reserve(self, exchange: Exchange) -> Awaitable[None] | None:
        """Reserve what the request may use. It is settled however the request ends, also if its client left
        or the gateway stops."""
        return self._reserve_for(exchange) if is_limited(exchange.job) else None

    async def _reserve_for(self, exchange: Exchange) -> None:
        claim = await self.admit(exchange, exchange.targets[0])
        if claim is not None:
            exchange.at_end.append(partial(self.settle, claim, exchange.record))
            exchange.targets = payable(claim, exchange.targets)

    def reserve_history(self, exchange: Exchange) -> Awaitable[None] | None:
        """The model reads a stored conversation, too: once it is in the request, it is reserved."""
        claim = self.held_by(exchange) if exchange.rewritten else None
        return self.grow(claim, exchange, exchange.targets[0]) if claim is not None else None

    def settle(
        self, reservation: Reservation, record: ExchangeRecord, ended: BaseException | None = None
    ) -> None:
        """Replace the reservation by the actual usage. `ended`: the exception that the request ended with, if
        any."""
        self._claims.pop(record.id, None)
        self.leases.release(reservation)
        amounts = used(reservation, record, ended)
        # Of several answers it is not known here how many the provider gave.
        is_one = reservation.answers == 1 and not record.within
        if is_one and record.usage_source == "provider" and record.usage is not None:
            self._usual.learn(reservation.route, record.usage.total_output)
        growing = reservation.growing is not None
        if growing or reservation.places or reservation.budgets or reservation.corrections(amounts):
            self.settlements.later(lambda: self._correct(reservation, amounts))

    async def _correct(self, reservation: Reservation, amounts: Mapping[Unit, int]) -> None:
        counters = reservation.counters
        assert counters is not None, "it was admitted"
        if reservation.growing is not None:
            await asyncio.gather(reservation.growing, return_exceptions=True)
        try:
            with contextlib.suppress(StoreDown):  # its places are free when its lease ends
                for place in reservation.places:
                    await counters.leave(place.name, reservation.holder)
            corrections = reservation.corrections(amounts)
            if corrections:
                await self.settlements.settle(counters, corrections)
        finally:
            if reservation.budgets:
                self.budgets.release(reservation)

    async def _undo(self, work: asyncio.Future[None], reservation: Reservation) -> None:
        with contextlib.suppress(RequestError):
            await work
            await self._correct(reservation, NOTHING)


class _Metered:
    """Implements `Meter`: the ledger records what the quotas charge if the provider reports no usage."""

    __slots__ = ("_record", "_reservation", "heard")

    def __init__(self, reservation: Reservation, letters: Letters, record: ExchangeRecord) -> None:
        self._reservation = reservation
        self._record = record
        self.heard = letters.listen

    def estimate(self) -> None:
        estimate(self._reservation, self._record, asked=self._record.outcome == "ok")


def _rate_refusal(reservation: Reservation, denied: Denied) -> RequestError:
    """Which limit, and when there is room again."""
    limit = next(limit for limit in reservation.limits if limit.claim.name == denied.name)
    wait = max(1, math.ceil(denied.wait))
    return RequestError(
        "rate", f"{limit.whose} may use {limit.words}: try again in {wait} s", retry_after=wait
    )
