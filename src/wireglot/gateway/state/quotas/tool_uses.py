"""Tools that the gateway runs and that cost money: limited per key, with a row of the ledger for each use."""

from __future__ import annotations

import time
from typing import Final

from msgspec.structs import replace

from wireglot.gateway.entry.guard import new_request_id
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.gateway.state.quotas.quotas import Quotas
from wireglot.stores.base import StoreDown
from wireglot.stores.records import MICRO, Budget, Rate, UsageRow

_PRICED_IN: Final = "USD"


class ToolUses:
    def __init__(self, quotas: Quotas, ledger: UsageLedger) -> None:
        self._quotas = quotas
        self._ledger = ledger

    async def begin(self, exchange: Exchange, kind: str, backend: str, price: float) -> ToolUse | str:
        """One use is about to happen; why it must not, where it must not. `price`: in US dollars."""
        job = exchange.job
        cost = round(price * MICRO) if job.settings.currency == _PRICED_IN else 0
        claims = self._quotas.claims_of_tool(job, cost)
        if claims:
            try:
                refused = await self._quotas.take(claims)
            except StoreDown:
                return "the limits of this key cannot be checked at the moment"
            if refused:
                return refused
        return ToolUse(self, claims, self._row(exchange, kind, backend), cost)

    def _row(self, exchange: Exchange, kind: str, backend: str) -> UsageRow | None:
        job, record = exchange.job, exchange.record
        row = UsageRow(
            id=new_request_id(),
            caller=record.caller,
            started=int(time.time() * 1000),
            operation=kind,
            dialect=job.surface.name,
            session=record.session,
            model=job.model,
            provider=backend,
            purpose=record.facts.purpose,
            agent=record.facts.agent,
            caller_group=job.caller.key.group if job.caller.key is not None else "",
        )
        return self._ledger.begin_row(row)

    def end(self, use: ToolUse, *, is_good: bool) -> None:
        """What failed costs nothing."""
        if use.row is not None:
            now = max(int(time.time() * 1000), use.row.started)
            self._ledger.end_row(
                replace(
                    use.row,
                    outcome="ok" if is_good else "error",
                    finished=now,
                    status=200 if is_good else 502,
                    attempts=1,
                    cost=use.cost if is_good else 0,
                )
            )
        if not is_good:
            self._quotas.give_back([claim for claim in use.claims if isinstance(claim, Budget)])


class ToolUse:
    """Implements `hosted.web.PaidUse`: one use, from before it to after it."""

    def __init__(self, uses: ToolUses, claims: list[Rate | Budget], row: UsageRow | None, cost: int) -> None:
        self.claims = claims
        self.row = row
        self.cost = cost
        self._uses = uses

    def end(self, *, is_good: bool) -> None:
        self._uses.end(self, is_good=is_good)
