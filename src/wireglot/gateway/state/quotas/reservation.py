"""One request's share of its key's limits: what it may use, and what it used."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from wireglot.gateway.config.prices import known_price, why_unknown
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import Metrics, Readings
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.account_details import shown_route
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import CANDIDATE, Job
from wireglot.gateway.request.token_weight import TOKEN, embedding_tokens, token_weight
from wireglot.gateway.settings import ClientKey, Settings
from wireglot.gateway.targets.routing import Target
from wireglot.stores.base import Counters
from wireglot.stores.records import MICRO, Budget, KeyQuotas, Rate
from wireglot_core.dialects.surface import BudgetStanding, ClientSide
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers.prices import cost

LETTERS_PER_TOKEN: Final = 4
"""Characters per token of English or JSON."""
_LARGE_BYTES: Final = 32 * 1024
"""Smaller bodies contain no image large enough to matter."""
_UNSAID_TOKENS: Final = 1024
"""Tokens reserved for an answer whose length the client does not limit."""
# Output tokens that are reserved for a request, where the model's limit is unknown.
_MAX_OUTPUT_TOKENS: Final = 128 * 1024
# Answers of one request that are reserved for.
_MAX_ANSWERS: Final = 128


# Routes whose usual output is known. Clients name models, so there may be any number; with more, the one that
# was used least recently is forgotten.
MAX_USUAL_ROUTES: Final = 4096
_NEWEST_WEIGHT: Final = 0.2


class UsualOutput:
    """How many tokens the answers of each route usually have: a moving average."""

    def __init__(self) -> None:
        self._tokens: dict[str, float] = {}

    def of(self, route: str) -> int:
        """`_UNSAID_TOKENS` until there was an answer."""
        return math.ceil(self._tokens.get(route, _UNSAID_TOKENS))

    def learn(self, route: str, tokens: int) -> None:
        """`tokens`: of one answer."""
        usual = self._tokens.pop(route, _UNSAID_TOKENS)
        self._tokens[route] = usual + _NEWEST_WEIGHT * (tokens - usual)
        if len(self._tokens) > MAX_USUAL_ROUTES:
            del self._tokens[next(iter(self._tokens))]


def expected_usage(exchange: Exchange, target: Target) -> Usage:
    """The maximum usage of the request: its own size, and all that it lets the model write."""
    answers = _answers(exchange)
    return Usage(input=_input(exchange), output=_output(exchange, target) * answers if answers else 0)


def whole_input(exchange: Exchange) -> int:
    """The tokens that the model reads, including all that was put before the request."""
    return token_weight(exchange.request()) // TOKEN


def _input(exchange: Exchange) -> int:
    if exchange.record.within and exchange.rewritten:
        return whole_input(exchange)  # its body does not contain the whole request
    body = exchange.job.body
    marks = exchange.job.surface.client.media_marks
    if len(body) > _LARGE_BYTES and any(mark in body for mark in marks):
        try:
            # The characters of an encoded image are not its tokens.
            if exchange.embeds:
                return embedding_tokens(exchange.embedding().inputs)
            return whole_input(exchange)
        except RequestError:
            pass  # reported to the client by the step that must read it
    return len(body) // LETTERS_PER_TOKEN


def _output(exchange: Exchange, target: Target) -> int:
    client = exchange.job.surface.client
    asked = client.asked_output(exchange.job)
    most = next((entry.output for entry in target.provider.spec.models if entry.covers(target.model)), 0)
    return min(asked if asked else _UNSAID_TOKENS, most or _MAX_OUTPUT_TOKENS)


def _answers(exchange: Exchange) -> int:
    if exchange.embeds:
        return 0
    return min(max(1, exchange.job.surface.client.asked_answers(exchange.job)), _MAX_ANSWERS)


class Letters:
    """Counts the characters of an answer that were sent. A client that leaves before its provider has
    reported any usage is charged by these."""

    __slots__ = ("_find", "count")

    def __init__(self, words: re.Pattern[bytes] | None) -> None:
        """`words` matches the text of an answer; without it nothing is counted."""
        self.count = 0
        self._find = words.findall if words is not None else None

    @property
    def tokens(self) -> int:
        return -(-self.count // LETTERS_PER_TOKEN)

    def listen(self, data: bytes) -> None:
        if self._find is not None:
            self.count += sum(map(len, self._find(data)))


class Period(msgspec.Struct, frozen=True):
    """A day or a month, UTC. Times in unix milliseconds."""

    name: str
    """2026-11-15 or 2026-11."""
    since: int
    until: int


def day(now: float) -> Period:
    start = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return _period(f"{start:%Y-%m-%d}", start, start + timedelta(days=1))


def week(now: float) -> Period:
    """Begins on Monday."""
    start = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start -= timedelta(days=start.weekday())
    return _period(f"{start:%G-W%V}", start, start + timedelta(days=7))


def month(now: float) -> Period:
    start = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return _period(f"{start:%Y-%m}", start, (start + timedelta(days=32)).replace(day=1))


def _period(name: str, since: datetime, until: datetime) -> Period:
    return Period(name, int(since.timestamp() * 1000), int(until.timestamp() * 1000))


Unit = Literal["requests", "tokens", "cost"]
Span = Literal["day", "month"]

NOTHING: Final[Mapping[Unit, int]] = {"requests": 0, "tokens": 0, "cost": 0}
_MINUTE_SECONDS: Final = 60.0
UNLIMITED: Final = KeyQuotas()


class Limit(msgspec.Struct, frozen=True):
    """One limit of a key or of its group, as a claim on it and in words."""

    unit: Unit
    claim: Rate | Budget
    words: str
    since: int = 0
    """Start of a budget's period, or of its key."""
    span: Span = "day"
    """The period of a budget."""
    group: str = ""
    """The group whose keys share the limit; "": it belongs to the key alone."""

    @property
    def whose(self) -> str:
        return f"group {self.group}" if self.group else "this key"

    @property
    def is_taken(self) -> bool:
        """Whether it is taken from the counters before the call; a budget is only charged with the usage."""
        return isinstance(self.claim, Rate) and self.claim.amount > 0

    def owner(self, caller: str) -> str:
        """Label of metrics. No key's name has a colon."""
        return f"group:{self.group}" if self.group else caller


