"""A limiter with clocks, counters and a ledger of its own, and requests for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from tests.gateway.kit import exchange, own, settings
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import ClientKey, Group
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.gateway.state.quotas.reservation import Reservation
from wireglot.gateway.targets.routing import route
from wireglot.stores.base import StoreDown
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.memory.engine import MemoryLedger
from wireglot.stores.records import Denied, KeyQuotas, UsageRow
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers.list_price import Price
from wireglot_core.providers.prices import PriceRule

NOON = 1_794_744_000.0
"""2026-11-15 12:00 UTC"""
MIDNIGHT = NOON + 12 * 3600
DOLLAR = 1_000_000
SETTINGS = settings(
    own("mine", "openai-chat"),
    own("dear", "openai-chat"),
    prices=(PriceRule("priced", Price(1 * DOLLAR, 10 * DOLLAR)), PriceRule("dear/*", Price(0, 100 * DOLLAR))),
)
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/mine/priced:generateContent",
    "gemini-simple": "/v1/gemini",
}


class Down(MemoryCounters):
    """Counters that can be switched off."""

    down = False
    late: asyncio.Event | None = None
    """When a call to take something, which its request does not wait for, goes on."""

    async def take(self, claims: Any) -> Denied | None:
        self._check()
        if self.late is not None:
            down = StoreDown("it does not answer soon")
            down.late = asyncio.ensure_future(self._take_late(claims, self.late))
            raise down
        return await super().take(claims)

    async def _take_late(self, claims: Any, late: asyncio.Event) -> Denied | None:
        await late.wait()
        return await super().take(claims)

    async def enter(self, name: str, holder: str, limit: int, seconds: float) -> bool:
        self._check()
        return await super().enter(name, holder, limit, seconds)

    async def known(self, names: Any) -> dict[str, int]:
        self._check()
        return await super().known(names)

    async def amounts(self, names: Any) -> dict[str, int]:
        self._check()
        return await super().amounts(names)

    def _check(self) -> None:
        if self.down:
            raise StoreDown("switched off")


class Desk:
    """A limiter with clocks of its own."""

    def __init__(self, *, peers: int = 1, **limits: int) -> None:
        self.clock = 1000.0
        self.wall = NOON
        self.counters = Down(clock=lambda: self.clock, wall=lambda: self.wall)
        self.ledger = MemoryLedger()
        self.notes: list[str] = []
        self.limits = KeyQuotas(**limits)
        self.settings = SETTINGS
        self.name = "me"
        self.group = ""
        self.limiter = self.another(peers)
        self.created = 0
        """When the key was made, in unix milliseconds."""
        self._count = 0

    def another(self, peers: int = 1) -> Quotas:
        """Another process that shares the counters."""
        return Quotas(
            self.counters,
            self.ledger,
            "here",
            lambda level, event, **fields: self.notes.append(event),
            clock=lambda: self.clock,
            wall=lambda: self.wall,
            peers=lambda: peers,
        )

    def job(self, dialect: str = "openai-chat", model: str = "mine/priced", **body: Any) -> Exchange:
        self._count += 1
        document = {**({} if dialect == "gemini" else {"model": model}), **body}
        return exchange(
            self.settings, document, path=PATHS[dialect], caller=self.caller(), id=f"req_{self._count}"
        )

    def join(self, name: str, **shared: int) -> None:
        """Put the key into a group with shared limits."""
        self.group = name
        groups = {name: Group(name, shared=KeyQuotas(**shared))}
        self.settings = msgspec.structs.replace(SETTINGS, groups=groups)

    def caller(self) -> Caller:
        key = ClientKey(self.name, "0" * 64, limits=self.limits, created=self.created, group=self.group)
        return Caller(self.name, key)

    async def admit(
        self, job: Exchange | None = None, *, model: str = "mine/priced", **body: Any
    ) -> Reservation:
        job = job or self.job(model=model, **body)
        target = route(SETTINGS, job.job.model, job.job.dialect)[0]
        found = await self.limiter.admit(job, target)
        assert found is not None
        return found

    async def refused(self, job: Exchange | None = None, **body: Any) -> RequestError:
        with pytest.raises(RequestError) as refused:
            await self.admit(job, **body)
        return refused.value

    async def settle(
        self,
        claim: Reservation,
        usage: Usage | None,
        ended: BaseException | None = None,
        *,
        attempts: int = 1,
        route: str = "mine/priced",
    ) -> ExchangeRecord:
        provider, _, model = route.partition("/")
        record = ExchangeRecord(
            "req", 0.0, attempts=attempts, provider=provider, upstream_model=model, usage=usage
        )
        record.usage_source = "provider" if usage is not None else "none"
        self.limiter.settle(claim, record, ended)
        await asyncio.gather(*self.limiter.settlements.work)
        return record

    def spent(self, name: str) -> int:
        return self.counters._budgets[name][0]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def used(name: str, when: float, caller: str = "me", **amounts: Any) -> UsageRow:
    """A finished request in the ledger."""
    return UsageRow(name, caller, int(when * 1000), outcome="ok", finished=1, **amounts)
