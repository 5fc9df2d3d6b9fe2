"""The quotas of client keys: checked before an upstream is called, settled when the answer is known.

Rates and places are taken from the counters before a call. A budget is different: the counters have only what
was used, so that a budget is spent when its use reaches the limit and never earlier. What running requests
will probably use is reserved in this process, so that many at once cannot exceed a budget without bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Final

import msgspec

from wireglot.gateway.errors import QUOTA, RequestError
from wireglot.gateway.observe.log import Note
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import Job
from wireglot.gateway.settings import ClientKey, Settings
from wireglot.gateway.state.quotas.reservation import (
    NOTHING,
    UNLIMITED,
    BudgetWatch,
    ConcurrencyLimit,
    Letters,
    Limit,
    Reservation,
    Unit,
    UsualOutput,
    accounts,
    budgets_of,
    day,
    estimate,
    larger,
    month,
    payable,
    reserve,
    standing,
    used,
    week,
)
from wireglot.gateway.state.tasks import Guarded, stop
from wireglot.gateway.targets.routing import Target
from wireglot.stores.base import Counters, Ledger, StoreDown
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.records import Budget, Denied, Rate, Spender, UsageQuery
from wireglot_core.dialects.base import BudgetStanding, ClientSide, Spending

_LEASE_SECONDS: Final = 60.0
"""After this time the place of a request whose process has died is free."""
_RENEWED_SECONDS: Final = 20.0
_DRAIN_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = (0.5, 2.0, 10.0, 60.0)
"""Seconds between attempts to charge usage."""
_REST_TIMES: Final = 2.0
"""Counters that failed are not used for this multiple of the time that they took to fail."""
_DAY_SECONDS: Final = 86_400.0
_RESERVED_SECONDS: Final = 5.0
"""`retry_after` when only the reservations of running requests exceed the limit."""
# Requests that may run on a budget in one process whatever they have reserved, while its use is below the
# limit: the parallel requests of an agent are not refused, and a nearly spent budget is exceeded by no more
# than these.
MAX_UNRESERVED_REQUESTS: Final = 32


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
        self._ledger = ledger
        self._instance = instance
        self._note = note
        self._clock = clock
        self.wall = wall
        self._peers = peers
        self.renewed_seconds = _RENEWED_SECONDS
        self.again_seconds: tuple[float, ...] = _AGAIN_SECONDS
        self.budgets = BudgetWatch(counters, wall)
        self._own = MemoryCounters(clock=clock, wall=wall)
        """Used while the shared ones are down."""
        self._down = False
        self._rest_until = -math.inf
        """Until when the shared counters are not called, because they did not answer."""
        self._running: dict[str, Reservation] = {}
        """The reservations that hold a place."""
        self._claims: dict[str, Reservation] = {}
        """The reservations of running requests, by request id."""
        self._held: Counter[str] = Counter()
        """How many requests of this process have reserved a part of a budget."""
        self._reserved: Counter[str] = Counter()
        """How much of it they have reserved."""
        self._usual = UsualOutput()
        self._renewal: asyncio.Task[None] | None = None
        self._work: set[asyncio.Task[None]] = set()
        self._renewing = Guarded(note, "limits: renewal")
        self._settling = Guarded(note, "limits: settling")

    async def close(self) -> None:
        await stop(self._renewal)
        if self._work:
            await asyncio.wait(self._work, timeout=_DRAIN_SECONDS)
        await stop(*self._work)

    # Before an upstream is called.

    def limit(self, job: Job) -> bool:
        """Whether the caller's key or its group has any quota."""
        key = job.caller.key
        if key is None:
            return False
        if key.limits != UNLIMITED:
            return True
        group = job.settings.groups.get(key.group) if key.group else None
        return group is not None and group.shared != UNLIMITED

    async def admit(self, exchange: Exchange, target: Target) -> Reservation | None:
        """Reserve what the request may use, or refuse it. None: its caller has no limits."""
        key = exchange.job.caller.key
        if key is None or not self.limit(exchange.job):
            return None
        holder = f"{self._instance}:{exchange.record.id}"
        usual = self._usual.of(target.name)
        reservation = reserve(exchange, target, key, usual, holder=holder, now=self.wall())
        work = asyncio.ensure_future(self._reserve(reservation))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            self._later(lambda: self._undo(work, reservation))  # its client left: it may have got it just now
            raise
        self._claims[exchange.record.id] = reservation
        if reservation.budgets:
            self._report(reservation, exchange)
            self.budgets.watch(reservation)
        if reservation.places:
            self._running[reservation.holder] = reservation
            if self._renewal is None or self._renewal.done():
                self._renewal = asyncio.create_task(self._renew())
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
        if not reservation.is_inner:
            self._reserved.update(budgets)
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

    # Uses of a tool that the gateway runs for an admitted request.

    def claims_of_tool(self, job: Job, cost: int) -> list[Rate | Budget]:
        """The claims of one use on the limits of a key. Its budgets were begun with the request."""
        key = job.caller.key
        if key is None or not self.limit(job):
            return []
        claims: list[Rate | Budget] = []
        for account in accounts(key, job.settings):
            if most := account.limits.searches_per_day:
                claims.append(Rate(f"rate:{account.name}:searches", 1, most, _DAY_SECONDS))
            if cost:
                budgets = budgets_of(account, job.settings.currency, self.wall(), cost=cost)
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
                self._later(lambda: self._give_back(counters, taking, back))
            raise
        if denied is None:
            return ""
        what = "web searches" if denied.name.endswith(":searches") else "money"
        return f"this key has used its limit of {what}"

    def give_back(self, claims: Sequence[Budget]) -> None:
        """Return claims that were taken and not used."""
        if claims:
            self._later(lambda: _settled(self._counters, _returned(claims), self.again_seconds))

    async def _reserve(self, reservation: Reservation) -> None:
        began = self._clock()
        if began < self._rest_until:
            await self._reserve_alone(reservation)
            return
        try:
            if reservation.budgets:
                await self._begin_budgets(reservation)
                self._check_budgets(reservation)
                self._hold(reservation)  # nothing waits between the check and this
            try:
                await self._take(self._counters, reservation)
            except BaseException:
                self._release(reservation)
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
            raise _unchecked(reservation) from None
        self._share(reservation)
        await self._take(self._own, reservation)

    async def _begin_budgets(self, reservation: Reservation) -> None:
        """Read what was used. Budgets that the counters do not have (a new day, a restart) begin with the
        ledger's sum."""
        begun = reservation.used = dict(await self._counters.known(reservation.budgets))
        for limit in reservation.limits:
            claim = limit.claim
            if isinstance(claim, Budget) and claim.name not in begun:
                try:
                    spent = await self._spent(reservation.caller, limit)
                except StoreDown:
                    raise _unchecked(reservation) from None
                begun[claim.name] = spent
                await self._counters.seed(claim.name, spent, claim.until)

    def _check_budgets(self, reservation: Reservation) -> None:
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
        wait = max(1, math.ceil(spent.resets - self.wall()))
        fault = RequestError("rate", message, code=QUOTA, retry_after=wait, final=True)
        return _in_words_of(reservation.client, fault, spent)

    async def _spent(self, caller: str, limit: Limit) -> int:
        """The ledger's sum for a budget."""
        by: Spender = "caller_group" if limit.group else "caller"
        tokens, money = await self._ledger.spent(limit.group or caller, limit.since, by)
        return tokens if limit.unit == "tokens" else money

    async def _take(self, counters: Counters, reservation: Reservation) -> None:
        entered: list[ConcurrencyLimit] = []
        try:
            for place in reservation.places:
                if not await counters.enter(place.name, reservation.holder, place.limit, _LEASE_SECONDS):
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

    async def _taken(self, counters: Counters, claims: list[Rate | Budget]) -> Denied | None:
        """Take the claims of a tool from the counters. Raises StoreDown, for which the use is refused: what
        the store takes from a budget after that is returned."""
        try:
            return await counters.take(claims)
        except StoreDown as down:
            late, back = down.late, _returned(claims)
            if late is not None and back:
                self._later(lambda: self._give_back(counters, late, back))
            raise

    async def _give_back(
        self, counters: Counters, late: asyncio.Future[Denied | None], back: list[Rate | Budget]
    ) -> None:
        await asyncio.wait({late})
        if not late.cancelled() and late.exception() is None and late.result() is None:
            await _settled(counters, back, self.again_seconds)

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

    async def standings(self, key: ClientKey, settings: Settings) -> list[BudgetStanding]:
        """Every budget of a key, or, if it has none itself, those that it shares. Raises StoreDown."""
        found: list[Limit] = []
        for account in accounts(key, settings):
            found = found or budgets_of(account, settings.currency, self.wall())
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

    async def budgets_now(
        self, keys: Sequence[ClientKey], settings: Settings
    ) -> list[tuple[str, BudgetStanding]]:
        """Every budget of these keys and of their groups, with its owner. Raises StoreDown."""
        found: dict[str, tuple[str, Limit]] = {}
        for key in keys:
            for account in accounts(key, settings):
                for limit in budgets_of(account, settings.currency, self.wall()):
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
        now = self.wall()
        spans = (day(now), week(now), month(now))
        return Spending(*[(await self._ledger.spent(caller, max(span.since, made)))[1] for span in spans])

    def _hold(self, reservation: Reservation) -> None:
        self._held.update(reservation.held.keys())
        self._reserved.update(reservation.held)

    def _release(self, reservation: Reservation) -> None:
        held = reservation.held
        for counter, amounts in ((self._held, dict.fromkeys(held, 1)), (self._reserved, held)):
            counter.subtract(amounts)
            for name in amounts:
                if counter[name] <= 0:
                    del counter[name]

    # When it is over.

    # Steps (see `gateway/steps.py`).

    def reserve(self, exchange: Exchange) -> Awaitable[None] | None:
        """Reserve what the request may use. It is settled however the request ends, also if its client left
        or the gateway stops."""
        return self._reserve_for(exchange) if self.limit(exchange.job) else None

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
        self._running.pop(reservation.holder, None)
        amounts = used(reservation, record, ended)
        # Of several answers it is not known here how many the provider gave.
        is_one = reservation.answers == 1 and not record.within
        if is_one and record.usage_source == "provider" and record.usage is not None:
            self._usual.learn(reservation.route, record.usage.total_output)
        growing = reservation.growing is not None
        if growing or reservation.places or reservation.budgets or reservation.corrections(amounts):
            self._later(lambda: self._correct(reservation, amounts))

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
                await _settled(counters, corrections, self.again_seconds)
        finally:
            if reservation.budgets:
                self._release(reservation)

    async def _undo(self, work: asyncio.Future[None], reservation: Reservation) -> None:
        with contextlib.suppress(RequestError):
            await work
            await self._correct(reservation, NOTHING)

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
            await counters.enter(place.name, holder, place.limit, _LEASE_SECONDS)
            if holder not in self._running:  # it ended meanwhile, perhaps before this call
                await counters.leave(place.name, holder)

    def _later(self, work: Callable[[], Awaitable[None]]) -> None:
        async def guarded() -> None:
            await self._settling.run(work)

        task = asyncio.create_task(guarded())
        self._work.add(task)
        task.add_done_callback(self._work.discard)