def standing(limit: Limit, used: int) -> BudgetStanding:
    """The state of a budget, for a client."""
    assert isinstance(limit.claim, Budget)
    unit: Literal["tokens", "cost"] = "tokens" if limit.unit == "tokens" else "cost"
    resets = limit.claim.until // 1000
    return BudgetStanding(
        unit=unit,
        period=limit.span,
        used=max(0, used),
        limit=limit.claim.limit,
        resets=resets,
        resets_at=f"{datetime.fromtimestamp(resets, UTC):%Y-%m-%dT%H:%M:%SZ}",
        shared=bool(limit.group),
    )


class ConcurrencyLimit(msgspec.Struct, frozen=True):
    """A limit on concurrent requests."""

    name: str
    limit: int
    whose: str


class Reservation(msgspec.Struct):
    """The reservations of one request while it runs."""

    caller: str
    client: ClientSide
    """The client side of the dialect, which reports budgets."""
    settings: Settings
    limits: list[Limit]
    expected: Usage
    """At most."""
    likely_cost: int
    route: str = ""
    answers: int = 0
    """How many answers it asks for: none for a count or an embedding."""
    is_inner: bool = False
    """The gateway sends it to answer another one, which has its own reservation."""
    at: int = 0
    """When the request came, in unix milliseconds: it is charged at the prices of that time."""
    places: tuple[ConcurrencyLimit, ...] = ()
    holder: str = ""
    used: Mapping[str, int] = {}
    """How much of its budgets was used when it came."""
    letters: Letters | None = None
    """Counted if something other than requests is limited."""
    counters: Counters | None = None
    """The counters that it was taken from: the shared ones, or our own while those are down."""
    growing: asyncio.Future[None] | None = None
    """A further claim in progress: the amount to return depends on it."""

    @property
    def budgets(self) -> list[str]:
        return [limit.claim.name for limit in self.limits if isinstance(limit.claim, Budget)]

    @property
    def held(self) -> dict[str, int]:
        """The reserved amounts of its budgets. A request within another one is part of that one's."""
        if self.is_inner:
            return {}
        return {
            limit.claim.name: limit.claim.amount for limit in self.limits if isinstance(limit.claim, Budget)
        }

    def add(self, amounts: Mapping[str, int]) -> None:
        """Add to its claims, by name."""
        self.limits = [
            msgspec.structs.replace(
                limit,
                claim=msgspec.structs.replace(
                    limit.claim, amount=limit.claim.amount + amounts.get(limit.claim.name, 0)
                ),
            )
            for limit in self.limits
        ]

    def corrections(self, amounts: Mapping[Unit, int]) -> list[Rate | Budget]:
        """What was used of its budgets, and of its rates the difference to what was taken."""
        return [
            msgspec.structs.replace(limit.claim, amount=difference)
            for limit in self.limits
            if (
                difference := amounts[limit.unit]
                - (limit.claim.amount if isinstance(limit.claim, Rate) else 0)
            )
        ]


def is_limited(job: Job) -> bool:
    """Whether the caller's key or its group has any quota."""
    key = job.caller.key
    if key is None:
        return False
    if key.limits != UNLIMITED:
        return True
    group = job.settings.groups.get(key.group) if key.group else None
    return group is not None and group.shared != UNLIMITED


def reserve(
    exchange: Exchange, target: Target, key: ClientKey, usual: int, *, holder: str, now: float
) -> Reservation:
    """What a request may use, as claims on the rates of its key, and what it will probably use of budgets.
    `usual`: tokens of an answer of the route."""
    job = exchange.job
    settings = job.settings
    found = Reservation(
        job.caller.name, job.surface.client, settings, limits=[], expected=Usage(), likely_cost=0
    )
    found.at, found.holder, found.route = int(now * 1000), holder, target.name
    is_answer = not exchange.record.within or exchange.record.operation == CANDIDATE
    found.is_inner = not is_answer
    counts = job.asked.operation == "count"
    """it produces a number, not an answer"""
    if not counts:
        found.expected = expected_usage(exchange, target)
        found.answers = _answers(exchange)
    tokens = found.expected.total
    likely = msgspec.structs.replace(found.expected, output=min(found.expected.output, usual * found.answers))
    for account in accounts(key, settings):
        limits, group = account.limits, account.group
        # A request that the gateway sends to answer another one counts as part of that one. Its tokens are
        # charged when they are used, since that answer has begun. A further answer (`n`) is one more request
        # to the model.
        if not exchange.record.within:
            if most := limits.requests_per_minute:
                rate = Rate(f"rate:{account.name}:rpm", 1, most, _MINUTE_SECONDS)
                found.limits.append(Limit("requests", rate, f"{most} requests a minute", group=group))
            if most := limits.concurrent:
                whose = f"group {group}" if group else "this key"
                found.places += (ConcurrencyLimit(f"places:{account.name}", most, whose),)
        if (most := limits.tokens_per_minute) and not counts:
            amount = min(most, tokens) if is_answer else 0
            rate = Rate(f"rate:{account.name}:tpm", amount, most, _MINUTE_SECONDS)
            found.limits.append(Limit("tokens", rate, f"{most} tokens a minute", group=group))
        if counts:
            continue
        if (limits.cost_per_day or limits.cost_per_month) and not found.likely_cost:
            found.likely_cost = _likely_cost(found, target, likely)
        found.limits += budgets_of(
            account, settings.currency, now, tokens=likely.total, cost=found.likely_cost
        )
    return found


def payable(reservation: Reservation, targets: tuple[Target, ...]) -> tuple[Target, ...]:
    """The targets that the budgets can be charged for. The first one is."""
    if not any(limit.unit == "cost" for limit in reservation.limits):
        return targets
    settings, at = reservation.settings, reservation.at
    return targets[:1] + tuple(
        target
        for target in targets[1:]
        if known_price(settings, target.provider.name, target.model, at) is not None
    )