class _Metered:
    """Implements `Meter`: the ledger records what the quotas charge if the provider reports no usage."""

    __slots__ = ("_record", "_reservation", "heard")

    def __init__(self, reservation: Reservation, letters: Letters, record: ExchangeRecord) -> None:
        self._reservation = reservation
        self._record = record
        self.heard = letters.listen

    def estimate(self) -> None:
        estimate(self._reservation, self._record, asked=self._record.outcome == "ok")


async def _settled(counters: Counters, corrections: list[Rate | Budget], waits: tuple[float, ...]) -> None:
    """Apply corrections. If it stays unknown whether they were applied, what was to be returned stays taken,
    and what was used is charged again rather than never."""
    for wait in (*waits, None):
        try:
            await counters.settle(corrections)
            return
        except StoreDown as down:
            if down.late is not None:
                await asyncio.wait({down.late})
                if not down.late.cancelled() and down.late.exception() is None:
                    return
            corrections = [claim for claim in corrections if claim.amount > 0]
            if not corrections or wait is None:
                return
            await asyncio.sleep(wait)


def _rate_refusal(reservation: Reservation, denied: Denied) -> RequestError:
    """Which limit, and when there is room again."""
    limit = next(limit for limit in reservation.limits if limit.claim.name == denied.name)
    wait = max(1, math.ceil(denied.wait))
    return RequestError(
        "rate", f"{limit.whose} may use {limit.words}: try again in {wait} s", retry_after=wait
    )


def _returned(claims: Sequence[Rate | Budget]) -> list[Rate | Budget]:
    """The corrections that return the claimed budgets. Rates are not returned."""
    return [
        msgspec.structs.replace(claim, amount=-claim.amount) for claim in claims if isinstance(claim, Budget)
    ]


def _unchecked(reservation: Reservation) -> RequestError:
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