class QuotaAccount(msgspec.Struct, frozen=True):
    """An owner of limits: a key, or a group for all its keys together."""

    name: str
    """The name of its counters."""
    limits: KeyQuotas
    created: int = 0
    group: str = ""


def accounts(key: ClientKey, settings: Settings) -> list[QuotaAccount]:
    """The accounts that a request with this key is charged to, the key's own first."""
    found = []
    if key.limits != UNLIMITED:
        # A new key under a former name has used nothing yet.
        name = f"{key.name}@{key.created}" if key.created else key.name
        found.append(QuotaAccount(name, key.limits, key.created))
    group = settings.groups.get(key.group)
    if group is not None and group.shared != UNLIMITED:
        found.append(QuotaAccount(f"group:{group.name}", group.shared, group=group.name))
    return found


def budgets_of(
    account: QuotaAccount, currency: str, now: float, *, tokens: int = 0, cost: int = 0
) -> list[Limit]:
    """The budgets of an account at a time, as claims of this many tokens and this much money."""
    limits = account.limits
    budgets: tuple[tuple[Unit, int, int, Span, Callable[[float], Period]], ...] = (
        ("tokens", tokens, limits.tokens_per_day, "day", day),
        ("tokens", tokens, limits.tokens_per_month, "month", month),
        ("cost", cost, limits.cost_per_day, "day", day),
        ("cost", cost, limits.cost_per_month, "month", month),
    )
    found = []
    for unit, amount, most, span, period_of in budgets:
        if most:
            period = period_of(now)
            budget = Budget(f"budget:{account.name}:{unit}:{period.name}", amount, most, period.until)
            shown = f"{most} tokens" if unit == "tokens" else f"{_money(most)} {currency}"
            since = max(period.since, account.created)
            found.append(
                Limit(unit, budget, f"{shown} a {span}", since=since, span=span, group=account.group)
            )
    return found


def _money(amount: int) -> str:
    """Exact, with two digits or as many as it has."""
    digits = f"{amount % MICRO:06d}"
    return f"{amount // MICRO}.{digits[:2]}{digits[2:].rstrip('0')}"


def larger(reservation: Reservation, exchange: Exchange, target: Target) -> list[Rate | Budget]:
    """What a request may use beyond its own body, once its history was put before it."""
    if not exchange.rewritten or not any(limit.unit != "requests" for limit in reservation.limits):
        return []
    read = whole_input(exchange) - reservation.expected.input
    if read <= 0:
        return []
    reservation.expected = msgspec.structs.replace(
        reservation.expected, input=reservation.expected.input + read
    )
    more = 0
    if any(limit.unit == "cost" for limit in reservation.limits):
        more = _likely_cost(reservation, target, Usage(input=read))
        reservation.likely_cost += more
    found: list[Rate | Budget] = []
    for limit in reservation.limits:
        amount = read if limit.unit == "tokens" else more
        if limit.unit != "requests" and amount > 0:
            found.append(msgspec.structs.replace(limit.claim, amount=amount))
    return found


def used(reservation: Reservation, record: ExchangeRecord, ended: BaseException | None) -> Mapping[Unit, int]:
    """The usage of a request, as far as it is known. `ended`: the exception that it ended with, if any."""
    if record.attempts == 0 and ended is not None:
        return NOTHING  # refused here: no provider was called
    if ended is None or isinstance(ended, asyncio.CancelledError) or _timed_out(ended):
        estimate(reservation, record, asked=True)
    else:
        estimate(reservation, record)
    usage = record.usage
    if usage is None:
        return {"requests": 1, "tokens": 0, "cost": 0}
    return {"requests": 1, "tokens": usage.total, "cost": _cost(reservation, record, usage)}


def estimate(reservation: Reservation, record: ExchangeRecord, *, asked: bool = False) -> None:
    """Record an estimate for an answer without reported usage: the ledger must agree with the limits, since
    budgets begin with its sums. `asked`: a provider has read the request, whatever it answered."""
    if reservation.letters is None or record.usage_source == "provider":
        return
    heard = reservation.letters.tokens
    if not heard and not asked:
        return
    usage = _estimate(record.usage, reservation.expected, heard)
    if usage is not record.usage:
        record.used(usage, "estimated")


def _timed_out(ended: BaseException) -> bool:
    """Whether the client had left while a provider was at work."""
    if isinstance(ended, AttemptFailed) and ended.blame != "timeout":
        return False
    return isinstance(ended, RequestError | AttemptFailed) and ended.error.kind == "timeout"


def _estimate(known: Usage | None, expected: Usage, heard: int) -> Usage:
    """The usage of an answer whose provider reported none, or was interrupted before."""
    if known is None:
        return Usage(input=expected.input, output=heard)
    if known.total_output >= heard:
        return known
    return msgspec.structs.replace(known, output=heard - (known.reasoning or 0), raw=None)


def _likely_cost(reservation: Reservation, target: Target, likely: Usage) -> int:
    settings, provider = reservation.settings, target.provider.name
    price = known_price(settings, provider, target.model, reservation.at)
    if price is None:
        why = why_unknown(settings, provider, target.model, reservation.at)
        route = shown_route(provider, target.model)
        raise RequestError(
            "permission",
            f"the key or its group has a budget in money, and the price of {route} is unknown"
            f"{f' ({why})' if why else ''}: add it to [prices]",
            code="price_unknown",
            param="model",
        )
    return cost(price, likely)


def _cost(reservation: Reservation, record: ExchangeRecord, usage: Usage) -> int:
    """At the price of the provider that answered; if that is unknown, the reserved amount."""
    price = known_price(reservation.settings, record.provider, record.upstream_model, reservation.at)
    return reservation.likely_cost if price is None else cost(price, usage)


MAX_BUDGETS: Final = 400
"""Budgets that the metrics report: four for each of the 100 keys with series of their own."""


class _Watched(msgspec.Struct, frozen=True):
    owner: str
    unit: Unit
    span: str
    limit: int
    until: int


class BudgetWatch:
    """Budgets of keys that have sent requests to this process: others use nothing up."""

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
                self._forget_before(limit.owner(reservation.caller), limit)
            if len(self._watched) >= MAX_BUDGETS:
                self._forget_ended()
            if known is not None or len(self._watched) < MAX_BUDGETS:
                self._watched[claim.name] = _Watched(
                    limit.owner(reservation.caller), limit.unit, limit.span, claim.limit, claim.until
                )

    async def look(self) -> None:
        """Read the budgets. Raises StoreDown: then the last values stay."""
        self._forget_ended()
        if self._watched:
            self._used = await self._counters.amounts(list(self._watched))

    def publish(self, metrics: Metrics) -> None:
        metrics.read(
            "key_budget_used_ratio",
            "Share of the budget of a key (or group:NAME) that is used.",
            lambda: self._ratios(metrics),
            ("key", "unit", "period"),
        )

    def _ratios(self, metrics: Metrics) -> Readings:
        now = self._wall() * 1000
        found: dict[tuple[str, ...], float] = {}
        for name, watched in self._watched.items():
            used = self._used.get(name)
            if used is not None and watched.until > now:
                labels = (metrics.keys.label(watched.owner, True), watched.unit, watched.span)
                found[labels] = max(found.get(labels, 0.0), used / watched.limit)
        return found

    def _forget_before(self, owner: str, limit: Limit) -> None:
        """Forget budgets of a former key of this name: its usage does not count for this one."""
        same = (owner, limit.unit, limit.span, limit.claim.until if isinstance(limit.claim, Budget) else 0)
        self._watched = {
            name: each
            for name, each in self._watched.items()
            if (each.owner, each.unit, each.span, each.until) != same
        }

    def _forget_ended(self) -> None:
        now = self._wall() * 1000
        self._watched = {name: each for name, each in self._watched.items() if each.until > now}
